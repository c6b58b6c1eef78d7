#include "workloads/lsm/rocksdb_get.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/sst_file_reader.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include "filters/hash.h"
#include "workloads/key_bytes.h"
#include "workloads/lookups.h"
#include "workloads/lsm/gets.h"
#include "workloads/lsm/rocksdb_policy.h"

namespace filterbench {
namespace {

enum class Shape { kFiles, kLeveled };
enum class PresentKeys { kAny, kOldest };
enum class Reads { kDirect, kCached };
constexpr std::array<std::string_view, 2> kShapeNames = {"files", "leveled"};

// Leveled as the store of this project is shaped: level 1 is as large as the files of level 0 that
// are merged into it, each level below ten times as large.
constexpr int kLevel0Files = 4;
constexpr int kSizeRatio = 10;
constexpr uint64_t kBlockBytes = 4096;
constexpr uint64_t kKeysBetweenSignsOfLife = 1 << 15;

struct Description {
  struct Params {
    Shape shape = Shape::kFiles;
    uint32_t files = 8;
    uint64_t memtable_keys = 4096;
    uint32_t value_bytes = 100;
    PresentKeys present_keys = PresentKeys::kAny;
    Reads reads = Reads::kDirect;
    uint32_t optimize_filters_for_hits = 0;
    uint64_t operations = 20'000;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"shape", &Params::shape, kShapeNames,
             "files: each flush stays a file of level 0 that overlaps all others; leveled: "
             "compacted by RocksDB"},
      Knob<Params, uint32_t>{"files", &Params::files, 1, 64, "number of files, of the shape files"},
      Knob<Params, uint64_t>{"memtable_keys", &Params::memtable_keys, 16, 100'000'000,
                             "entries until the memtable is flushed, of the shape leveled"},
      Knob<Params, uint32_t>{"value_bytes", &Params::value_bytes, 0, 3000, "size of a value"},
      Choice{"present_keys", &Params::present_keys,
             std::array<std::string_view, 2>{"any", "oldest"},
             "which of the present keys are asked; oldest: those in the file, or the level, that "
             "is asked last"},
      Choice{"reads", &Params::reads, std::array<std::string_view, 2>{"direct", "cached"},
             "direct: past the page cache (use_direct_reads); cached: everything was read once "
             "before"},
      Knob<Params, uint32_t>{"optimize_filters_for_hits", &Params::optimize_filters_for_hits, 0, 1,
                             "1: as the option of RocksDB, no filter in the last level"},
      Knob<Params, uint64_t>{"operations", &Params::operations, 1, 100'000'000,
                             "per iteration; fewer where a key would be asked twice"},
  };
};
using Knobs = Description::Params;

Error Failed(std::string_view what, const rocksdb::Status& status) {
  return Error{fmt::format("rocksdb: {}: {}", what, status.ToString())};
}

// Counts the files that loading writes; called by the engine's threads.
class WrittenFiles final : public rocksdb::EventListener {
 public:
  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) override {
    if (!info.status.ok()) return;
    bytes_ += info.file_size;
    if (info.table_properties.filter_size != 0) ++filter_builds_;
  }
  uint64_t bytes() const { return bytes_; }
  uint64_t filter_builds() const { return filter_builds_; }

 private:
  std::atomic<uint64_t> bytes_ = 0;
  std::atomic<uint64_t> filter_builds_ = 0;
};

// A file of the loaded database, by its own properties.
struct TableFile {
  std::string path;
  int level = 0;
  uint64_t largest_sequence = 0;
  uint64_t bytes = 0;
  uint64_t entries = 0;
  uint64_t filter_keys = 0;
  uint64_t filter_bytes = 0;
  std::string filter_policy;
  std::string smallest;
  std::string largest;
  std::optional<FprEstimate> fpr;  // what theory says of its filter
};

// From the newest to the oldest; in levels that do not overlap by their keys.
bool IsAskedBefore(const TableFile& a, const TableFile& b) {
  if (a.level != b.level) return a.level < b.level;
  if (a.level == 0) return a.largest_sequence > b.largest_sequence;
  return a.smallest < b.smallest;
}

