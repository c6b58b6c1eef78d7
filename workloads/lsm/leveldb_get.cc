#include "workloads/lsm/leveldb_get.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "workloads/key_bytes.h"
#include "workloads/lsm/gets.h"
#include "workloads/lsm/leveldb_database.h"
#include "workloads/lsm/leveldb_policy.h"

namespace filterbench {
namespace {

using lsm::CountingEnv;
using lsm::CountingPolicy;
using lsm::FilterAnswer;
using lsm::FilterProbe;
using lsm::LevelDbDatabase;
using lsm::MadeFilter;
using lsm::TableReads;
using Clock = std::chrono::steady_clock;

enum class Shape { kFiles, kLeveled };
enum class PresentKeys { kAny, kOldest };
enum class Reads { kDirect, kCached };

struct Description {
  struct Params {
    Shape shape = Shape::kFiles;
    uint32_t files = 8;
    uint64_t memtable_keys = 4096;
    uint32_t value_bytes = 100;
    PresentKeys present_keys = PresentKeys::kAny;
    Reads reads = Reads::kDirect;
    uint64_t operations = 20'000;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice<Params, Shape, 2>{"shape",
                               &Params::shape,
                               {"files", "leveled"},
                               "files: tables of level 0 that overlap, compactions held; leveled: "
                               "as LevelDB compacts"},
      Knob<Params, uint32_t>{"files", &Params::files, 1, 64,
                             "number of files, of the shape files"},
      Knob<Params, uint64_t>{"memtable_keys", &Params::memtable_keys, 16, 100'000'000,
                             "leveled: entries until the memtable is flushed"},
      Knob<Params, uint32_t>{"value_bytes", &Params::value_bytes, 0, 3000, "size of a value"},
      Choice<Params, PresentKeys, 2>{"present_keys",
                                     &Params::present_keys,
                                     {"any", "oldest"},
                                     "which of the present keys are asked; oldest: those in the "
                                     "file, or the level, that is asked last"},
      Choice<Params, Reads, 2>{"reads",
                               &Params::reads,
                               {"direct", "cached"},
                               "direct: past the page cache; cached: everything was read once "
                               "before"},
      Knob<Params, uint64_t>{"operations", &Params::operations, 1, 100'000'000,
                             "per iteration; fewer where a key would be asked twice"},
  };
};
using Knobs = Description::Params;

constexpr uint64_t kPutsBetweenSignsOfLife = 1 << 16;
// Formulas of the first order in 1 / bits are off where a filter has 36 keys, and all filters of a
// database are off alike: simulated at 10 bits per key, leveldb_bloom and leveldb_peer by 9 %,
// system_bloom by 11 %, prefix_bloom by -10 %, no other by more than 4 %. As a standard deviation, of
// which the checks of rates take six.
double FormulaDeviation(std::string_view filter) {
  constexpr std::string_view kFarOff[] = {"leveldb_bloom", "leveldb_peer", "system_bloom",
                                          "prefix_bloom"};
  return std::ranges::count(kFarOff, filter) != 0 ? 0.02 : 0.007;
}
// What a memtable needs for an entry besides its value, keys of some 16 bytes included.
constexpr uint64_t kMemtableEntryBytes = 64;

uint64_t SeedFor(uint64_t seed, std::string_view what) { return HashBytes(what, seed); }

// How LevelDB is to hold the filters of a sweep; null for none.
std::unique_ptr<lsm::FilterFormat> FormatFor(FilterSource& filters, uint64_t seed) {
  if (filters.filter() == "always_maybe") return nullptr;
  const auto bits_per_key = [&] { return filters.params().at("bits_per_key").get<uint32_t>(); };
  if (filters.filter() == "leveldb_peer") return lsm::BuiltInFilters(bits_per_key());
  if (filters.filter() == "leveldb_bloom") return lsm::LevelDbBloomFilters(bits_per_key());
  return lsm::SerializedFilters(filters.policy(), SeedFor(seed, "hashes of leveldb"),
                                SeedFor(seed, "filters of leveldb"));
}

// Of two readings of the clock, one after the other: what an interval has in it besides what is
// measured.
double ClockReadingNs() {
  constexpr int kReadings = 2000;
  const auto begin = Clock::now();
  for (int i = 1; i < kReadings; ++i) static_cast<void>(Clock::now());
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kReadings;
}

// A filter in memory, and the table that it is of.
struct LiveFilter {
  uint64_t table = 0;
  std::optional<MadeFilter> made;  // nothing: it could not be built
};

// A run is what a get asks one table of: a table of level 0, or a whole level.
struct Run {
  int level = 0;
  std::vector<LevelDbDatabase::TableFile> tables;
  uint64_t bytes = 0;
  uint64_t stored_filter_bytes = 0;
  uint64_t filters = 0;
};

class GetState final : public WorkloadState {
 public:
  static Result<std::unique_ptr<GetState>> Load(const WorkloadSetup& setup, const Knobs& knobs);

