#ifndef FILTERBENCH_FILTERS_WIRE_H_
#define FILTERBENCH_FILTERS_WIRE_H_

// The serialized form of every filter: a header, then the filter's own fields in the order in which
// it writes them. All numbers are little-endian.
//
//   offset  bytes  field
//        0      8  magic "FLTRBNC1"
//        8      8  checksum: XXH3-64 of everything from offset 16 to the end
//       16      8  payload_bytes: what follows the header
//       24      4  version: of this header and of the filter's fields
//       28     36  filter: its name, padded with NUL
//       64      -  payload
//
// The checksum finds damage, not malice: a reader checks every field against its own bounds too,
// before anything is allocated.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "filters/result.h"
#include "filters/table.h"

namespace filterbench {

class WireWriter {
 public:
  WireWriter(std::string_view filter, uint32_t version);

  WireWriter& U64(uint64_t value);
  WireWriter& F64(double value);
  // Length first, then the bytes.
  WireWriter& Bytes(std::span<const std::byte> bytes);

  std::vector<std::byte> Finish() &&;

 private:
  std::vector<std::byte> out_;
};

// Reads fields in the order in which they were written. The first thing that is wrong sticks: all
// later reads return zeros, and error() names the field.
class WireReader {
 public:
  WireReader(std::span<const std::byte> wire, std::string_view filter, uint32_t version);

  // A value outside [low, high] is an error that names the field.
  uint64_t U64(std::string_view field, uint64_t low, uint64_t high);
  double F64(std::string_view field, double low, double high);
  // A table of exactly `expected_bytes`; nothing is allocated unless the input holds that many.
  AlignedTable Table(std::string_view field, uint64_t expected_bytes);

  // For what only the filter can check.
  void Refuse(std::string_view field, std::string_view problem);
  // To be called after the last field: bytes left over are an error.
  void ExpectEnd();

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }

 private:
  std::span<const std::byte> rest_;
  std::string error_;
};

// All knobs and the seed of a filter, in the order of its knobs.
template <class F>
void WriteParams(WireWriter& writer, const typename F::Params& params) {
  writer.U64(params.seed);
  std::apply(
      [&](const auto&... knob) {
        (
            [&] {
              using Value = typename std::remove_cvref_t<decltype(knob)>::Value;
              if constexpr (std::is_floating_point_v<Value>) {
                writer.F64(params.*knob.member);
              } else {
                writer.U64(static_cast<uint64_t>(params.*knob.member));
              }
            }(),
            ...);
      },
      F::kKnobs);
}

template <class F>
typename F::Params ReadParams(WireReader& reader) {
  typename F::Params params;
  params.seed = reader.U64("seed", 0, UINT64_MAX);
  std::apply(
      [&](const auto&... knob) {
        (
            [&] {
              using Value = typename std::remove_cvref_t<decltype(knob)>::Value;
              if constexpr (std::is_floating_point_v<Value>) {
                params.*knob.member = reader.F64(knob.name, knob.low, knob.high);
              } else if constexpr (std::is_enum_v<Value>) {
                params.*knob.member =
                    static_cast<Value>(reader.U64(knob.name, 0, knob.choices.size() - 1));
              } else {
                params.*knob.member =
                    static_cast<Value>(reader.U64(knob.name, knob.low, knob.high));
              }
            }(),
            ...);
      },
      F::kKnobs);
  return params;
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_WIRE_H_