// A database that was loaded with the keys of a workload, and is opened for reading over and over.
class LoadedDatabase {
 public:
  LoadedDatabase(const WorkloadSetup& setup, const Knobs& knobs, lsm::RocksdbPolicy policy)
      : knobs_(knobs),
        key_set_(*setup.key_set),
        keys_(setup.keys),
        directory_(setup.directory / "rocksdb"),
        policy_(std::move(policy)) {}
  ~LoadedDatabase() {
    db_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  LoadedDatabase(const LoadedDatabase&) = delete;
  LoadedDatabase& operator=(const LoadedDatabase&) = delete;

  std::optional<Error> Load(const WorkloadSetup& setup);
  // Again, as the knobs say; statistics of the engine cost time.
  std::optional<Error> OpenForReads(bool with_statistics);

  // Only while it is open with them.
  rocksdb::Statistics& statistics() const { return *statistics_; }
  bool is_open() const { return db_ != nullptr; }
  rocksdb::DB& db() const { return *db_; }
  const Knobs& knobs() const { return knobs_; }
  uint64_t keys() const { return keys_; }
  std::string KeyOf(uint64_t index) const { return KeyBytes(key_set_, index); }
  uint64_t absent_keys() const { return key_set_.size() - keys_; }
  const std::vector<TableFile>& files() const { return files_; }
  // Whether every file that a get comes to has a filter that it asks.
  bool all_consulted() const;
  // Files that end before a key, and are asked for it none the less: three files or fewer are,
  // where all are of level 0.
  uint64_t FilesAskedBeyondTheirEnd(std::string_view key) const;

  WorkloadFilters filters() const;
  // Indices of the keys in what is asked last, in ascending order.
  Result<std::vector<uint64_t>> IndicesInOldest() const;
  std::vector<Metric> Metrics() const;
  std::map<std::string, std::string> Facts() const;

 private:
  rocksdb::Options OptionsFor(bool loading) const;
  std::optional<Error> Open(const rocksdb::Options& options);
  std::optional<Error> Put(uint64_t index);
  std::optional<Error> Flush(const std::function<void()>& alive);
  std::optional<Error> NoteFiles(const FilterSource& filters, const std::function<void()>& alive);
  std::optional<Error> ReadEverythingOnce() const;

  const Knobs knobs_;
  const KeySet key_set_;
  const uint64_t keys_;
  const std::filesystem::path directory_;
  const lsm::RocksdbPolicy policy_;
  const std::shared_ptr<WrittenFiles> written_ = std::make_shared<WrittenFiles>();
  std::shared_ptr<rocksdb::Statistics> statistics_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<TableFile> files_;
  uint64_t bloom_instead_of_ribbon_ = 0;
  uint64_t user_bytes_ = 0;
};

rocksdb::Options LoadedDatabase::OptionsFor(bool loading) const {
  rocksdb::BlockBasedTableOptions table;
  table.filter_policy = policy_.policy;
  table.whole_key_filtering = true;
  table.format_version = 5;
  table.block_size = kBlockBytes;
  table.checksum = rocksdb::kXXH3;
  // A block that was asked for is read. Filters and indexes belong to the reader of their file,
  // which stays open: they are in memory.
  table.no_block_cache = true;
  table.cache_index_and_filter_blocks = false;
  // A shortened key between two blocks lies beyond the last key of the first one: an absent key
  // between the two would cost two reads.
  table.index_shortening =
      rocksdb::BlockBasedTableOptions::IndexShorteningMode::kNoShortening;

  rocksdb::Options options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.create_if_missing = loading;
  options.error_if_exists = loading;
  options.compression = rocksdb::kNoCompression;
  options.max_open_files = -1;
  options.max_file_opening_threads = 1;
  options.max_background_jobs = 1;
  options.skip_stats_update_on_db_open = true;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  options.info_log_level = rocksdb::WARN_LEVEL;
  // Flushed by the number of entries.
  options.write_buffer_size = size_t{64} << 30;
  options.arena_block_size = size_t{1} << 20;
  options.level0_file_num_compaction_trigger = kLevel0Files;
  options.level0_slowdown_writes_trigger = 1 << 30;
  options.level0_stop_writes_trigger = 1 << 30;
  options.soft_pending_compaction_bytes_limit = 0;
  options.hard_pending_compaction_bytes_limit = 0;
  options.disable_auto_compactions = !loading || knobs_.shape == Shape::kFiles;
  const uint64_t flush_bytes =
      knobs_.memtable_keys * (KeyOf(0).size() + knobs_.value_bytes);
  options.target_file_size_base = flush_bytes;
  options.max_bytes_for_level_base = kLevel0Files * flush_bytes;
  options.max_bytes_for_level_multiplier = kSizeRatio;
  options.optimize_filters_for_hits = knobs_.optimize_filters_for_hits != 0;
  if (loading) {
    options.listeners.push_back(written_);
  } else {
    options.use_direct_reads = knobs_.reads == Reads::kDirect;
  }
  return options;
}

std::optional<Error> LoadedDatabase::Open(const rocksdb::Options& options) {
  db_.reset();
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, directory_.string(), &opened);
  if (!status.ok()) return Failed(fmt::format("open {}", directory_.string()), status);
  db_.reset(opened);
  return std::nullopt;
}

