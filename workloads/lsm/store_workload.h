#ifndef FILTERBENCH_WORKLOADS_LSM_STORE_WORKLOAD_H_
#define FILTERBENCH_WORKLOADS_LSM_STORE_WORKLOAD_H_

// What the workloads on the store have in common: the knobs that shape it, loading it, what its
// filters are, and how the counters of its reads become a report.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/fpr.h"
#include "filters/params.h"
#include "filters/result.h"
#include "workloads/key_filter.h"
#include "workloads/lsm/files.h"
#include "workloads/lsm/store.h"
#include "workloads/workload.h"

namespace filterbench::lsm {

enum class FilterLevels { kAll, kButLast, kNone };
enum class BitsAllocation { kUniform, kMonkey };
enum class FilterMemory { kResident, kReadEachTime };
enum class Reads { kDirect, kCached };

// The Params of every workload on the store derive from this; which of the knobs a workload has is
// said by its kKnobs, the others keep their defaults.
struct StoreKnobs {
  Shape shape = Shape::kFiles;
  uint32_t files = 8;
  uint32_t size_ratio = 0;
  uint64_t memtable_keys = 4096;
  uint32_t value_bytes = 100;
  FilterLevels filter_levels = FilterLevels::kAll;
  BitsAllocation bits_allocation = BitsAllocation::kUniform;
  FilterMemory filter_memory = FilterMemory::kResident;
  Reads reads = Reads::kDirect;
  uint64_t operations = 20'000;
};

template <class Params>
constexpr auto ShapeKnobs() {
  return std::tuple{
      Choice<Params, Shape, 3>{"shape", &Params::shape, std::to_array(kShapeNames),
                               "files: each flush stays a file that overlaps all others; leveled "
                               "and size_tiered: compacted"},
      Knob<Params, uint32_t>{"size_ratio", &Params::size_ratio, 0, 64,
                             "leveled: of a level to the one above; size_tiered: files that are "
                             "merged at once; 0 takes what Cassandra does, 10 and 4"},
      Knob<Params, uint64_t>{"memtable_keys", &Params::memtable_keys, 16, 100'000'000,
                             "entries until the memtable is flushed"},
      Knob<Params, uint32_t>{"value_bytes", &Params::value_bytes, 0, 3000, "size of a value"},
  };
}
template <class Params>
constexpr auto FilesKnob() {
  return Knob<Params, uint32_t>{"files", &Params::files, 1, 64,
                                "number of files, of the shape files"};
}
template <class Params>
constexpr auto FilterLevelsKnob() {
  return Choice<Params, FilterLevels, 3>{
      "filter_levels",
      &Params::filter_levels,
      {"all", "but_last", "none"},
      "which levels have filters; but_last: as optimize_filters_for_hits of RocksDB"};
}
template <class Params>
constexpr auto BitsAllocationKnob() {
  return Choice<Params, BitsAllocation, 2>{
      "bits_allocation",
      &Params::bits_allocation,
      {"uniform", "monkey"},
      "monkey: more bits per key for smaller levels, at the same number of bits altogether"};
}
template <class Params>
constexpr auto FilterMemoryKnob() {
  return Choice<Params, FilterMemory, 2>{
      "filter_memory",
      &Params::filter_memory,
      {"resident", "read_each_time"},
      "read_each_time: filters were evicted from memory, each probe reads one first"};
}
template <class Params>
constexpr auto ReadsKnob() {
  return Choice<Params, Reads, 2>{"reads",
                                  &Params::reads,
                                  {"direct", "cached"},
                                  "direct: past the page cache; cached: everything was read once "
                                  "before"};
}
template <class Params>
constexpr auto OperationsKnob() {
  return Knob<Params, uint64_t>{"operations", &Params::operations, 1, 100'000'000,
                                "per iteration; fewer where a key would be asked twice"};
}

// Why knobs contradict each other or the number of keys; empty if they do not. `has_files`: whether
// the shape files is made of a number of files; otherwise it is flushed as the others are.
std::string ContradictionOf(const StoreKnobs& knobs, uint64_t keys, bool has_files);

// A uniform sequence that is the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t range);

 private:
  uint64_t state_;
};
// 0..n-1 in a seeded order.
std::vector<uint64_t> ShuffledIndices(uint64_t n, uint64_t seed);
// Independent seeds for the different things that are drawn.
uint64_t SeedFor(uint64_t seed, std::string_view what);

// Which policy the files of which level are written with; changes between loading and rebuilding.
class PolicySet {
 public:
  // The same for all levels; null for none.
  void SetUniform(const FilterPolicy* policy, bool but_deepest);
  // By level; levels that are not in it have none.
  void SetByLevel(std::map<int, const FilterPolicy*> by_level);

  const FilterPolicy* Of(int level, bool deepest) const;
  const FilterPolicy* Named(std::string_view identity) const;

 private:
  const FilterPolicy* uniform_ = nullptr;
  bool but_deepest_ = false;
  std::map<int, const FilterPolicy*> by_level_;
};

// The filter of the catalogue that stands for none: the store then has no filters at all.
inline constexpr std::string_view kNoFilter = "always_maybe";
// The policy of levels with filters; null where there are none.
const FilterPolicy* PolicyOf(const StoreKnobs& knobs, const FilterSource& filters);