  WorkloadFilters filters() const override { return filters_; }
  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double> negative_share,
                                             uint64_t seed) override;

 private:
  friend class GetRun;

  explicit GetState(const Knobs& knobs, const WorkloadSetup& setup)
      : knobs_(knobs),
        keys_(setup.keys),
        key_set_(*setup.key_set),
        formula_deviation_(FormulaDeviation(setup.filters->filter())) {}

  LevelDbDatabase::Entry EntryOf(uint64_t index) const {
    std::string key = KeyBytes(key_set_, index);
    std::string value = ValueOf(key, knobs_.value_bytes);
    return {std::move(key), std::move(value)};
  }
  std::optional<Error> PutAll(const WorkloadSetup& setup);
  // Opens the database and takes down what filters it has.
  std::optional<Error> OpenForReads();
  std::optional<Error> FindOldestKeys(const std::function<void()>& alive);

  const Knobs knobs_;
  const uint64_t keys_;
  const KeySet key_set_;
  const double formula_deviation_;
  // In the order in which each stands on the one before.
  std::unique_ptr<CountingPolicy> policy_;  // null: the database has none
  std::unique_ptr<LevelDbDatabase> database_;

  std::vector<Run> runs_;
  std::unordered_map<uint64_t, size_t> run_of_table_;
  std::unordered_map<const char*, LiveFilter> live_;
  WorkloadFilters filters_;
  uint64_t stored_filter_bytes_ = 0;  // of filter blocks, as files hold them
  uint64_t not_built_ = 0;            // of the filters in the files
  uint64_t user_bytes_ = 0;
  std::vector<uint64_t> present_;     // indices of the keys that are asked; empty for all
};

using lsm::Lookup;

class GetRun final : public WorkloadRun {
 public:
  GetRun(GetState& state, std::vector<Lookup> lookups)
      : state_(state), lookups_(std::move(lookups)) {}

  uint64_t operations() const override { return lookups_.size(); }
  std::optional<uint64_t> positives_expected() const override {
    return lsm::CountPresent(lookups_);
  }

  Result<uint64_t> Iterate() override {
    uint64_t found = 0;
    for (const Lookup& lookup : lookups_) {
      const Result<bool> answer = state_.database_->Get(lookup.key, &value_);
      if (!answer) return Error{answer.error()};
      found += *answer;
    }
    return found;
  }

  Result<WorkloadReport> Report() override;

 private:
  // Of the table's filters, over some gets; named as lsm::ReadCounters.
  struct RunCounts {
    uint64_t not_consulted = 0;
    uint64_t filter_negatives = 0;
    uint64_t maybe_true = 0;
    uint64_t maybe_false = 0;
    uint64_t block_reads = 0;
    uint64_t block_bytes = 0;

    uint64_t probes() const { return filter_negatives + maybe_true + maybe_false; }
    uint64_t candidates() const { return not_consulted + probes(); }
    RunCounts& operator+=(const RunCounts& other) {
      not_consulted += other.not_consulted;
      filter_negatives += other.filter_negatives;
      maybe_true += other.maybe_true;
      maybe_false += other.maybe_false;
      block_reads += other.block_reads;
      block_bytes += other.block_bytes;
      return *this;
    }
    std::map<std::string, uint64_t> Named() const {
      return {{"candidates", candidates()},
              {"not_consulted", not_consulted},
              {"filter_negatives", filter_negatives},
              {"maybe_true", maybe_true},
              {"maybe_false", maybe_false},
              {"index_lookups", candidates()},  // it comes before the filter, once for each
              {"block_reads", block_reads},
              {"block_bytes", block_bytes}};
    }
  };