std::optional<Error> LoadedDatabase::OpenForReads(bool with_statistics) {
  rocksdb::Options options = OptionsFor(false);
  db_.reset();
  statistics_ = with_statistics ? rocksdb::CreateDBStatistics() : nullptr;
  options.statistics = statistics_;
  return Open(options);
}

std::optional<Error> LoadedDatabase::Put(uint64_t index) {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  const std::string key = KeyOf(index);
  const std::string value = ValueOf(key, knobs_.value_bytes);
  user_bytes_ += key.size() + value.size();
  const rocksdb::Status status = db_->Put(options, key, value);
  if (!status.ok()) return Failed("put", status);
  return std::nullopt;
}

// The memtable to a file, and all compactions that are due then: which ones the engine makes must
// not depend on how fast its threads are.
std::optional<Error> LoadedDatabase::Flush(const std::function<void()>& alive) {
  rocksdb::FlushOptions options;
  options.wait = true;
  options.allow_write_stall = true;
  if (const rocksdb::Status status = db_->Flush(options); !status.ok()) {
    return Failed("flush", status);
  }
  alive();
  if (knobs_.shape == Shape::kFiles) return std::nullopt;
  const auto property = [&](const std::string& name) -> std::optional<uint64_t> {
    uint64_t value = 0;
    if (!db_->GetIntProperty(name, &value)) return std::nullopt;
    return value;
  };
  for (uint64_t waits = 1;; ++waits) {
    const auto errors = property(rocksdb::DB::Properties::kBackgroundErrors);
    const auto pending = property(rocksdb::DB::Properties::kCompactionPending);
    const auto running = property(rocksdb::DB::Properties::kNumRunningCompactions);
    if (!errors || !pending || !running) {
      return Error{"rocksdb: it does not say whether it still compacts"};
    }
    if (*errors != 0) return Error{"rocksdb: a compaction failed"};
    if (*pending == 0 && *running == 0) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (waits % 1000 == 0) alive();
  }
}

std::optional<Error> LoadedDatabase::Load(const WorkloadSetup& setup) {
  if (auto error = Open(OptionsFor(true))) return error;
  if (knobs_.shape == Shape::kFiles) {
    for (uint32_t file = 0; file < knobs_.files; ++file) {
      for (uint64_t i = file, puts = 1; i < keys_; i += knobs_.files, ++puts) {
        if (auto error = Put(i)) return error;
        if (puts % kKeysBetweenSignsOfLife == 0) setup.alive();
      }
      if (auto error = Flush(setup.alive)) return error;
    }
  } else {
    const std::vector<uint64_t> order =
        MakeLookups(keys_, keys_, keys_, 0, HashBytes("order of puts", setup.seed)).indices;
    for (uint64_t i = 0; i < keys_; ++i) {
      if (auto error = Put(order[i])) return error;
      if (i % kKeysBetweenSignsOfLife == 0) setup.alive();
      if ((i + 1) % knobs_.memtable_keys == 0 || i + 1 == keys_) {
        if (auto error = Flush(setup.alive)) return error;
      }
    }
  }
  if (auto error = NoteFiles(*setup.filters, setup.alive)) return error;
  if (knobs_.reads == Reads::kCached) {
    if (auto error = ReadEverythingOnce()) return error;
  }
  return std::nullopt;
}

std::optional<Error> LoadedDatabase::NoteFiles(const FilterSource& filters,
                                               const std::function<void()>& alive) {
  rocksdb::TablePropertiesCollection collection;
  const rocksdb::Status status = db_->GetPropertiesOfAllTables(&collection);
  if (!status.ok()) return Failed("properties of its files", status);
  std::map<std::string, std::shared_ptr<const rocksdb::TableProperties>> by_name;
  for (const auto& [path, properties] : collection) {
    by_name[std::filesystem::path(path).filename()] = properties;
  }
  std::vector<rocksdb::LiveFileMetaData> live;
  db_->GetLiveFilesMetaData(&live);
  uint64_t entries = 0;
  uint64_t filters_of_files = 0;
  std::map<uint64_t, std::optional<FprEstimate>> fpr_by_keys;
  for (const rocksdb::LiveFileMetaData& file : live) {
    const auto found = by_name.find(std::filesystem::path(file.name).filename());
    if (found == by_name.end()) {
      return Error{fmt::format("rocksdb: {}: it has no properties", file.name)};
    }
    const rocksdb::TableProperties& properties = *found->second;
    TableFile& made = files_.emplace_back(
        TableFile{.path = (directory_ / found->first).string(),
                  .level = file.level,
                  .largest_sequence = file.largest_seqno,
                  .bytes = file.size,
                  .entries = properties.num_entries,
                  .filter_keys = properties.num_filter_entries,
                  .filter_bytes = properties.filter_size,
                  .filter_policy = properties.filter_policy_name,
                  .smallest = file.smallestkey,
                  .largest = file.largestkey});
    entries += made.entries;
    if (made.filter_bytes == 0) continue;
    ++filters_of_files;
    const lsm::RocksdbFilterSize size{.keys = made.filter_keys, .bytes = made.filter_bytes};
    if (lsm::IsBloomInsteadOfRibbon(policy_, size)) ++bloom_instead_of_ribbon_;
    if (!fpr_by_keys.contains(made.filter_keys)) {
      auto expected = lsm::ExpectedFprOfFile(filters, policy_, size);
      if (!expected) return Error{expected.error()};
      fpr_by_keys[made.filter_keys] = *expected;
      alive();
    }
    made.fpr = fpr_by_keys[made.filter_keys];
  }
  if (bloom_instead_of_ribbon_ != 0 && bloom_instead_of_ribbon_ == filters_of_files) {
    return Error{fmt::format("{}its files have {} keys and fewer: RocksDB makes Bloom filters of "
                             "so few, whatever its policy",
                             kNotHere, fpr_by_keys.rbegin()->first)};
  }
  std::sort(files_.begin(), files_.end(), IsAskedBefore);
  if (entries != keys_) {
    return Error{fmt::format("{}rocksdb: its files have {} entries, {} keys were put",
                             kWrongAnswer, entries, keys_)};
  }
  if (knobs_.shape == Shape::kFiles && files_.size() != knobs_.files) {
    return Error{fmt::format("rocksdb: it has {} files instead of {}", files_.size(),
                             knobs_.files)};
  }
  return std::nullopt;
}

