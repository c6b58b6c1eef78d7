#ifndef FILTERBENCH_WORKLOADS_LSM_STORE_H_
#define FILTERBENCH_WORKLOADS_LSM_STORE_H_

// A log-structured merge tree, as small as measuring its point reads allows: a memtable, files that
// it is flushed to, and compactions that merge them. No write-ahead log: what was flushed is
// durable, what is in the memtable is not. One thread.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filters/result.h"
#include "workloads/key_filter.h"
#include "workloads/lsm/files.h"
#include "workloads/lsm/table.h"

namespace filterbench::lsm {

enum class Shape {
  kFiles,       // never compacted: every flush stays a file that overlaps all others
  kLeveled,     // level 0 of flushed files, below it levels of files that do not overlap
  kSizeTiered,  // files of about the same size are merged to one (Cassandra's default)
};
inline constexpr std::string_view kShapeNames[] = {"files", "leveled", "size_tiered"};

// Sizes of levels and of files, as compactions see them, are bytes of keys and values: the tree is
// the same whatever filters its files have.
struct StoreOptions {
  Shape shape = Shape::kLeveled;
  uint64_t memtable_bytes = 4 << 20;  // of keys and values; then it is flushed
  uint32_t block_bytes = 4096;

  // Leveled: level 0 is merged into level 1 when it has `level0_files`; level i >= 1 holds
  // level1_bytes * size_ratio^(i - 1), and a file of what is beyond moves down. Files of these
  // levels are cut at file_bytes.
  uint32_t level0_files = 4;
  uint32_t size_ratio = 10;
  uint64_t level1_bytes = 16 << 20;
  uint64_t file_bytes = 4 << 20;

  // Size-tiered, as Cassandra's SizeTieredCompactionStrategy: files whose size is between
  // bucket_low and bucket_high times the mean of a bucket belong to it, those below min_file_bytes
  // to one; min_threshold of them are merged, at most max_threshold at once, and only files that
  // are adjacent in age (picking.h has why, and what that means).
  uint32_t min_threshold = 4;
  uint32_t max_threshold = 32;
  double bucket_low = 0.5;
  double bucket_high = 1.5;
  uint64_t min_file_bytes = 0;

  // The policy of files that are written to a level, null for none. `deepest`: no deeper level has
  // files; never of files that are flushed. Size-tiered and `files` stores have level 0 alone;
  // deepest is then a merge of all files. Empty: no filters.
  std::function<const FilterPolicy*(int level, bool deepest)> policy_of;
  // By its identity, the policy of a file that is read; null if it is not known. Needed where
  // policy_of has more than one.
  std::function<const FilterPolicy*(std::string_view identity)> policy_named;
  uint32_t prefix_bytes = 0;  // see TableFormat
  bool direct_io = false;
  bool filters_in_memory = true;
  uint64_t hash_seed = 0;
  uint64_t filter_seed = 0;   // of file n: derived from this and n
  Files* files = nullptr;     // outlives the store
  std::function<void()> alive = [] {};  // called between files of a compaction
};

// A sorted run: files that do not overlap, of which a get asks one. A level below 0 is one run;
// every file of level 0, and of a store without levels, is one by itself.
struct RunInfo {
  int level = 0;
  uint64_t files = 0;
  uint64_t entries = 0;
  uint64_t file_bytes = 0;
  uint64_t filter_bytes = 0;
  uint64_t filter_keys = 0;
  uint64_t unusable_filters = 0;  // files written with one that cannot be used
};

// What writing cost since the store was opened. RebuildFilters counts in entries_written and in
// what is about filters.
struct WriteFacts {
  uint64_t flushes = 0;
  uint64_t compactions = 0;
  uint64_t user_bytes = 0;        // of keys and values put
  uint64_t flushed_bytes = 0;     // of files
  uint64_t compacted_bytes = 0;   // written by compactions
  uint64_t entries_written = 0;   // to files, each time one is
  uint64_t tombstones_dropped = 0;
  uint64_t filter_builds = 0;
  uint64_t filter_keys = 0;       // over all builds
  double filter_build_ns = 0;     // of these
  double flush_ns = 0;            // filters included
  double compaction_ns = 0;
  uint64_t largest_filter_peak_bytes = 0;
};

// Counters of one get or of many: one per sorted run, in the order of runs().
struct ReadStats {
  std::vector<ReadCounters> runs;
  uint64_t memtable_hits = 0;
  ReadPhases phases;
  bool time_phases = false;

  ReadCounters total() const;
};

class Store {
 public:
  // An empty directory becomes an empty store; else what was flushed to it. Files that a crash left
  // behind and that belong to nothing are removed. The error names the file that is damaged.
  static Result<std::unique_ptr<Store>> Open(const std::filesystem::path& directory,
                                             const StoreOptions& options);
  virtual ~Store() = default;

  virtual std::optional<Error> Put(std::string_view key, std::string_view value) = 0;
  virtual std::optional<Error> Delete(std::string_view key) = 0;
  // The memtable to a file of level 0, and what compactions then are due.
  virtual std::optional<Error> Flush() = 0;
  // Everything, the memtable too, into one sorted run of the deepest level that its size needs (or
  // one file).
  virtual std::optional<Error> CompactAll() = 0;
  // All files written again as they are, with the filters that policy_of now gives.
  virtual std::optional<Error> RebuildFilters() = 0;

  // Memtable, then the runs from the newest to the oldest, until one has a version. `stats` may be
  // null. Whether it was found; `value` may be null.
  virtual Result<bool> Get(std::string_view key, std::string* value, ReadStats* stats) = 0;
  // Live entries from the first that is not less than `first`, in order, until `use` returns
  // false. Opens every run.
  virtual std::optional<Error> Scan(
      std::string_view first, ReadStats* stats,
      const std::function<bool(std::string_view key, std::string_view value)>& use) = 0;
  // Live entries whose keys begin with `prefix`. Where the prefix has prefix_bytes bytes, files
  // whose filter of prefixes says no are not opened.
  virtual std::optional<Error> ScanPrefix(
      std::string_view prefix, ReadStats* stats,
      const std::function<bool(std::string_view key, std::string_view value)>& use) = 0;

  virtual std::vector<RunInfo> runs() const = 0;       // from the newest to the oldest
  // The files of a run, in the order of their keys; valid until the store is written to.
  virtual std::vector<const Table*> tables(size_t run) const = 0;
  virtual const WriteFacts& write_facts() const = 0;
  virtual uint64_t memtable_entries() const = 0;
  // Files whose filters cannot be used, one line each with the reason.
  virtual std::vector<std::string> warnings() const = 0;
  virtual void DropFromPageCache() const = 0;
};

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_STORE_H_