  // The probes of one get.
  std::optional<Error> Account(std::span<const FilterProbe> probes, bool found,
                               std::vector<RunCounts>& runs);

  GetState& state_;
  std::vector<Lookup> lookups_;
  std::string value_;
  // While reporting: how often each filter was asked for a key that it does not hold.
  std::unordered_map<const char*, uint64_t> absent_asked_;
};

std::optional<Error> GetRun::Account(std::span<const FilterProbe> probes, bool found,
                                     std::vector<RunCounts>& runs) {
  for (size_t i = 0; i < probes.size(); ++i) {
    const FilterProbe& probe = probes[i];
    const auto live = state_.live_.find(probe.filter);
    if (live == state_.live_.end()) {
      return Error{"leveldb: a filter was asked that is in no table that was opened"};
    }
    RunCounts& run = runs[state_.run_of_table_.at(live->second.table)];
    // Keys are put once, and a get ends in the table that has its key.
    const bool holds_key = found && i + 1 == probes.size();
    switch (probe.answer) {
      case FilterAnswer::kNotBuilt:
        ++run.not_consulted;
        continue;
      case FilterAnswer::kUnusable:
        return Error{fmt::format("table {}: a filter is damaged, or of another policy",
                                 live->second.table)};
      case FilterAnswer::kNo:
        if (holds_key) return Error{fmt::format("{}a filter denied a key that its table has",
                                                kWrongAnswer)};
        ++run.filter_negatives;
        break;
      case FilterAnswer::kMaybe:
        ++(holds_key ? run.maybe_true : run.maybe_false);
        break;
    }
    if (!holds_key) ++absent_asked_[probe.filter];
  }
  return std::nullopt;
}