std::optional<Error> LoadedDatabase::ReadEverythingOnce() const {
  std::vector<char> chunk(1 << 20);
  for (const TableFile& file : files_) {
    std::unique_ptr<FILE, int (*)(FILE*)> in(std::fopen(file.path.c_str(), "rb"), std::fclose);
    if (in == nullptr) return Error{fmt::format("{}: {}", file.path, std::strerror(errno))};
    while (std::fread(chunk.data(), 1, chunk.size(), in.get()) == chunk.size()) {
    }
    if (std::ferror(in.get()) != 0) return Error{fmt::format("{}: cannot be read", file.path)};
  }
  return std::nullopt;
}

bool LoadedDatabase::all_consulted() const {
  return knobs_.optimize_filters_for_hits == 0 &&
         std::all_of(files_.begin(), files_.end(),
                     [](const TableFile& file) { return file.filter_bytes != 0; });
}

uint64_t LoadedDatabase::FilesAskedBeyondTheirEnd(std::string_view key) const {
  if (files_.size() > 3 || files_.back().level != 0) return 0;
  return std::count_if(files_.begin(), files_.end(),
                       [key](const TableFile& file) { return file.largest < key; });
}

WorkloadFilters LoadedDatabase::filters() const {
  WorkloadFilters all;
  XXH3_state_t digest;
  XXH3_64bits_reset(&digest);
  const auto add = [&](std::string_view text) {
    const uint64_t size = text.size();
    XXH3_64bits_update(&digest, &size, sizeof(size));
    XXH3_64bits_update(&digest, text.data(), text.size());
  };
  for (const TableFile& file : files_) {
    // The engine does not hand out the bits: what they were made of stands for them.
    add(fmt::format("{} {} {} {} {}", file.level, file.filter_policy, file.filter_bytes,
                    file.filter_keys, file.entries));
    add(file.smallest);
    add(file.largest);
    if (file.filter_bytes == 0) continue;
    ++all.filters;
    all.keys += file.filter_keys;
    all.size_bytes += file.filter_bytes;
  }
  all.builds = written_->filter_builds();
  all.digest = fmt::format("{:016x}", XXH3_64bits_digest(&digest));
  return all;
}

Result<std::vector<uint64_t>> LoadedDatabase::IndicesInOldest() const {
  std::vector<uint64_t> hashes;
  const int deepest = files_.back().level;
  for (const TableFile& file : files_) {
    if (file.level != deepest || (deepest == 0 && &file != &files_.back())) continue;
    rocksdb::Options options = OptionsFor(false);
    options.use_direct_reads = false;
    rocksdb::SstFileReader reader(options);
    if (const rocksdb::Status status = reader.Open(file.path); !status.ok()) {
      return Failed(file.path, status);
    }
    const std::unique_ptr<rocksdb::Iterator> at(reader.NewIterator(rocksdb::ReadOptions()));
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      hashes.push_back(HashBytes(at->key().ToStringView(), 0));
    }
    if (!at->status().ok()) return Failed(file.path, at->status());
  }
  std::sort(hashes.begin(), hashes.end());
  std::vector<uint64_t> indices;
  for (uint64_t i = 0; i < keys_; ++i) {
    if (std::binary_search(hashes.begin(), hashes.end(), HashBytes(KeyOf(i), 0))) {
      indices.push_back(i);
    }
  }
  if (indices.size() != hashes.size()) {
    return Error{fmt::format("{}rocksdb: of the {} keys in what is asked last {} were put",
                             kWrongAnswer, hashes.size(), indices.size())};
  }
  return indices;
}

