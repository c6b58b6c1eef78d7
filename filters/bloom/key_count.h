#ifndef FILTERBENCH_FILTERS_BLOOM_KEY_COUNT_H_
#define FILTERBENCH_FILTERS_BLOOM_KEY_COUNT_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "filters/wire.h"

namespace filterbench {

// Refuses a number of keys, each of which sets 1 to `probes` bits, that the set bits of its table
// contradict: the rate that theory derives from it would be wrong. Only where nothing else was.
inline void CheckKeys(WireReader& reader, std::string_view field, uint64_t keys, uint64_t probes,
                      std::span<const std::byte> table) {
  if (!reader.ok()) return;
  uint64_t set = 0;
  for (size_t at = 0; at < table.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, table.data() + at, std::min(sizeof(word), table.size() - at));
    set += static_cast<uint64_t>(std::popcount(word));
  }
  const uint64_t least = (set + probes - 1) / probes;
  if (keys < least || (keys > 0 && set == 0)) {
    reader.Refuse(field, fmt::format("is {}, the table has {} bits set by {} probes of each", keys,
                                     set, probes));
  }
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_KEY_COUNT_H_