Result<WorkloadReport> GetRun::Report() {
  LevelDbDatabase& database = *state_.database_;
  CountingEnv& env = database.env();
  const CountingPolicy* policy = state_.policy_.get();
  absent_asked_.clear();

  std::vector<RunCounts> runs(state_.runs_.size());
  const auto reads_by_run = [&] {
    std::vector<TableReads> reads(runs.size());
    for (size_t run = 0; run < runs.size(); ++run) {
      for (const auto& table : state_.runs_[run].tables) {
        const TableReads of_table = env.reads_of(table.number);
        reads[run].data_reads += of_table.data_reads;
        reads[run].data_bytes += of_table.data_bytes;
      }
    }
    return reads;
  };
  const std::vector<TableReads> by_run_before = reads_by_run();
  const TableReads before = env.reads();
  const uint64_t loads_before = policy != nullptr ? policy->format().loads() : 0;
  const uint64_t filter_ns_before = policy != nullptr ? policy->traced_ns() : 0;
  uint64_t filter_probes = 0;
  double total_ns = 0;

  std::vector<FilterProbe> probes;
  // Whatever way it ends, timed passes are not traced.
  struct Tracing {
    CountingPolicy* policy;
    CountingEnv& env;
    ~Tracing() {
      if (policy != nullptr) policy->Trace(nullptr);
      env.TimeReads(false);
    }
  } tracing{state_.policy_.get(), env};
  if (tracing.policy != nullptr) tracing.policy->Trace(&probes);
  env.TimeReads(true);
  for (const Lookup& lookup : lookups_) {
    probes.clear();
    const auto begin = Clock::now();
    const Result<bool> found = database.Get(lookup.key, &value_);
    total_ns += std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    if (!found) return Error{found.error()};
    if (auto wrong = lsm::CheckAnswer(lookup, *found, value_, state_.knobs_.value_bytes)) {
      return *wrong;
    }
    filter_probes += probes.size();
    if (auto error = Account(probes, *found, runs)) return *error;
  }
  const TableReads reads = env.reads() - before;

  const std::vector<TableReads> by_run = reads_by_run();
  RunCounts total;
  for (size_t run = 0; run < runs.size(); ++run) {
    const TableReads of_run = by_run[run] - by_run_before[run];
    runs[run].block_reads = of_run.data_reads;
    runs[run].block_bytes = of_run.data_bytes;
    // Without a policy each table that a get comes to has one of its blocks read.
    if (policy == nullptr) runs[run].not_consulted = of_run.data_reads;
    total += runs[run];
  }
  // A block is read where no filter said no, and nowhere else.
  if (reads.data_reads != total.maybe_true + total.maybe_false + total.not_consulted) {
    return Error{fmt::format("leveldb: {} block reads, but {} filters said maybe and {} were not "
                             "there", reads.data_reads, total.maybe_true + total.maybe_false,
                             total.not_consulted)};
  }
  if (total.block_reads != reads.data_reads || reads.filter_reads != 0 || reads.index_reads != 0) {
    return Error{fmt::format("leveldb: tables were opened anew: {} reads of {} are of other "
                             "tables, {} of filters, {} of indexes",
                             reads.data_reads - total.block_reads,
                             reads.data_reads, reads.filter_reads, reads.index_reads)};
  }

  std::optional<double> expected = 0;
  double variance = 0;
  // In an order that is the same in every process, as sums of fractions are only then.
  std::map<std::pair<uint64_t, const char*>, uint64_t> by_place;
  for (const auto& [filter, asked] : absent_asked_) {
    by_place[{state_.live_.at(filter).table, filter}] = asked;
  }
  for (const auto& [place, asked] : by_place) {
    const std::optional<FprEstimate>& fpr = state_.live_.at(place.second).made->expected;
    if (!fpr) {
      expected.reset();
      break;
    }
    *expected += static_cast<double>(asked) * fpr->mean;
    variance += std::pow(static_cast<double>(asked) * fpr->instance_sd, 2);
  }
  variance += std::pow(state_.formula_deviation_ * expected.value_or(0), 2);

  const uint64_t gets = lookups_.size();
  const auto per_get = [gets](std::string name, uint64_t sum) {
    return Metric{.name = std::move(name), .certain = sum, .per = gets,
                  .expected_by_chance = std::nullopt, .quantity = std::nullopt};
  };
  WorkloadReport report;
  const uint64_t absent = total.filter_negatives + total.maybe_false;
  const auto bits_per_key = [&](uint64_t bytes) {
    return 8 * static_cast<double>(bytes) / static_cast<double>(state_.keys_);
  };
  const auto store_bytes = std::accumulate(
      state_.runs_.begin(), state_.runs_.end(), uint64_t{0},
      [](uint64_t sum, const Run& run) { return sum + run.bytes; });
  report.metrics = {
      {.name = "block_reads_per_get",
       .certain = total.block_reads - total.maybe_false,
       .by_chance = total.maybe_false,
       .trials = absent,
       .per = gets,
       .expected_by_chance = expected,
       .quantity = std::nullopt},
      per_get("candidates_per_get", total.candidates()),
      per_get("probes_per_get", total.probes()),
      per_get("block_bytes_per_get", total.block_bytes),
      Quantity("store_bytes", static_cast<double>(store_bytes)),
      Quantity("files", static_cast<double>(state_.run_of_table_.size())),
      Quantity("filter_bytes", static_cast<double>(state_.filters_.size_bytes)),
      Quantity("filter_bits_per_key", bits_per_key(state_.filters_.size_bytes)),
      Quantity("stored_filter_bytes", static_cast<double>(state_.stored_filter_bytes_)),
      Quantity("stored_filter_bits_per_key", bits_per_key(state_.stored_filter_bytes_)),
      {.name = "write_amplification",
       .certain = env.table_bytes_written(),
       .per = state_.user_bytes_,
       .expected_by_chance = std::nullopt,
       .quantity = std::nullopt},
  };
  report.counters = total.Named();
  report.counters["gets"] = gets;
  report.counters["filters_not_built"] = state_.not_built_;
  report.counters["filter_loads"] =
      policy != nullptr ? policy->format().loads() - loads_before : 0;

  for (size_t i = 0; i < runs.size(); ++i) {
    const Run& run = state_.runs_[i];
    nlohmann::json part = runs[i].Named();
    part["level"] = run.level;
    part["run"] = i;
    part["files"] = run.tables.size();
    part["file_bytes"] = run.bytes;
    part["filters"] = run.filters;
    part["stored_filter_bytes"] = run.stored_filter_bytes;
    report.parts.push_back(std::move(part));
  }

  const double clock_ns = ClockReadingNs();
  const auto mean_ns = [&](double sum, uint64_t readings) {
    return std::max(0.0, sum - clock_ns * static_cast<double>(readings)) /
           static_cast<double>(gets);
  };
  const double filter_ns =
      policy != nullptr ? static_cast<double>(policy->traced_ns() - filter_ns_before) : 0;
  const auto block_read_ns = static_cast<double>(reads.data_ns);
  report.phases_ns = {
      {"filter", mean_ns(filter_ns, filter_probes)},
      {"block_read", mean_ns(block_read_ns, reads.data_reads)},
      // Both intervals lie within that of the get, with two readings each.
      {"engine", mean_ns(total_ns - filter_ns - block_read_ns,
                         gets + filter_probes + reads.data_reads)},
  };

  std::string levels;
  for (int level = 0; level < 7; ++level) {
    const std::string files = database.Property(fmt::format("leveldb.num-files-at-level{}", level));
    if (files != "0") levels += fmt::format("{}{}:{}", levels.empty() ? "" : " ", level, files);
  }
  report.facts = {
      {"engine", fmt::format("leveldb {}.{}", leveldb::kMajorVersion, leveldb::kMinorVersion)},
      {"policy", policy != nullptr ? policy->format().description() : "none"},
      {"reads", state_.knobs_.reads == Reads::kDirect ? "direct" : "cached"},
      {"checksums", "verified"},
      {"levels", levels},
      {"memtable", "empty"},
  };
  report.fpr = {.false_positives = total.maybe_false,
                .queries = absent,
                .expected = std::nullopt,
                .expected_instance_sd = std::nullopt};
  if (expected && absent > 0) {
    report.fpr.expected = *expected / static_cast<double>(absent);
    report.fpr.expected_instance_sd = std::sqrt(variance) / static_cast<double>(absent);
  }
  return report;
}

