#include "workloads/lsm/lsm_load.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "workloads/key_bytes.h"
#include "workloads/lsm/store_workload.h"

namespace filterbench {
namespace {

using lsm::Store;
using lsm::WriteFacts;

struct Description {
  struct Params : lsm::StoreKnobs {
    double overwrites = 0;
    Params() { shape = lsm::Shape::kLeveled; }
  };
  static constexpr auto kKnobs = std::tuple_cat(
      lsm::ShapeKnobs<Params>(),
      std::tuple{lsm::FilterLevelsKnob<Params>(),
                 Knob<Params, double>{"overwrites", &Params::overwrites, 0, 0.9,
                                      "share of the puts whose key was put before"}});
};
using Knobs = Description::Params;

// Puts that make all keys present.
uint64_t PutsFor(const Knobs& knobs, uint64_t keys) {
  return static_cast<uint64_t>(
      std::llround(static_cast<double>(keys) / (1 - knobs.overwrites)));
}

// What is put, in order, and what must be there in the end.
struct Puts {
  struct Put {
    std::string key;
    std::string value;
  };
  std::vector<Put> puts;
  std::vector<uint64_t> last;  // by key: the put whose value stays
  double entry_bytes = 0;      // mean
};

// New keys in a seeded order; among them, evenly spread by chance, puts of a key that is drawn from
// those before.
Puts MakePuts(const Knobs& knobs, const KeySet& key_set, uint64_t keys, uint64_t seed) {
  Puts made;
  const uint64_t count = PutsFor(knobs, keys);
  made.puts.reserve(count);
  made.last.resize(keys);
  const std::vector<uint64_t> order =
      lsm::ShuffledIndices(keys, lsm::SeedFor(seed, "order of puts"));
  lsm::Random random(lsm::SeedFor(seed, "overwrites"));
  uint64_t new_keys = 0;
  for (uint64_t put = 0; put < count; ++put) {
    // Selection sampling (Knuth, The Art of Computer Programming 2, section 3.4.2, algorithm S);
    // the first put cannot overwrite.
    const bool is_new =
        new_keys == 0 || random.Below(count - put) < keys - new_keys;
    const uint64_t index = is_new ? order[new_keys++] : order[random.Below(new_keys)];
    std::string key = KeyBytes(key_set, index);
    // Of the put, not of the key: an old value is told from a new one.
    std::string value = ValueOf(fmt::format("{} {}", put, key), knobs.value_bytes);
    made.entry_bytes += static_cast<double>(key.size() + value.size());
    made.puts.push_back({std::move(key), std::move(value)});
    made.last[index] = put;
  }
  made.entry_bytes /= static_cast<double>(count);
  return made;
}

// A directory with a store that is loaded again and again, always with the same puts.
class Loading {
 public:
  Loading(const WorkloadSetup& setup, const Knobs& knobs)
      : knobs_(knobs),
        directory_(setup.directory / "store"),
        // What is thrown away need not outlive a crash of the machine.
        files_(lsm::SystemFileCalls(false)),
        puts_(MakePuts(knobs, *setup.key_set, setup.keys, setup.seed)) {
    auto policies = std::make_shared<lsm::PolicySet>();
    policies->SetUniform(lsm::PolicyOf(knobs, *setup.filters),
                         knobs.filter_levels == lsm::FilterLevels::kButLast);
    options_ = lsm::OptionsFor(knobs, puts_.entry_bytes, setup.seed, std::move(policies));
    options_.files = files_.get();
    options_.alive = setup.alive;
  }

  uint64_t operations() const { return puts_.puts.size(); }
  uint64_t keys() const { return puts_.last.size(); }
  const Store& store() const { return *store_; }

  // An empty store.
  std::optional<Error> Reset() {
    store_.reset();
    std::error_code error;
    std::filesystem::remove_all(directory_, error);
    if (!error) std::filesystem::create_directory(directory_, error);
    if (error) return Error{fmt::format("{}: {}", directory_.string(), error.message())};
    auto store = Store::Open(directory_, options_);
    if (!store) return Error{store.error()};
    store_ = std::move(*store);
    return std::nullopt;
  }

