#ifndef FILTERBENCH_FILTERS_TEST_WIRE_H_
#define FILTERBENCH_FILTERS_TEST_WIRE_H_

// Serialized filters as tests change them. Where the fields of the header lie is said once more here
// and not taken from wire.cc, so that no change of the format goes unnoticed (wire_test.cc).

#include <cstddef>
#include <cstdint>
#include <vector>

#include "filters/hash.h"

namespace filterbench::test {

using Wire = std::vector<std::byte>;

inline constexpr size_t kHeaderBytes = 64;
inline constexpr size_t kChecksumAt = 8;
inline constexpr size_t kPayloadBytesAt = 16;
inline constexpr size_t kVersionAt = 24;
inline constexpr size_t kFilterAt = 28;

inline void StoreU64(uint64_t value, Wire& wire, size_t at) {
  for (size_t i = 0; i < 8; ++i) wire[at + i] = static_cast<std::byte>(value >> (8 * i));
}

inline uint64_t LoadU64(const Wire& wire, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= static_cast<uint64_t>(wire[at + i]) << (8 * i);
  return value;
}

// Makes the checksum right for what the wire holds, as somebody with bad intentions would.
inline void FixChecksum(Wire& wire) {
  StoreU64(XXH3_64bits(wire.data() + kPayloadBytesAt, wire.size() - kPayloadBytesAt), wire,
           kChecksumAt);
}

}  // namespace filterbench::test

#endif  // FILTERBENCH_FILTERS_TEST_WIRE_H_