Result<std::unique_ptr<WorkloadRun>> GetState::Start(std::optional<double> negative_share,
                                                     uint64_t seed) {
  auto lookups =
      lsm::DrawGets({.keys = keys_,
                     .present = present_,
                     .absent = key_set_.size() - keys_,
                     .operations = knobs_.operations,
                     .negative_share = negative_share.value_or(0),
                     .seed = seed,
                     .key_of = [this](uint64_t index) { return KeyBytes(key_set_, index); }});
  if (!lookups) return Error{lookups.error()};
  return std::unique_ptr<WorkloadRun>(std::make_unique<GetRun>(*this, std::move(*lookups)));
}

std::optional<Error> GetState::PutAll(const WorkloadSetup& setup) {
  uint64_t puts = 0;
  const auto put = [&](uint64_t index) {
    if (++puts % kPutsBetweenSignsOfLife == 0) setup.alive();
    LevelDbDatabase::Entry entry = EntryOf(index);
    user_bytes_ += entry.key.size() + entry.value.size();
    return entry;
  };
  if (knobs_.shape == Shape::kFiles) {
    const uint64_t files = knobs_.files;
    for (uint64_t file = 0; file < files; ++file) {
      const uint64_t entries = keys_ / files + (file < keys_ % files ? 1 : 0);
      const auto entry = [&](uint64_t i) { return put(i * files + file); };
      if (auto error = database_->AddTable(entries, entry)) return error;
      setup.alive();
    }
    return std::nullopt;
  }
  // In an order that has nothing to do with that of the keys, nor with their indices.
  std::vector<uint64_t> order(keys_);
  std::iota(order.begin(), order.end(), uint64_t{0});
  uint64_t state = SeedFor(setup.seed, "order of puts");
  for (uint64_t i = keys_; i > 1; --i) {
    state += kGoldenGamma;
    std::swap(order[i - 1], order[FastRange64(Mix64(state), i)]);
  }
  for (uint64_t first = 0; first < keys_; first += knobs_.memtable_keys) {
    const uint64_t entries = std::min(knobs_.memtable_keys, keys_ - first);
    const auto entry = [&](uint64_t i) { return put(order[first + i]); };
    if (auto error = database_->PutAndCompact(entries, entry)) return error;
    setup.alive();
  }
  return std::nullopt;
}