std::vector<Metric> LoadedDatabase::Metrics() const {
  uint64_t bytes = 0;
  for (const TableFile& file : files_) bytes += file.bytes;
  const auto filter_bytes = static_cast<double>(filters().size_bytes);
  return {
      Quantity("store_bytes", static_cast<double>(bytes)),
      Quantity("files", static_cast<double>(files_.size())),
      Quantity("filter_bytes", filter_bytes),
      Quantity("filter_bits_per_key", 8 * filter_bytes / static_cast<double>(keys_)),
      {.name = "write_amplification", .certain = written_->bytes(), .per = user_bytes_},
  };
}

std::map<std::string, std::string> LoadedDatabase::Facts() const {
  std::map<int, uint64_t> files_of_level;
  for (const TableFile& file : files_) ++files_of_level[file.level];
  std::string levels;
  for (const auto& [level, files] : files_of_level) {
    levels += fmt::format("{}{}:{}", levels.empty() ? "" : " ", level, files);
  }
  std::string policy = policy_.policy == nullptr ? "none" : policy_.policy->GetId();
  if (bloom_instead_of_ribbon_ != 0) {
    policy += fmt::format(", {} small files with Bloom filters", bloom_instead_of_ribbon_);
  }
  const bool direct = knobs_.reads == Reads::kDirect;
  return {
      {"engine", "rocksdb " + rocksdb::GetRocksVersionAsString()},
      {"policy", policy},
      {"reads", direct ? "direct" : "cached"},
      {"page_cache", direct ? "bypassed (use_direct_reads)" : "all files were read once before"},
      {"levels", levels},
      {"memtable", "empty"},
      {"options", "no block cache, filters and indexes with the open files, blocks of 4096 bytes, "
                  "format_version 5, no compression, XXH3 checksums verified, whole index keys"},
      {"statistics", "off while timed, on in the counted pass"},
      {"phases", "of the engine's PerfContext, with its own readings of the clock"},
  };
}

// The counters of the engine over some gets, of one level or of all.
struct FilterCounts {
  uint64_t negatives = 0;
  uint64_t maybe_true = 0;
  uint64_t maybe_false = 0;

  uint64_t absent() const { return negatives + maybe_false; }
  uint64_t probes() const { return absent() + maybe_true; }
  bool operator==(const FilterCounts&) const = default;
  FilterCounts& operator+=(const FilterCounts& other) {
    negatives += other.negatives;
    maybe_true += other.maybe_true;
    maybe_false += other.maybe_false;
    return *this;
  }
};

using lsm::Lookup;

class GetRun final : public WorkloadRun {
 public:
  GetRun(LoadedDatabase& database, std::vector<Lookup> lookups)
      : database_(database), lookups_(std::move(lookups)) {}

  uint64_t operations() const override { return lookups_.size(); }
  std::optional<uint64_t> positives_expected() const override {
    return lsm::CountPresent(lookups_);
  }

  // A database that could not be opened after a counted pass is closed.
  std::optional<Error> Reset() override {
    return database_.is_open() ? std::nullopt : database_.OpenForReads(false);
  }

  Result<uint64_t> Iterate() override {
    if (!database_.is_open()) return Error{"rocksdb: the database is closed"};
    uint64_t found = 0;
    rocksdb::PinnableSlice value;
    for (const Lookup& lookup : lookups_) {
      const rocksdb::Status status = Get(lookup, value);
      if (status.ok()) {
        ++found;
      } else if (!status.IsNotFound()) {
        return Failed("get", status);
      }
      value.Reset();
    }
    return found;
  }

  // On a database with the engine's statistics, which is then opened without them again.
  Result<WorkloadReport> Report() override {
    uint64_t asked_in_vain = 0;
    for (const Lookup& lookup : lookups_) {
      // Of present keys that cannot be more than the last ones of two files.
      if (!lookup.present) asked_in_vain += database_.FilesAskedBeyondTheirEnd(lookup.key);
    }
    if (auto error = database_.OpenForReads(true)) return *error;
    rocksdb::PerfContext& perf = *rocksdb::get_perf_context();
    const rocksdb::PerfLevel level_before = rocksdb::GetPerfLevel();
    rocksdb::SetPerfLevel(rocksdb::kEnableTimeExceptForMutex);
    perf.ClearPerLevelPerfContext();
    perf.EnablePerLevelPerfContext();
    perf.Reset();
    const std::optional<Error> wrong = CheckAnswers();
    rocksdb::SetPerfLevel(level_before);
    Result<WorkloadReport> report = wrong ? Result<WorkloadReport>(*wrong)
                                          : ReportOf(perf, database_.statistics(), asked_in_vain);
    perf.ClearPerLevelPerfContext();
    if (auto error = database_.OpenForReads(false); error && report) return *error;
    return report;
  }

