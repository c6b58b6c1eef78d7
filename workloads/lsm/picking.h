#ifndef FILTERBENCH_WORKLOADS_LSM_PICKING_H_
#define FILTERBENCH_WORKLOADS_LSM_PICKING_H_

// What is compacted next: decisions on sizes and key ranges alone.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/lsm/store.h"

namespace filterbench::lsm {

// [begin, end) of a list of files.
struct Stretch {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
  bool operator==(const Stretch&) const = default;
};

struct FileExtent {
  uint64_t bytes = 0;  // of keys and values
  std::string_view smallest;
  std::string_view largest;
};

// Files of `level` that are merged into those of the next.
struct LeveledPick {
  int level = 0;
  Stretch upper;  // of `level`: all of level 0, one file of a deeper one
  Stretch lower;  // of the next: those that overlap; empty: where the new files belong

  bool operator==(const LeveledPick&) const = default;
};

// Bytes of keys and values that level >= 1 may hold.
uint64_t LevelLimitBytes(int level, const StoreOptions& options);

// Where in a level of files that do not overlap those are that meet [smallest, largest].
Stretch Overlapping(std::span<const FileExtent> level, std::string_view smallest,
                    std::string_view largest);

// `levels` from level 0 on, those below it in the order of their keys. resume_after[i] is the
// largest key of the file that was last picked from level i, empty at first; it is brought up to
// date and grows with the levels. Nothing where no level is beyond its limit.
std::optional<LeveledPick> PickLeveled(const std::vector<std::vector<FileExtent>>& levels,
                                       const StoreOptions& options,
                                       std::vector<std::string>& resume_after);

// Buckets of files of about the same size, as indices of `bytes` in ascending order of size: the
// files in ascending order of size, each into the first bucket whose mean it is strictly between
// bucket_low and bucket_high times of, or into a new one (Cassandra,
// SizeTieredCompactionStrategy.getBuckets).
std::vector<std::vector<size_t>> SizeBuckets(std::span<const uint64_t> bytes,
                                             const StoreOptions& options);

// The files, listed from the newest to the oldest, that are merged to one: of the bucket with the
// smallest mean that has min_threshold of them.
//
// Cassandra merges a bucket wherever its files lie, since each of its cells has a timestamp and a
// read looks at all versions. Here a read ends at the first version, so that the order of the files
// has to be that of their versions, and a merge of files with one between them that does not take
// part would put one of its sides in the wrong place. So what is merged is adjacent in age: from
// the first to the last of at least min_threshold files of a bucket that only smaller files lie
// between, those included; a larger one divides them. At most max_threshold, the oldest.
std::optional<Stretch> PickSizeTiered(std::span<const uint64_t> bytes,
                                      const StoreOptions& options);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_PICKING_H_