std::optional<Error> GetState::OpenForReads() {
  std::unordered_map<uint64_t, uint64_t> digests;  // of each table's filters
  std::unordered_map<uint64_t, std::pair<uint64_t, uint64_t>> stored;  // filters and bytes of it
  std::string problem;
  const auto on_filter_block = [&](uint64_t table, std::string_view block) {
    const auto filters = lsm::FiltersOfBlock(block);
    if (!filters) {
      problem = fmt::format("table {}: its filter block cannot be read", table);
      return;
    }
    stored_filter_bytes_ += block.size();
    stored[table] = {filters->size(), block.size()};
    uint64_t digest = 0;
    for (const std::string_view filter : *filters) {
      digest = HashBytes(filter, digest);
      LiveFilter& live = live_[filter.data()];
      live.table = table;
      const MadeFilter* made = policy_->Find(filter);
      if (made != nullptr) {
        live.made = *made;
        filters_.filters += 1;
        filters_.keys += made->keys;
        filters_.size_bytes += made->size_bytes;
        if (made->peak_build_bytes) {
          filters_.peak_build_bytes =
              std::max(filters_.peak_build_bytes.value_or(0), *made->peak_build_bytes);
        }
      } else if (filter.size() == 1) {
        ++not_built_;
      } else {
        problem = fmt::format("table {}: has a filter that its policy did not make", table);
      }
    }
    digests[table] = digest;
  };
  const Result<uint64_t> entries = database_->OpenForReads(on_filter_block);
  database_->env().ObserveFilterBlocks({});
  if (!entries) return Error{entries.error()};
  if (!problem.empty()) return Error{problem};
  if (*entries != keys_) {
    return Error{fmt::format("{}leveldb: has {} entries, {} were put", kWrongAnswer, *entries,
                             keys_)};
  }
  const auto tables = database_->Tables();
  if (!tables) return Error{tables.error()};
  std::string all_digests;
  for (const LevelDbDatabase::TableFile& table : *tables) {
    if (runs_.empty() || table.level == 0 || runs_.back().level != table.level) {
      runs_.push_back({.level = table.level, .tables = {}});
    }
    Run& run = runs_.back();
    run.tables.push_back(table);
    run.bytes += table.bytes;
    run_of_table_[table.number] = runs_.size() - 1;
    if (policy_ == nullptr) continue;
    const auto of_table = stored.find(table.number);
    if (of_table == stored.end()) {
      return Error{fmt::format("table {}: has no filters, though the database has a policy",
                               table.number)};
    }
    run.filters += of_table->second.first;
    run.stored_filter_bytes += of_table->second.second;
    all_digests += fmt::format("{:016x}", digests.at(table.number));
  }
  if (knobs_.shape == Shape::kFiles && (runs_.size() != knobs_.files || runs_.back().level != 0)) {
    return Error{fmt::format("leveldb: {} files were asked for, it has {} tables", knobs_.files,
                             run_of_table_.size())};
  }
  filters_.digest = fmt::format("{:016x}", HashBytes(all_digests, 0));
  if (policy_ != nullptr) {
    filters_.builds = policy_->filters_made();
    filters_.build_ns = static_cast<double>(policy_->build_ns());
  }
  return std::nullopt;
}

std::optional<Error> GetState::FindOldestKeys(const std::function<void()>& alive) {
  if (knobs_.shape == Shape::kFiles) {
    for (uint64_t index = 0; index < keys_; index += knobs_.files) present_.push_back(index);
    return std::nullopt;
  }
  // LevelDB does not say where a key is; but the last block that a get reads has it.
  std::string value;
  for (uint64_t index = 0; index < keys_; ++index) {
    if (index % kPutsBetweenSignsOfLife == 0) alive();
    const Result<bool> found = database_->Get(KeyBytes(key_set_, index), &value);
    if (!found) return Error{found.error()};
    if (!*found) return Error{fmt::format("{}a key that was put was not found", kWrongAnswer)};
    if (run_of_table_.at(database_->env().last_data_file()) + 1 == runs_.size()) {
      present_.push_back(index);
    }
  }
  return std::nullopt;
}

