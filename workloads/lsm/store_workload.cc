#include "workloads/lsm/store_workload.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "filters/hash.h"
#include "workloads/key_bytes.h"
#include "workloads/lsm/monkey.h"

namespace filterbench::lsm {
namespace {

// Of a level, that of the shape files being the files.
constexpr uint32_t kLevel0Files = 4;
// Calls of WorkloadSetup::alive: about every tenth of a second.
constexpr uint64_t kKeysBetweenSignsOfLife = 1 << 15;
constexpr uint64_t kReadChunkBytes = 1 << 20;

uint32_t SizeRatioOf(const StoreKnobs& knobs) {
  if (knobs.size_ratio != 0) return knobs.size_ratio;
  return knobs.shape == Shape::kSizeTiered ? 4 : 10;
}

// What direct reads come to: files that were only just written must be on the disk, and not in the
// page cache beside it.
std::optional<Error> WaitUntilOnDisk(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  const bool synced = descriptor >= 0 && ::fsync(descriptor) == 0;
  const int problem = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (synced) return std::nullopt;
  return Error{fmt::format("{}: cannot be written to the disk: {}", file.string(),
                           std::strerror(problem))};
}

// Empty, or why files of this directory cannot be read past the page cache.
std::string WhyNoDirectReads(Files& files, const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "direct_read_probe";
  auto file = files.CreateNew(path);
  if (!file) return file.error();
  const std::vector<std::byte> block(kDirectAlignment);
  std::optional<Error> error = (*file)->Append(block);
  if (!error) error = (*file)->SyncAndClose();
  std::string problem = error ? error->message : std::string();
  if (problem.empty()) {
    if (const auto readable = files.OpenForReading(path, true); !readable) {
      problem = readable.error();
    }
  }
  if (error = files.Remove(path); error && problem.empty()) problem = error->message;
  return problem;
}

// What one reading of the clock costs: the fastest of some batches, since anything that disturbs
// makes it slower.
double ClockReadingNs() {
  using Clock = std::chrono::steady_clock;
  constexpr int kReadings = 1000;
  double fastest = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < 20; ++batch) {
    const Clock::time_point begin = Clock::now();
    Clock::time_point end = begin;
    for (int i = 0; i < kReadings; ++i) end = Clock::now();
    fastest = std::min(fastest, std::chrono::duration<double, std::nano>(end - begin).count());
  }
  return fastest / kReadings;
}

// How fast the FPR of a filter falls with its bits per key, from its own formula: ln(1 / FPR) per
// bit. Nothing where it has none.
Result<double> FprDecay(const FilterPolicy& policy, double bits_per_key) {
  std::vector<uint64_t> hashes(10'000);
  for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = Mix64((i + 1) * kGoldenGamma);
  const auto filter = policy.Build(hashes, 0);
  if (!filter) return Error{filter.error()};
  const std::optional<FprEstimate> fpr = (*filter)->ExpectedFpr();
  if (!fpr || !(fpr->mean > 0 && fpr->mean < 1)) {
    return Error{"has no false-positive rate in closed form"};
  }
  return -std::log(fpr->mean) / bits_per_key;
}

// Different prefixes of the keys of a file.
Result<uint64_t> CountPrefixes(const Table& table, uint32_t prefix_bytes) {
  ReadCounters unused;
  uint64_t prefixes = 0;
  std::string last;
  const auto cursor = table.Seek("", unused);
  for (; cursor->valid(); cursor->Next()) {
    const std::string_view prefix = cursor->key().substr(0, prefix_bytes);
    if (prefixes > 0 && prefix == last) continue;
    ++prefixes;
    last = prefix;
  }
  if (cursor->error()) return *cursor->error();
  return prefixes;
}

nlohmann::json ToJson(const ReadCounters& counters) {
  return {
      {"candidates", counters.candidates},
      {"range_skips", counters.range_skips},
      {"not_consulted", counters.not_consulted},
      {"filter_negatives", counters.filter_negatives},
      {"maybe_true", counters.maybe_true},
      {"maybe_false", counters.maybe_false},
      {"probes", counters.probes()},
      {"index_lookups", counters.index_lookups},
      {"block_reads", counters.block_reads},
      {"block_bytes", counters.block_bytes},
      {"filter_reads", counters.filter_reads},
      {"filter_read_bytes", counters.filter_bytes},
  };
}

}  // namespace

std::string ContradictionOf(const StoreKnobs& knobs, uint64_t keys, bool has_files) {
  const StoreKnobs usual;
  if (keys == 0) return "keys: a store without keys has no files";
  if (knobs.size_ratio == 1) return "size_ratio: must be 0 or at least 2";
  if (knobs.shape == Shape::kFiles) {
    if (knobs.size_ratio != usual.size_ratio) {
      return "size_ratio: means nothing for the shape files, which is never compacted";
    }
    if (knobs.filter_levels == FilterLevels::kButLast) {
      return "filter_levels: but_last means nothing for the shape files, which has one level";
    }
  }
  if (knobs.shape == Shape::kFiles && has_files) {
    if (knobs.memtable_keys != usual.memtable_keys) {
      return "memtable_keys: means nothing for the shape files, whose files share the keys evenly";
    }
    if (knobs.files > keys) {
      return fmt::format("files: {} files need more than {} keys", knobs.files, keys);
    }
  } else {
    if (has_files && knobs.files != usual.files) {
      return fmt::format("files: means nothing for the shape {}",
                         kShapeNames[static_cast<size_t>(knobs.shape)]);
    }
    if (knobs.memtable_keys > keys) {
      return fmt::format("memtable_keys: {} entries are more than all {} keys",
                         knobs.memtable_keys, keys);
    }
  }
  if (knobs.bits_allocation == BitsAllocation::kMonkey) {
    if (knobs.shape != Shape::kLeveled) {
      return "bits_allocation: monkey needs the shape leveled, others have one level";
    }
    if (knobs.filter_levels != FilterLevels::kAll) {
      return "bits_allocation: monkey decides itself which levels have filters: filter_levels must "
             "be all";
    }
  }
  if (knobs.filter_memory == FilterMemory::kReadEachTime &&
      knobs.filter_levels == FilterLevels::kNone) {
    return "filter_memory: there are no filters to read, as filter_levels is none";
  }
  return {};
}

uint64_t Random::Below(uint64_t range) {
  return FastRange64(Mix64(state_ += kGoldenGamma), range);
}

std::vector<uint64_t> ShuffledIndices(uint64_t n, uint64_t seed) {
  std::vector<uint64_t> indices(n);
  std::iota(indices.begin(), indices.end(), 0);
  Random random(seed);
  for (uint64_t i = n; i > 1; --i) std::swap(indices[i - 1], indices[random.Below(i)]);
  return indices;
}

uint64_t SeedFor(uint64_t seed, std::string_view what) { return HashBytes(what, seed); }

void PolicySet::SetUniform(const FilterPolicy* policy, bool but_deepest) {
  uniform_ = policy;
  but_deepest_ = but_deepest;
  by_level_.clear();
}

void PolicySet::SetByLevel(std::map<int, const FilterPolicy*> by_level) {
  uniform_ = nullptr;
  by_level_ = std::move(by_level);
}

const FilterPolicy* PolicySet::Of(int level, bool deepest) const {
  if (const auto at = by_level_.find(level); at != by_level_.end()) return at->second;
  return but_deepest_ && deepest ? nullptr : uniform_;
}

const FilterPolicy* PolicySet::Named(std::string_view identity) const {
  if (uniform_ != nullptr && uniform_->identity() == identity) return uniform_;
  for (const auto& [level, policy] : by_level_) {
    if (policy != nullptr && policy->identity() == identity) return policy;
  }
  return nullptr;
}

const FilterPolicy* PolicyOf(const StoreKnobs& knobs, const FilterSource& filters) {
  const bool none =
      knobs.filter_levels == FilterLevels::kNone || filters.filter() == kNoFilter;
  return none ? nullptr : &filters.policy();
}

StoreOptions OptionsFor(const StoreKnobs& knobs, double entry_bytes, uint64_t seed,
                        std::shared_ptr<const PolicySet> policies) {
  StoreOptions options;
  options.shape = knobs.shape;
  // Flushed by number of entries, so that keys of different lengths make files of as many.
  options.memtable_bytes = std::numeric_limits<uint64_t>::max();
  const auto flush_bytes = static_cast<uint64_t>(
      std::ceil(entry_bytes * static_cast<double>(knobs.memtable_keys)));
  options.level0_files = kLevel0Files;
  options.size_ratio = SizeRatioOf(knobs);
  options.level1_bytes = kLevel0Files * flush_bytes;
  options.file_bytes = flush_bytes;
  options.min_threshold = SizeRatioOf(knobs);
  options.max_threshold = std::max(options.max_threshold, options.min_threshold);
  options.policy_of = [policies](int level, bool deepest) { return policies->Of(level, deepest); };
  options.policy_named = [policies](std::string_view identity) {
    return policies->Named(identity);
  };
  options.hash_seed = SeedFor(seed, "hashes of a store");
  options.filter_seed = SeedFor(seed, "filters of a store");
  return options;
}

Result<StoreFacts> FactsOf(const Store& store, uint32_t prefix_bytes) {
  StoreFacts facts;
  facts.runs = store.runs();
  XXH3_state_t digest;
  XXH3_64bits_reset(&digest);
  WorkloadFilters& all = facts.filters;
  for (size_t run = 0; run < facts.runs.size(); ++run) {
    facts.file_bytes += facts.runs[run].file_bytes;
    std::vector<FileFacts>& files = facts.files.emplace_back();
    for (const Table* table : store.tables(run)) {
      const KeyFilter* asked = prefix_bytes > 0 ? table->prefix_filter() : table->filter();
      files.push_back({.largest = table->facts().largest,
                       .fpr = asked == nullptr ? std::nullopt : asked->ExpectedFpr()});
      for (const KeyFilter* filter : {table->filter(), table->prefix_filter()}) {
        if (filter == nullptr) continue;
        ++all.filters;
        all.size_bytes += filter->SizeInBytes();
        XXH3_64bits_update(&digest, filter->Table().data(), filter->Table().size());
      }
      all.keys += table->facts().filter_keys;
      if (table->prefix_filter() != nullptr) {
        const Result<uint64_t> prefixes = CountPrefixes(*table, prefix_bytes);
        if (!prefixes) return Error{prefixes.error()};
        all.keys += *prefixes;
      }
      all.build_ns = all.build_ns.value_or(0) + table->facts().filter_build_ns;
      if (const auto peak = table->facts().filter_peak_bytes) {
        all.peak_build_bytes = std::max(all.peak_build_bytes.value_or(0), *peak);
      }
    }
    facts.number_of_files += files.size();
  }
  all.builds = all.filters;
  all.digest = fmt::format("{:016x}", XXH3_64bits_digest(&digest));
  return facts;
}

std::string LevelsOf(const Store& store) {
  std::map<int, uint64_t> files;
  for (const RunInfo& run : store.runs()) files[run.level] += run.files;
  std::vector<std::string> levels;
  for (const auto& [level, count] : files) levels.push_back(fmt::format("{}:{}", level, count));
  return fmt::format("{}", fmt::join(levels, " "));
}

Result<std::unique_ptr<LoadedStore>> LoadedStore::Load(const WorkloadSetup& setup, Plan plan) {
  std::unique_ptr<LoadedStore> loaded(new LoadedStore);
  loaded->plan_ = std::move(plan);
  const StoreKnobs& knobs = loaded->plan_.knobs;
  // What is thrown away need not outlive a crash of the machine.
  loaded->files_ = SystemFileCalls(false);
  if (knobs.reads == Reads::kDirect) {
    if (const std::string why = WhyNoDirectReads(*loaded->files_, setup.directory); !why.empty()) {
      return Error{fmt::format("{}reads: direct: {}", kNotHere, why)};
    }
  }
  loaded->directory_ = setup.directory / "store";
  std::error_code error;
  std::filesystem::create_directory(loaded->directory_, error);
  if (error) {
    return Error{fmt::format("{}: {}", loaded->directory_.string(), error.message())};
  }

  const FilterPolicy* policy = PolicyOf(knobs, *setup.filters);
  const bool but_last = knobs.filter_levels == FilterLevels::kButLast;
  loaded->policies_ = std::make_shared<PolicySet>();
  loaded->policies_->SetUniform(policy, but_last);
  const uint64_t sample = std::min<uint64_t>(loaded->plan_.keys, 1000);
  double entry_bytes = knobs.value_bytes;
  for (uint64_t i = 0; i < sample; ++i) {
    entry_bytes += static_cast<double>(loaded->KeyOf(i).size()) / static_cast<double>(sample);
  }
  loaded->options_ = OptionsFor(knobs, entry_bytes, setup.seed, loaded->policies_);
  loaded->options_.prefix_bytes = loaded->plan_.prefix_bytes;
  loaded->options_.files = loaded->files_.get();
  loaded->options_.alive = setup.alive;
  auto store = Store::Open(loaded->directory_, loaded->options_);
  if (!store) return Error{store.error()};
  loaded->store_ = std::move(*store);

  if (const auto problem = loaded->PutAll(setup)) return *problem;
  loaded->written_ = loaded->store_->write_facts();
  if (knobs.bits_allocation == BitsAllocation::kMonkey) {
    // Only the finished shape says how many keys each level has.
    if (const auto problem = loaded->AllocateFilters(*setup.filters)) return *problem;
    if (const auto problem = loaded->store_->RebuildFilters()) return *problem;
  } else if (but_last && policy != nullptr && knobs.shape == Shape::kLeveled) {
    // A level that was the last when its files were written may not be it any more. The last file
    // of a size-tiered store is the one that all files were merged to.
    if (const auto problem = loaded->store_->RebuildFilters()) return *problem;
  }
  if (const auto problem = loaded->CheckFilters()) return *problem;
  auto facts = FactsOf(*loaded->store_, loaded->plan_.prefix_bytes);
  if (!facts) return Error{facts.error()};
  loaded->facts_ = std::move(*facts);
  return loaded;
}

std::optional<Error> LoadedStore::PutAll(const WorkloadSetup& setup) {
  const StoreKnobs& knobs = plan_.knobs;
  uint64_t puts = 0;
  const auto put = [&](uint64_t index) {
    if (++puts % kKeysBetweenSignsOfLife == 0) setup.alive();
    const std::string key = KeyOf(index);
    return store_->Put(key, ValueOf(key, knobs.value_bytes));
  };
  const uint64_t together = plan_.rows_together;
  const uint64_t groups = (plan_.keys + together - 1) / together;
  const auto end_of = [&](uint64_t group) { return std::min((group + 1) * together, plan_.keys); };
  if (knobs.shape == Shape::kFiles) {
    for (uint64_t file = 0; file < knobs.files; ++file) {
      for (uint64_t group = file; group < groups; group += knobs.files) {
        for (uint64_t i = group * together; i < end_of(group); ++i) {
          if (auto error = put(i)) return error;
        }
      }
      if (auto error = store_->Flush()) return error;
    }
    return std::nullopt;
  }
  for (const uint64_t group : ShuffledIndices(groups, SeedFor(setup.seed, "order of puts"))) {
    for (uint64_t i = group * together; i < end_of(group); ++i) {
      if (auto error = put(i)) return error;
    }
    if (store_->memtable_entries() >= knobs.memtable_keys) {
      if (auto error = store_->Flush()) return error;
    }
  }
  return store_->memtable_entries() > 0 ? store_->Flush() : std::nullopt;
}

std::optional<Error> LoadedStore::AllocateFilters(FilterSource& filters) {
  const auto refuse = [&](std::string_view why) {
    return Error{fmt::format("{}bits_allocation: monkey: {}: {}", kNotHere, filters.filter(), why)};
  };
  const auto given = filters.params().find("bits_per_key");
  if (given == filters.params().end()) return refuse("has no parameter bits_per_key");
  const double bits_per_key = given->get<double>();
  // What Monkey's levels get is no whole number.
  if (const auto other = filters.WithBitsPerKey(bits_per_key + 0.5); !other) {
    return refuse(other.error());
  }
  const Result<double> decay = FprDecay(filters.policy(), bits_per_key);
  if (!decay) return refuse(decay.error());

  std::map<int, LevelKeys> by_level;
  for (const RunInfo& run : store_->runs()) {
    LevelKeys& level = by_level[run.level];
    level.level = run.level;
    ++level.runs;
    level.keys += run.entries;
  }
  std::vector<LevelKeys> levels;
  for (const auto& [number, level] : by_level) levels.push_back(level);
  const std::vector<double> bits = MonkeyBitsPerKey(
      levels, bits_per_key, *decay,
      [&](double fewer) { return filters.WithBitsPerKey(fewer).has_value(); });
  std::map<int, const FilterPolicy*> policies;
  for (size_t i = 0; i < levels.size(); ++i) {
    if (bits[i] == 0) continue;
    const auto policy = filters.WithBitsPerKey(bits[i]);
    if (!policy) return refuse(policy.error());
    policies[levels[i].level] = *policy;
  }
  policies_->SetByLevel(std::move(policies));
  return std::nullopt;
}

std::optional<Error> LoadedStore::CheckFilters() const {
  const std::vector<std::string> warnings = store_->warnings();
  if (warnings.empty()) return std::nullopt;
  return Error{fmt::format("{} of the filters cannot be used: {}", warnings.size(),
                           warnings.front())};
}

Result<std::vector<uint64_t>> LoadedStore::IndicesInOldestRun() const {
  std::vector<uint64_t> hashes;
  ReadCounters unused;
  for (const Table* table : store_->tables(store_->runs().size() - 1)) {
    const auto cursor = table->Seek("", unused);
    for (; cursor->valid(); cursor->Next()) hashes.push_back(HashBytes(cursor->key(), 0));
    if (cursor->error()) return *cursor->error();
  }
  std::sort(hashes.begin(), hashes.end());
  std::vector<uint64_t> indices;
  for (uint64_t i = 0; i < plan_.keys; ++i) {
    if (std::binary_search(hashes.begin(), hashes.end(), HashBytes(KeyOf(i), 0))) {
      indices.push_back(i);
    }
  }
  if (indices.size() != hashes.size()) {
    return Error{fmt::format("{}the oldest run has {} entries, but {} of the keys that were put",
                             kWrongAnswer, hashes.size(), indices.size())};
  }
  return indices;
}

std::optional<Error> LoadedStore::ReadEverythingOnce() const {
  const auto names = files_->List(directory_);
  if (!names) return Error{names.error()};
  std::vector<std::byte> chunk(kReadChunkBytes);
  for (const std::string& name : *names) {
    const auto file = files_->OpenForReading(directory_ / name, false);
    if (!file) return Error{file.error()};
    const uint64_t size = (*file)->size();
    for (uint64_t at = 0; at < size; at += kReadChunkBytes) {
      const uint64_t length = std::min(kReadChunkBytes, size - at);
      if (auto error = (*file)->Read(at, std::span(chunk).first(length))) return error;
    }
    options_.alive();
  }
  return std::nullopt;
}

std::optional<Error> LoadedStore::OpenForReads() {
  store_.reset();
  options_.direct_io = plan_.knobs.reads == Reads::kDirect;
  options_.filters_in_memory = plan_.knobs.filter_memory == FilterMemory::kResident;
  if (options_.direct_io) {
    const auto names = files_->List(directory_);
    if (!names) return Error{names.error()};
    for (const std::string& name : *names) {
      if (auto error = WaitUntilOnDisk(directory_ / name)) return error;
    }
  }
  auto store = Store::Open(directory_, options_);
  if (!store) return Error{store.error()};
  store_ = std::move(*store);
  if (options_.direct_io) {
    store_->DropFromPageCache();
  } else if (auto error = ReadEverythingOnce()) {
    return error;
  }
  return CheckFilters();
}

std::map<std::string, std::string> LoadedStore::ReportFacts() const {
  const bool direct = plan_.knobs.reads == Reads::kDirect;
  const uint64_t in_memtable = store_->memtable_entries();
  return {
      {"reads", direct ? "direct" : "cached"},
      {"page_cache", direct ? "bypassed (O_DIRECT)" : "all files were read once before"},
      {"levels", LevelsOf(*store_)},
      {"memtable", in_memtable == 0 ? "empty" : fmt::format("{} entries", in_memtable)},
  };
}

std::vector<Metric> LoadedStore::ReportMetrics() const {
  const auto filter_bytes = static_cast<double>(facts_.filters.size_bytes);
  return {
      Quantity("store_bytes", static_cast<double>(facts_.file_bytes)),
      Quantity("files", static_cast<double>(facts_.number_of_files)),
      Quantity("filter_bytes", filter_bytes),
      Quantity("filter_bits_per_key", 8 * filter_bytes / static_cast<double>(plan_.keys)),
      WriteAmplification(written_),
  };
}

Metric WriteAmplification(const WriteFacts& written) {
  return {.name = "write_amplification",
          .certain = written.flushed_bytes + written.compacted_bytes,
          .per = written.user_bytes,
          .expected_by_chance = std::nullopt,
          .quantity = std::nullopt};
}

Metric PerOperation(std::string name, uint64_t sum, uint64_t operations) {
  return {.name = std::move(name),
          .certain = sum,
          .per = operations,
          .expected_by_chance = std::nullopt,
          .quantity = std::nullopt};
}

ReadAccount::ReadAccount(const StoreFacts& facts)
    : facts_(facts), runs_(facts.runs.size()) {
  for (const auto& files : facts.files) absent_asked_.emplace_back(files.size(), 0);
}

void ReadAccount::Add(std::string_view key, const std::vector<ReadCounters>& one) {
  ++operations_;
  for (size_t run = 0; run < one.size(); ++run) {
    runs_[run] += one[run];
    total_ += one[run];
    const uint64_t absent = one[run].filter_negatives + one[run].maybe_false;
    if (absent == 0) continue;
    // Files of a run do not overlap: the only one whose filter can have been asked.
    const std::vector<FileFacts>& files = facts_.files[run];
    const auto file = std::partition_point(
        files.begin(), files.end(), [&](const FileFacts& facts) { return facts.largest < key; });
    absent_asked_[run][static_cast<size_t>(file - files.begin())] += absent;
  }
}

std::string ReadAccount::BrokenLaw() const {
  for (size_t run = 0; run < runs_.size(); ++run) {
    const ReadCounters& c = runs_[run];
    if (c.candidates != c.range_skips + c.not_consulted + c.probes()) {
      return fmt::format("run {}: {} candidates, but {} range skips, {} without a filter and {} "
                         "probes", run, c.candidates, c.range_skips, c.not_consulted, c.probes());
    }
    if (c.not_consulted > 0 && facts_.runs[run].filter_keys == facts_.runs[run].entries) {
      return fmt::format("run {}: has filters, but {} lookups did without", run, c.not_consulted);
    }
    if (c.block_reads < c.maybe_false) {
      return fmt::format("run {}: {} false positives, but {} block reads", run, c.maybe_false,
                         c.block_reads);
    }
  }
  return {};
}

std::map<std::string, uint64_t> ReadAccount::Counters() const {
  std::map<std::string, uint64_t> counters;
  const nlohmann::json json = ToJson(total_);
  for (const auto& item : json.items()) counters[item.key()] = item.value().get<uint64_t>();
  return counters;
}

nlohmann::json ReadAccount::Parts() const {
  nlohmann::json parts = nlohmann::json::array();
  for (size_t run = 0; run < runs_.size(); ++run) {
    const RunInfo& info = facts_.runs[run];
    nlohmann::json part = ToJson(runs_[run]);
    part["level"] = info.level;
    part["run"] = run;
    part["files"] = info.files;
    part["entries"] = info.entries;
    part["file_bytes"] = info.file_bytes;
    part["filter_bytes"] = info.filter_bytes;
    parts.push_back(std::move(part));
  }
  return parts;
}

std::optional<double> ReadAccount::ExpectedFalsePositives() const {
  double expected = 0;
  for (size_t run = 0; run < absent_asked_.size(); ++run) {
    for (size_t file = 0; file < absent_asked_[run].size(); ++file) {
      const uint64_t asked = absent_asked_[run][file];
      if (asked == 0) continue;
      const std::optional<FprEstimate>& fpr = facts_.files[run][file].fpr;
      if (!fpr) return std::nullopt;
      expected += static_cast<double>(asked) * fpr->mean;
    }
  }
  return expected;
}

WorkloadReport::Fpr ReadAccount::Fpr() const {
  WorkloadReport::Fpr fpr{.false_positives = total_.maybe_false,
                          .queries = total_.filter_negatives + total_.maybe_false,
                          .expected = std::nullopt,
                          .expected_instance_sd = std::nullopt};
  const std::optional<double> expected = ExpectedFalsePositives();
  if (!expected || fpr.queries == 0) return fpr;
  const auto queries = static_cast<double>(fpr.queries);
  fpr.expected = *expected / queries;
  // Of the mean over files, whose filters differ from theory independently.
  double variance = 0;
  for (size_t run = 0; run < absent_asked_.size(); ++run) {
    for (size_t file = 0; file < absent_asked_[run].size(); ++file) {
      const auto asked = static_cast<double>(absent_asked_[run][file]);
      if (asked > 0) variance += std::pow(asked * facts_.files[run][file].fpr->instance_sd, 2);
    }
  }
  fpr.expected_instance_sd = std::sqrt(variance) / queries;
  return fpr;
}

Metric ReadAccount::BlockReads(std::string name) const {
  return {.name = std::move(name),
          .certain = total_.block_reads - total_.maybe_false,
          .by_chance = total_.maybe_false,
          .trials = total_.filter_negatives + total_.maybe_false,
          .per = operations_,
          .expected_by_chance = ExpectedFalsePositives(),
          .quantity = std::nullopt};
}

std::map<std::string, double> ReadAccount::PhasesPerGet(const ReadPhases& phases) const {
  const double reading_ns = ClockReadingNs();
  const auto per_get = [&](double sum_ns, uint64_t readings) {
    const double ns = sum_ns - reading_ns * static_cast<double>(readings);
    return std::max(ns, 0.0) / static_cast<double>(operations_);
  };
  // Every phase that was begun has one reading of the clock in it. Of a level below 0, finding the
  // file is of the index; what is not the memtable's, an index's or a block's is a filter's.
  uint64_t of_index = total_.index_lookups;
  for (size_t run = 0; run < runs_.size(); ++run) {
    if (facts_.runs[run].level > 0) of_index += runs_[run].candidates;
  }
  const uint64_t others = operations_ + of_index + total_.block_reads;
  const uint64_t of_filters = phases.clock_readings > others ? phases.clock_readings - others : 0;
  return {
      {"memtable", per_get(phases.memtable_ns, operations_)},
      {"filter", per_get(phases.filter_ns, of_filters)},
      {"index", per_get(phases.index_ns, of_index)},
      {"block", per_get(phases.block_ns, total_.block_reads)},
  };
}

namespace {

// Files that a get comes to.
double EstimatedCandidates(const StoreKnobs& knobs, uint64_t keys) {
  if (knobs.shape == Shape::kFiles) return knobs.files;
  const double flushes =
      std::max(1.0, static_cast<double>(keys) / static_cast<double>(knobs.memtable_keys));
  const double ratio = SizeRatioOf(knobs);
  const double levels = std::max(1.0, std::log(flushes) / std::log(ratio));
  // Half full at a time: so many files of each size, or of level 0.
  return knobs.shape == Shape::kLeveled ? levels + kLevel0Files / 2.0 : levels * ratio / 2;
}

}  // namespace

double EstimatedLoadSeconds(const StoreKnobs& knobs, uint64_t keys) {
  constexpr double kPutSeconds = 2e-6;      // with its flush, and the value that is made up
  constexpr double kRewriteSeconds = 1e-6;  // of an entry by a compaction
  double rewrites = 0;
  if (knobs.shape != Shape::kFiles) {
    const double flushes =
        std::max(1.0, static_cast<double>(keys) / static_cast<double>(knobs.memtable_keys));
    const double ratio = SizeRatioOf(knobs);
    const double levels = std::log(flushes) / std::log(ratio);
    rewrites = knobs.shape == Shape::kLeveled ? levels * ratio / 2 : levels;
  }
  if (knobs.shape == Shape::kLeveled && (knobs.filter_levels == FilterLevels::kButLast ||
                                         knobs.bits_allocation == BitsAllocation::kMonkey)) {
    rewrites += 1;
  }
  return static_cast<double>(keys) * (kPutSeconds + rewrites * kRewriteSeconds);
}

double EstimatedGetSeconds(const StoreKnobs& knobs, uint64_t keys) {
  const double read_seconds = knobs.reads == Reads::kDirect ? 100e-6 : 2e-6;
  constexpr double kProbeSeconds = 0.1e-6;
  const double candidates = EstimatedCandidates(knobs, keys);
  // Half of the keys are absent, for want of knowing, and a few are false positives.
  double reads = knobs.filter_levels == FilterLevels::kNone ? 0.75 * candidates : 0.6;
  if (knobs.filter_levels == FilterLevels::kButLast) reads += 0.5;
  if (knobs.filter_memory == FilterMemory::kReadEachTime) reads += 0.75 * candidates;
  return 0.5e-6 + candidates * kProbeSeconds + reads * read_seconds;
}

double EstimatedMemoryBytes(const StoreKnobs& knobs, uint64_t keys) {
  constexpr double kKeyBytes = 32;     // with what a memtable needs besides
  constexpr double kFilterBytes = 2;   // of a key
  constexpr double kOrderBytes = 8;
  // A compaction of all files builds one filter over all keys: their hashes, and as much to work.
  constexpr double kBuildBytes = 24;
  const double in_memtable = knobs.shape == Shape::kFiles
                                 ? static_cast<double>(keys) / knobs.files
                                 : static_cast<double>(knobs.memtable_keys);
  return in_memtable * (kKeyBytes + knobs.value_bytes) +
         static_cast<double>(keys) * (kFilterBytes + kOrderBytes + kBuildBytes);
}

}  // namespace filterbench::lsm