 private:
  rocksdb::Status Get(const Lookup& lookup, rocksdb::PinnableSlice& value) {
    return database_.db().Get(read_options_, database_.db().DefaultColumnFamily(), lookup.key,
                              &value);
  }

  std::optional<Error> CheckAnswers() {
    rocksdb::PinnableSlice value;
    for (const Lookup& lookup : lookups_) {
      const rocksdb::Status status = Get(lookup, value);
      if (!status.ok() && !status.IsNotFound()) return Failed("get", status);
      if (auto wrong = lsm::CheckAnswer(lookup, status.ok(), value.ToStringView(),
                                        database_.knobs().value_bytes)) {
        return wrong;
      }
      value.Reset();
    }
    return std::nullopt;
  }

  // As the engine counted in this thread.
  struct Counts {
    uint64_t block_reads = 0;
    std::map<int, FilterCounts> by_level;  // of all levels that have files

    FilterCounts filters() const {
      FilterCounts sum;
      for (const auto& [level, counts] : by_level) sum += counts;
      return sum;
    }
  };

  Counts CountsOf(const rocksdb::PerfContext& perf) const {
    Counts counts{.block_reads = perf.block_read_count};
    for (const TableFile& file : database_.files()) counts.by_level[file.level] = {};
    if (perf.level_to_perf_context == nullptr) return counts;
    for (const auto& [level, of_level] : *perf.level_to_perf_context) {
      counts.by_level[static_cast<int>(level)] = {
          .negatives = of_level.bloom_filter_useful,
          .maybe_true = of_level.bloom_filter_full_true_positive,
          .maybe_false =
              of_level.bloom_filter_full_positive - of_level.bloom_filter_full_true_positive};
    }
    return counts;
  }

  // Of the filters of a level, files of level 0 being asked alike, those of others in proportion to
  // their keys. Nothing where one has no closed form.
  std::optional<FprEstimate> ExpectedOfLevel(int level) const {
    double weights = 0;
    double mean = 0;
    double variance = 0;
    for (const TableFile& file : database_.files()) {
      if (file.level != level || file.filter_bytes == 0) continue;
      if (!file.fpr) return std::nullopt;
      const double weight = level == 0 ? 1 : static_cast<double>(file.entries);
      weights += weight;
      mean += weight * file.fpr->mean;
      variance += std::pow(weight * file.fpr->instance_sd, 2);
    }
    if (weights == 0) return std::nullopt;
    return FprEstimate{.mean = mean / weights, .instance_sd = std::sqrt(variance) / weights};
  }

  // Empty, or why the engine's counters cannot be right.
  std::string BrokenLaw(const rocksdb::PerfContext& perf, const rocksdb::Statistics& statistics,
                        const FilterCounts& total) const {
    const uint64_t useful = statistics.getTickerCount(rocksdb::BLOOM_FILTER_USEFUL);
    const uint64_t positive = statistics.getTickerCount(rocksdb::BLOOM_FILTER_FULL_POSITIVE);
    const uint64_t true_positive =
        statistics.getTickerCount(rocksdb::BLOOM_FILTER_FULL_TRUE_POSITIVE);
    if (FilterCounts{useful, true_positive, positive - true_positive} != total) {
      return fmt::format("its statistics have {} negatives and {} positives, {} of them true, its "
                         "PerfContext {}, {} and {}",
                         useful, positive, true_positive, total.negatives,
                         total.maybe_true + total.maybe_false, total.maybe_true);
    }
    if (perf.index_block_read_count != 0 || perf.filter_block_read_count != 0) {
      return fmt::format("{} index and {} filter blocks were read that ought to be in memory",
                         perf.index_block_read_count, perf.filter_block_read_count);
    }
    if (const uint64_t found = *positives_expected();
        database_.all_consulted() && total.maybe_true != found) {
      return fmt::format("{} keys were found, {} of them by a filter", found, total.maybe_true);
    }
    return {};
  }