Result<std::unique_ptr<GetState>> GetState::Load(const WorkloadSetup& setup, const Knobs& knobs) {
  const bool direct = knobs.reads == Reads::kDirect;
  if (direct) {
    if (const std::string why = CountingEnv::WhyNoDirectReads(setup.directory); !why.empty()) {
      return Error{fmt::format("{}reads: direct: {}", kNotHere, why)};
    }
  }
  std::unique_ptr<GetState> state(new GetState(knobs, setup));
  if (auto format = FormatFor(*setup.filters, setup.seed)) {
    state->policy_ = std::make_unique<CountingPolicy>(std::move(format));
  }
  state->database_ = std::make_unique<LevelDbDatabase>(setup.directory / "leveldb",
                                                       state->policy_.get(), direct);
  if (auto error = state->PutAll(setup)) return *error;
  if (auto error = state->OpenForReads()) return *error;
  if (knobs.present_keys == PresentKeys::kOldest) {
    if (auto error = state->FindOldestKeys(setup.alive)) return *error;
  }
  state->database_->env().ReadDirectly(direct);
  return state;
}

class LevelDbGet final : public WorkloadWithKnobs<Description> {
 public:
  std::string_view name() const override { return "leveldb_get"; }
  std::string_view description() const override {
    return "point reads of a LevelDB database, with any filter as its policy";
  }
  std::string_view operation() const override { return "get"; }
  bool has_negative_share() const override { return true; }

  std::string Contradiction(const nlohmann::json& json, uint64_t keys) const override {
    const Knobs knobs = Parse(json);
    const bool is_files = knobs.shape == Shape::kFiles;
    if (is_files && keys < knobs.files) {
      return fmt::format("files: {} for {} keys", knobs.files, keys);
    }
    if (keys == 0) return "keys: a database without any has no tables to read";
    const uint64_t entries = is_files ? (keys + knobs.files - 1) / knobs.files
                                      : std::min(keys, knobs.memtable_keys);
    const uint64_t most = lsm::kLargestMemtableBytes / (knobs.value_bytes + kMemtableEntryBytes);
    if (entries > most) {
      return fmt::format("{}: {} keys are put before a flush, LevelDB's memtable takes {}",
                         is_files ? "files" : "memtable_keys", entries, most);
    }
    return {};
  }

  Cost EstimateCost(const nlohmann::json& json, uint64_t keys) const override {
    const Knobs knobs = Parse(json);
    const auto n = static_cast<double>(keys);
    const bool is_files = knobs.shape == Shape::kFiles;
    const double flushes = is_files ? knobs.files
                                    : n / static_cast<double>(knobs.memtable_keys) + 1;
    const double in_memtable = n / flushes;
    // Each entry is logged and written, and rewritten once or more on the way down.
    const double writes = is_files ? 2 : 2 + 3 * std::max(1.0, std::log10(flushes));
    constexpr double kFilterBytes = 64;  // of a key's share in a filter that is loaded
    const double read_seconds = knobs.reads == Reads::kDirect ? 100e-6 : 3e-6;
    const double candidates = is_files ? knobs.files : 4 + std::log10(flushes);
    const auto operations = static_cast<double>(knobs.operations);
    constexpr double kLookupBytes = 64;
    return {.memory_bytes = 2 * in_memtable * (knobs.value_bytes + kMemtableEntryBytes) +
                            n * (kFilterBytes + sizeof(uint64_t)) + operations * kLookupBytes,
            .prepare_seconds = 0.02 * flushes + n * writes * 1e-6,
            .iteration_seconds = operations * (2e-6 + candidates * 0.5e-6 + 0.6 * read_seconds)};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    auto state = GetState::Load(setup, Parse(setup.knobs));
    if (!state) return Error{state.error()};
    return std::unique_ptr<WorkloadState>(std::move(*state));
  }
};

}  // namespace

std::unique_ptr<Workload> MakeLevelDbGet() { return std::make_unique<LevelDbGet>(); }

}  // namespace filterbench