  // All puts and the flush at the end.
  std::optional<Error> Load() {
    for (const Puts::Put& put : puts_.puts) {
      if (auto error = store_->Put(put.key, put.value)) return error;
      if (store_->memtable_entries() >= knobs_.memtable_keys) {
        if (auto error = store_->Flush()) return error;
      }
    }
    return store_->memtable_entries() > 0 ? store_->Flush() : std::nullopt;
  }

  // Every key has the value that was put last.
  std::optional<Error> Verify() {
    if (const std::vector<std::string> warnings = store_->warnings(); !warnings.empty()) {
      return Error{fmt::format("{} of the filters cannot be used: {}", warnings.size(),
                               warnings.front())};
    }
    std::string value;
    for (const uint64_t put : puts_.last) {
      const auto& [key, expected] = puts_.puts[put];
      const Result<bool> found = store_->Get(key, &value, nullptr);
      if (!found) return Error{found.error()};
      if (!*found) return Error{fmt::format("{}a key that was put is not found", kWrongAnswer)};
      if (value != expected) {
        return Error{fmt::format("{}a key has another value than was put last", kWrongAnswer)};
      }
    }
    return std::nullopt;
  }

 private:
  Knobs knobs_;
  std::filesystem::path directory_;
  std::unique_ptr<lsm::Files> files_;
  Puts puts_;
  lsm::StoreOptions options_;
  std::unique_ptr<Store> store_;
};

class LoadRun final : public WorkloadRun {
 public:
  LoadRun(Loading& loading, uint64_t files) : loading_(loading), files_(files) {}

  uint64_t operations() const override { return loading_.operations(); }
  // The number of files that the puts lead to.
  std::optional<uint64_t> positives_expected() const override { return files_; }
  std::optional<Error> Reset() override { return loading_.Reset(); }
  Result<uint64_t> Iterate() override {
    if (const auto error = loading_.Load()) return *error;
    uint64_t files = 0;
    for (const lsm::RunInfo& run : loading_.store().runs()) files += run.files;
    return files;
  }

  Result<WorkloadReport> Report() override {
    if (const auto error = loading_.Reset()) return *error;
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    if (const auto error = loading_.Load()) return *error;
    const double load_ns =
        std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    if (const auto error = loading_.Verify()) return *error;

    const WriteFacts& written = loading_.store().write_facts();
    const Result<lsm::StoreFacts> measured = lsm::FactsOf(loading_.store(), 0);
    if (!measured) return Error{measured.error()};
    const lsm::StoreFacts& facts = *measured;
    const uint64_t puts = loading_.operations();
    const auto whole_ns = [](double ns) { return static_cast<uint64_t>(std::llround(ns)); };
    const double writing_ns = written.flush_ns + written.compaction_ns;
    WorkloadReport report;
    report.metrics = {
        lsm::WriteAmplification(written),
        lsm::PerOperation("filter_build_ns_per_put", whole_ns(written.filter_build_ns), puts),
        lsm::PerOperation("filter_build_share", whole_ns(written.filter_build_ns),
                          std::max<uint64_t>(whole_ns(writing_ns), 1)),
        lsm::PerOperation("filter_builds_per_key", written.filter_keys, loading_.keys()),
        Quantity("filter_bytes", static_cast<double>(facts.filters.size_bytes)),
        Quantity("filter_peak_build_bytes",
                 static_cast<double>(written.largest_filter_peak_bytes)),
        Quantity("store_bytes", static_cast<double>(facts.file_bytes)),
        Quantity("files", static_cast<double>(facts.number_of_files)),
    };
    report.counters = {
        {"puts", puts},
        {"keys", loading_.keys()},
        {"flushes", written.flushes},
        {"compactions", written.compactions},
        {"user_bytes", written.user_bytes},
        {"flushed_bytes", written.flushed_bytes},
        {"compacted_bytes", written.compacted_bytes},
        {"entries_written", written.entries_written},
        {"filter_builds", written.filter_builds},
        {"filter_keys", written.filter_keys},
    };
    for (size_t run = 0; run < facts.runs.size(); ++run) {
      const lsm::RunInfo& info = facts.runs[run];
      report.parts.push_back({{"level", info.level},
                              {"run", run},
                              {"files", info.files},
                              {"entries", info.entries},
                              {"file_bytes", info.file_bytes},
                              {"filter_bytes", info.filter_bytes}});
    }
    const auto per_put = [&](double ns) {
      return std::max(ns, 0.0) / static_cast<double>(puts);
    };
    report.phases_ns = {
        {"memtable", per_put(load_ns - writing_ns)},
        {"filter_build", per_put(written.filter_build_ns)},
        {"flush_and_compaction", per_put(writing_ns - written.filter_build_ns)},
    };
    report.facts = {
        {"levels", lsm::LevelsOf(loading_.store())},
        {"writes", "page cache, not flushed to the disk"},
    };
    return report;
  }