  // Block reads and FPR; `asked_in_vain`: filters, by gets that would read nothing anyway.
  void ReportChance(const Counts& all, uint64_t asked_in_vain, WorkloadReport& report) const {
    double expected = 0;
    double variance = 0;
    bool has_expected = true;
    for (const auto& [level, counts] : all.by_level) {
      if (counts.absent() == 0) continue;
      const std::optional<FprEstimate> fpr = ExpectedOfLevel(level);
      has_expected = has_expected && fpr.has_value();
      if (!fpr) continue;
      expected += static_cast<double>(counts.absent()) * fpr->mean;
      variance += std::pow(static_cast<double>(counts.absent()) * fpr->instance_sd, 2);
    }
    const FilterCounts filters = all.filters();
    report.fpr = {.false_positives = filters.maybe_false, .queries = filters.absent()};
    // Not so many where filters were not asked, as those of a file that optimize_filters_for_hits
    // passes over.
    const uint64_t in_vain = std::min(asked_in_vain, filters.absent());
    Metric reads{.name = "block_reads_per_get",
                 .trials = filters.absent() - in_vain,
                 .per = lookups_.size()};
    if (has_expected && filters.absent() != 0) {
      const auto queries = static_cast<double>(filters.absent());
      report.fpr.expected = expected / queries;
      report.fpr.expected_instance_sd = std::sqrt(variance) / queries;
      reads.expected_by_chance = *report.fpr.expected * static_cast<double>(reads.trials);
    }
    // A maybe that is false reads one block, or none where the file ends before the key. Files
    // whose filter is not asked are read as certainly as those that have the key.
    const uint64_t asked = filters.maybe_true + filters.maybe_false;
    reads.by_chance =
        std::min(filters.maybe_false,
                 all.block_reads - std::min(all.block_reads, filters.maybe_true));
    reads.certain = all.block_reads > asked ? all.block_reads - filters.maybe_false
                                              : all.block_reads - reads.by_chance;
    report.metrics.push_back(std::move(reads));
  }

  Result<WorkloadReport> ReportOf(const rocksdb::PerfContext& perf,
                                  const rocksdb::Statistics& statistics,
                                  uint64_t asked_in_vain) const {
    const uint64_t gets = lookups_.size();
    const Counts all = CountsOf(perf);
    const FilterCounts total = all.filters();
    if (const std::string law = BrokenLaw(perf, statistics, total); !law.empty()) {
      return Error{fmt::format("{}counters of RocksDB: {}", kWrongAnswer, law)};
    }
    WorkloadReport report;
    ReportChance(all, asked_in_vain, report);
    report.metrics.push_back({.name = "probes_per_get", .certain = total.probes(), .per = gets});
    report.metrics.push_back(
        {.name = "block_bytes_per_get", .certain = perf.block_read_byte, .per = gets});
    for (Metric& metric : database_.Metrics()) report.metrics.push_back(std::move(metric));

    // Candidates, range skips and index lookups are not counted by the engine.
    report.counters = {{"gets", gets},
                       {"filter_negatives", total.negatives},
                       {"maybe_true", total.maybe_true},
                       {"maybe_false", total.maybe_false},
                       {"probes", total.probes()},
                       {"block_reads", all.block_reads},
                       {"block_bytes", perf.block_read_byte},
                       {"memtable_hits", statistics.getTickerCount(rocksdb::MEMTABLE_HIT)},
                       {"filter_reads", perf.filter_block_read_count}};
    for (const auto& [level, counts] : all.by_level) {
      report.parts.push_back({{"level", level},
                              {"filter_negatives", counts.negatives},
                              {"maybe_true", counts.maybe_true},
                              {"maybe_false", counts.maybe_false},
                              {"probes", counts.probes()}});
    }
    const auto per_get = [&](uint64_t ns) {
      return static_cast<double>(ns) / static_cast<double>(gets);
    };
    const uint64_t block_ns = perf.block_read_time + perf.block_checksum_time;
    const uint64_t files_ns = perf.get_from_output_files_time;
    report.phases_ns = {
        {"block", per_get(block_ns)},
        {"filter_index_search", per_get(files_ns > block_ns ? files_ns - block_ns : 0)}};
    // An empty memtable is not timed.
    if (perf.get_from_memtable_count != 0) {
      report.phases_ns["memtable"] = per_get(perf.get_from_memtable_time);
    }
    report.facts = database_.Facts();
    return report;
  }

  LoadedDatabase& database_;
  const std::vector<Lookup> lookups_;
  const rocksdb::ReadOptions read_options_;
};

class GetState final : public WorkloadState {
 public:
  // `present`: the indices of the keys that are asked; empty for all.
  GetState(std::unique_ptr<LoadedDatabase> database, std::vector<uint64_t> present)
      : database_(std::move(database)), present_(std::move(present)) {}

  WorkloadFilters filters() const override { return database_->filters(); }

  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double> negative_share,
                                             uint64_t seed) override {
    auto lookups =
        lsm::DrawGets({.keys = database_->keys(),
                       .present = present_,
                       .absent = database_->absent_keys(),
                       .operations = database_->knobs().operations,
                       .negative_share = negative_share.value_or(0),
                       .seed = seed,
                       .key_of = [this](uint64_t index) { return database_->KeyOf(index); }});
    if (!lookups) return Error{lookups.error()};
    return std::unique_ptr<WorkloadRun>(std::make_unique<GetRun>(*database_, std::move(*lookups)));
  }

 private:
  std::unique_ptr<LoadedDatabase> database_;
  std::vector<uint64_t> present_;
};