// Options of a store for the knobs; `entry_bytes` is the mean size of a key with its value.
StoreOptions OptionsFor(const StoreKnobs& knobs, double entry_bytes, uint64_t seed,
                        std::shared_ptr<const PolicySet> policies);

// A file as its readers see it.
struct FileFacts {
  std::string largest;  // key
  std::optional<FprEstimate> fpr;  // of the filter that lookups of absent keys ask
};

// The filters of a store that keeps them in memory, and of each file of each run (in the order of
// Store::runs()) what is needed to say what they ought to do.
struct StoreFacts {
  WorkloadFilters filters;
  std::vector<RunInfo> runs;
  std::vector<std::vector<FileFacts>> files;
  uint64_t file_bytes = 0;
  uint64_t number_of_files = 0;
};
// `prefix_bytes`: of the prefixes whose filters lookups ask; 0 if they ask those of whole keys.
Result<StoreFacts> FactsOf(const Store& store, uint32_t prefix_bytes);
// "0:4 1:10 2:37": the number of files by level.
std::string LevelsOf(const Store& store);

// A store that was loaded with the keys of a workload.
class LoadedStore {
 public:
  struct Plan {
    StoreKnobs knobs;
    uint64_t keys = 0;
    // Keys by index; those from `keys` on are absent.
    std::function<std::string(uint64_t index)> key_of;
    // So many keys of successive indices go to one file, one after another.
    uint64_t rows_together = 1;
    uint32_t prefix_bytes = 0;  // filters of prefixes, which lookups ask; 0: none
  };
  // Group i of shape files is in file i % files, of other shapes groups are put in a seeded order.
  // The memtable is
  // flushed at the end. The store keeps its filters in memory and reads through the page cache
  // until OpenForReads. A store with a filter that it cannot use is an error.
  static Result<std::unique_ptr<LoadedStore>> Load(const WorkloadSetup& setup, Plan plan);

  // Of the keys in the last run that a get comes to, the indices in ascending order.
  Result<std::vector<uint64_t>> IndicesInOldestRun() const;
  // Opened as the knobs say, with the page cache as they say; also to forget what was put since.
  std::optional<Error> OpenForReads();
  // An error where a filter turned out to be unusable: what was measured is no store with filters.
  std::optional<Error> CheckFilters() const;

  Store& store() const { return *store_; }
  const StoreFacts& facts() const { return facts_; }
  const StoreKnobs& knobs() const { return plan_.knobs; }
  uint64_t keys() const { return plan_.keys; }
  std::string KeyOf(uint64_t index) const { return plan_.key_of(index); }
  const WriteFacts& written() const { return written_; }  // by puts, flushes and compactions

  // How reads are done, the shape, the memtable: for reports.
  std::map<std::string, std::string> ReportFacts() const;
  // store_bytes, files, filter_bytes, filter_bits_per_key, write_amplification.
  std::vector<Metric> ReportMetrics() const;

 private:
  LoadedStore() = default;
  std::optional<Error> PutAll(const WorkloadSetup& setup);
  std::optional<Error> AllocateFilters(FilterSource& filters);
  std::optional<Error> ReadEverythingOnce() const;

  Plan plan_;
  std::filesystem::path directory_;
  std::unique_ptr<Files> files_;
  std::shared_ptr<PolicySet> policies_;
  StoreOptions options_;
  std::unique_ptr<Store> store_;
  StoreFacts facts_;
  WriteFacts written_;
};

// Written bytes, those of flushes and compactions, over the bytes that were put.
Metric WriteAmplification(const WriteFacts& written);
// A sum over operations as a mean.
Metric PerOperation(std::string name, uint64_t sum, uint64_t operations);

// What gets, or scans, of a store did, added up one by one.
class ReadAccount {
 public:
  explicit ReadAccount(const StoreFacts& facts);

  // `one`: what one get of `key` counted, or one scan of the prefix.
  void Add(std::string_view key, const std::vector<ReadCounters>& one);

  const ReadCounters& total() const { return total_; }
  uint64_t operations() const { return operations_; }
  // Why the counters contradict themselves; empty if they do not.
  std::string BrokenLaw() const;

  std::map<std::string, uint64_t> Counters() const;
  nlohmann::json Parts() const;
  WorkloadReport::Fpr Fpr() const;
  // Mean nanoseconds per get by phase, what the clock itself costs taken off.
  std::map<std::string, double> PhasesPerGet(const ReadPhases& phases) const;
  // Reads of data blocks, those after a false positive being by chance.
  Metric BlockReads(std::string name) const;

 private:
  // Expected false positives; nothing where a filter that was asked has no closed form.
  std::optional<double> ExpectedFalsePositives() const;

  const StoreFacts& facts_;
  uint64_t operations_ = 0;
  ReadCounters total_;
  std::vector<ReadCounters> runs_;
  // Of each file of each run: how often its filter was asked for a key that the file has not.
  std::vector<std::vector<uint64_t>> absent_asked_;
};

// Estimates (Workload::EstimateCost).
double EstimatedLoadSeconds(const StoreKnobs& knobs, uint64_t keys);
double EstimatedGetSeconds(const StoreKnobs& knobs, uint64_t keys);
// Of loading: the memtable, the order of the puts, and all filters.
double EstimatedMemoryBytes(const StoreKnobs& knobs, uint64_t keys);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_STORE_WORKLOAD_H_