 private:
  Loading& loading_;
  uint64_t files_;
};

class LoadState final : public WorkloadState {
 public:
  LoadState(std::unique_ptr<Loading> loading, WorkloadFilters filters, uint64_t files)
      : loading_(std::move(loading)), filters_(std::move(filters)), files_(files) {}

  WorkloadFilters filters() const override { return filters_; }
  // The puts are those of Prepare, whatever the seed: then the filters are.
  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double>, uint64_t) override {
    return std::unique_ptr<WorkloadRun>(std::make_unique<LoadRun>(*loading_, files_));
  }

 private:
  std::unique_ptr<Loading> loading_;
  WorkloadFilters filters_;
  uint64_t files_;
};

class LsmLoad final : public WorkloadWithKnobs<Description> {
 public:
  std::string_view name() const override { return "lsm_load"; }
  std::string_view description() const override {
    return "puts into an empty LSM store, flushes and compactions included, with the filters that "
           "they build";
  }
  std::string_view operation() const override { return "put"; }
  bool has_negative_share() const override { return false; }

  std::string Contradiction(const nlohmann::json& knobs, uint64_t keys) const override {
    return lsm::ContradictionOf(Parse(knobs), keys, false);
  }
  Cost EstimateCost(const nlohmann::json& json, uint64_t keys) const override {
    const Knobs knobs = Parse(json);
    const uint64_t puts = PutsFor(knobs, keys);
    constexpr double kPutBytes = 64 + 16;  // two strings, and what the heap adds
    const double load_seconds = lsm::EstimatedLoadSeconds(knobs, puts);
    return {.memory_bytes = lsm::EstimatedMemoryBytes(knobs, keys) +
                            static_cast<double>(puts) * (kPutBytes + knobs.value_bytes),
            .prepare_seconds = load_seconds,
            .iteration_seconds = load_seconds};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    auto loading = std::make_unique<Loading>(setup, Parse(setup.knobs));
    // Once, for the facts of the filters that every iteration builds.
    if (const auto error = loading->Reset()) return *error;
    if (const auto error = loading->Load()) return *error;
    const Result<lsm::StoreFacts> facts = lsm::FactsOf(loading->store(), 0);
    if (!facts) return Error{facts.error()};
    WorkloadFilters filters = facts->filters;
    const WriteFacts& written = loading->store().write_facts();
    filters.builds = written.filter_builds;
    filters.build_ns = written.filter_build_ns;
    return std::unique_ptr<WorkloadState>(
        std::make_unique<LoadState>(std::move(loading), filters, facts->number_of_files));
  }
};

}  // namespace

std::unique_ptr<Workload> MakeLsmLoad() { return std::make_unique<LsmLoad>(); }

}  // namespace filterbench