// Empty, or why files of this directory cannot be read past the page cache.
std::string WhyNoDirectReads(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "direct_read_probe";
  const int created = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (created < 0) return fmt::format("{}: {}", path.string(), std::strerror(errno));
  ::close(created);
  const int opened = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  std::string problem;
  if (opened < 0) {
    problem = fmt::format("{}: cannot be opened with O_DIRECT: {}", directory.string(),
                          std::strerror(errno));
  } else {
    ::close(opened);
  }
  ::unlink(path.c_str());
  return problem;
}

class RocksdbGet final : public WorkloadWithKnobs<Description> {
 public:
  std::string_view name() const override { return "rocksdb_get"; }
  std::string_view description() const override {
    return "point reads of a RocksDB with its own filters: lsm_get on a real engine";
  }
  std::string_view operation() const override { return "get"; }
  bool has_negative_share() const override { return true; }

  std::string Contradiction(const nlohmann::json& json, uint64_t keys) const override {
    const Knobs knobs = Parse(json);
    const Knobs usual;
    if (keys == 0) return "keys: a database without keys has no files";
    if (knobs.shape == Shape::kFiles) {
      if (knobs.memtable_keys != usual.memtable_keys) {
        return "memtable_keys: means nothing for the shape files, whose files share the keys "
               "evenly";
      }
      if (knobs.files > keys) {
        return fmt::format("files: {} files need more than {} keys", knobs.files, keys);
      }
      return {};
    }
    if (knobs.files != usual.files) return "files: means nothing for the shape leveled";
    if (knobs.memtable_keys > keys) {
      return fmt::format("memtable_keys: {} entries are more than all {} keys",
                         knobs.memtable_keys, keys);
    }
    return {};
  }
  std::string WhyNotWith(std::string_view filter, const nlohmann::json& params,
                         bool) const override {
    return lsm::WhyNoRocksdbPolicy(filter, params);
  }

  Cost EstimateCost(const nlohmann::json& json, uint64_t keys) const override {
    const Knobs knobs = Parse(json);
    const auto n = static_cast<double>(keys);
    const bool leveled = knobs.shape == Shape::kLeveled;
    const double memtable = leveled ? static_cast<double>(knobs.memtable_keys) : n / knobs.files;
    constexpr double kKeyBytes = 64;  // with what a memtable keeps beside it
    constexpr double kFilterAndIndexBytes = 3;
    constexpr double kLookupBytes = 64;
    constexpr double kOpenSeconds = 0.1;
    const auto operations = static_cast<double>(knobs.operations);
    return {.memory_bytes = memtable * (kKeyBytes + knobs.value_bytes) +
                            n * (kFilterAndIndexBytes + (leveled ? sizeof(uint64_t) : 0)) +
                            operations * kLookupBytes,
            .prepare_seconds = kOpenSeconds + n * (leveled ? 10e-6 : 4e-6),
            .iteration_seconds = operations * (knobs.reads == Reads::kDirect ? 50e-6 : 5e-6)};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    const Knobs knobs = Parse(setup.knobs);
    if (std::string reason =
            lsm::WhyNoRocksdbPolicy(setup.filters->filter(), setup.filters->params());
        !reason.empty()) {
      return Error{fmt::format("{}{}", kNotHere, reason)};
    }
    if (knobs.reads == Reads::kDirect) {
      if (std::string reason = WhyNoDirectReads(setup.directory); !reason.empty()) {
        return Error{fmt::format("{}reads: {}", kNotHere, reason)};
      }
    }
    auto policy = lsm::MakeRocksdbPolicy(
        *setup.filters,
        knobs.shape == Shape::kFiles ? setup.keys / knobs.files : knobs.memtable_keys);
    if (!policy) return Error{policy.error()};
    auto database = std::make_unique<LoadedDatabase>(setup, knobs, std::move(*policy));
    if (auto error = database->Load(setup)) return *error;
    std::vector<uint64_t> present;
    if (knobs.present_keys == PresentKeys::kOldest) {
      auto oldest = database->IndicesInOldest();
      if (!oldest) return Error{oldest.error()};
      present = std::move(*oldest);
    }
    if (auto error = database->OpenForReads(false)) return *error;
    return std::unique_ptr<WorkloadState>(
        std::make_unique<GetState>(std::move(database), std::move(present)));
  }
};

}  // namespace

std::unique_ptr<Workload> MakeRocksdbGet() { return std::make_unique<RocksdbGet>(); }

}  // namespace filterbench
