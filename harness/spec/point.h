#ifndef FILTERBENCH_HARNESS_SPEC_POINT_H_
#define FILTERBENCH_HARNESS_SPEC_POINT_H_

// A point: one thing that is measured, as a plain value. Two runs speak of the same point if and
// only if their canonical JSON is equal.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "filters/pages.h"
#include "filters/result.h"
#include "workloads/keys.h"

namespace filterbench {

enum class Mode {
  kBuild,          // building the filter: ns per key
  kLookupBatched,  // the filter's batched kernel over a stream: ns per lookup
  kLookupSingle,   // one key at a time, by the target's instructions, lookups free to overlap
  kLatency,        // a chain in which each lookup waits for the answer before it
  kReference,      // the scalar reference one key at a time, compiled for the target
  kOverfill,       // inserting key by key, to and beyond what the filter was sized for: ns per key
  kInsert,         // inserting the last keys before a fill: ns per key of these
  kWorkload,       // an application that uses filters (workloads/workload.h): ns per operation of it
};
inline constexpr std::string_view kModeNames[] = {
    "build", "lookup_batched", "lookup_single", "latency", "lookup_reference", "overfill",
    "insert", "workload"};

// Whether a mode is about inserting key by key, so that it has a fill.
constexpr bool IsFilling(Mode mode) { return mode == Mode::kOverfill || mode == Mode::kInsert; }

// Whether a mode asks one filter for keys, so that it has a share of negatives.
constexpr bool IsLookup(Mode mode) {
  return mode != Mode::kBuild && mode != Mode::kWorkload && !IsFilling(mode);
}

// Whether a mode can be asked of several threads at once.
constexpr bool MayHaveThreads(Mode mode) {
  return mode == Mode::kLookupBatched || mode == Mode::kLookupSingle;
}

enum class Hashing {
  kPrehashed,  // the stream holds hashes
  kXxh3U64,    // each lookup hashes an integer key first
  kXxh3Bytes,  // each lookup hashes its byte string first
};
inline constexpr std::string_view kHashingNames[] = {"prehashed", "xxh3_u64", "xxh3_bytes"};

struct Point {
  std::string filter;
  std::optional<std::string> preset;  // filters/presets.json, where the spec named one
  nlohmann::json params;  // all knobs of the filter, defaults filled in, without the seed
  uint64_t keys = 0;  // that the filter is sized for
  KeySetSpec key_set;
  Mode mode = Mode::kLookupBatched;
  // Keys given over `keys`: the filter is made empty and filled key by key until it refuses one.
  // Nothing where it is built from `keys` keys at once. Always there where
  // IsFilling(mode).
  std::optional<double> fill;
  // Absent keys over lookups; only where IsLookup(mode), and in mode workload where its operations
  // have one.
  std::optional<double> negative_share;
  Hashing hashing = Hashing::kPrehashed;
  std::string target;
  // Of the filter's tables (filters/pages.h). Nothing: those of 2 MiB and more ask for transparent
  // huge pages, smaller ones come from the heap.
  std::optional<Pages> pages = std::nullopt;
  // How many threads look keys up in the one filter at the same time, 2 or more; only where
  // MayHaveThreads(mode). Nothing: one.
  std::optional<uint64_t> threads = std::nullopt;
  // {"name": ..., all knobs of the workload}; there if and only if the mode is workload. `hashing`
  // then says nothing: a workload hashes keys as the application does.
  std::optional<nlohmann::json> workload = std::nullopt;

  bool operator==(const Point&) const = default;
};

nlohmann::json PointToJson(const Point& point);
// For records written by this program; the error names the field.
Result<Point> PointFromJson(const nlohmann::json& json);

// XXH3-64 of the canonical JSON (sorted keys, no blanks), 16 hex digits.
std::string PointId(const Point& point);

nlohmann::json KeySetToJson(const KeySetSpec& key_set);
Result<KeySetSpec> KeySetFromJson(const nlohmann::json& json);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_SPEC_POINT_H_
