#include "workloads/lsm/lsm_insert_if_absent.h"

#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "workloads/key_bytes.h"
#include "workloads/lookups.h"
#include "workloads/lsm/store_workload.h"

namespace filterbench {
namespace {

using lsm::LoadedStore;
using lsm::ReadAccount;
using lsm::ReadStats;

struct Description {
  using Params = lsm::StoreKnobs;
  static constexpr auto kKnobs = std::tuple_cat(
      lsm::ShapeKnobs<Params>(),
      std::tuple{lsm::FilesKnob<Params>(), lsm::FilterLevelsKnob<Params>(),
                 lsm::ReadsKnob<Params>(), lsm::OperationsKnob<Params>()});
};

class InsertRun final : public WorkloadRun {
 public:
  struct Insert {
    std::string key;
    std::string value;
    bool present = false;  // when its turn comes
  };

  InsertRun(LoadedStore& store, std::vector<Insert> inserts)
      : store_(store), inserts_(std::move(inserts)) {
    for (const Insert& insert : inserts_) present_ += insert.present;
  }

  uint64_t operations() const override { return inserts_.size(); }
  std::optional<uint64_t> positives_expected() const override { return present_; }
  // New keys are in the memtable only, which is never flushed.
  std::optional<Error> Reset() override { return store_.OpenForReads(); }

  Result<uint64_t> Iterate() override {
    uint64_t found = 0;
    for (const Insert& insert : inserts_) {
      const Result<bool> present = store_.store().Get(insert.key, &value_, nullptr);
      if (!present) return Error{present.error()};
      if (*present) {
        ++found;
      } else if (const auto error = store_.store().Put(insert.key, insert.value)) {
        return *error;
      }
    }
    return found;
  }

  Result<WorkloadReport> Report() override {
    if (const auto error = Reset()) return *error;
    ReadAccount account(store_.facts());
    ReadStats stats;
    stats.time_phases = true;
    uint64_t inserted = 0;
    for (const Insert& insert : inserts_) {
      stats.runs.assign(store_.facts().runs.size(), {});
      const Result<bool> present = store_.store().Get(insert.key, &value_, &stats);
      if (!present) return Error{present.error()};
      if (*present != insert.present) {
        return Error{fmt::format("{}a key that was {} was {}", kWrongAnswer,
                                 insert.present ? "put" : "never put",
                                 *present ? "found" : "not found")};
      }
      if (*present && value_ != insert.value) {
        return Error{fmt::format("{}a get returned another value than was put", kWrongAnswer)};
      }
      account.Add(insert.key, stats.runs);
      if (*present) continue;
      ++inserted;
      if (const auto error = store_.store().Put(insert.key, insert.value)) return *error;
    }
    if (store_.store().memtable_entries() != inserted) {
      return Error{fmt::format("{}{} keys were inserted, the memtable has {}", kWrongAnswer,
                               inserted, store_.store().memtable_entries())};
    }
    for (const Insert& insert : inserts_) {
      const Result<bool> present = store_.store().Get(insert.key, &value_, nullptr);
      if (!present) return Error{present.error()};
      if (!*present || value_ != insert.value) {
        return Error{fmt::format("{}a key that was inserted is {}", kWrongAnswer,
                                 *present ? "there with another value" : "not found")};
      }
    }
    if (const std::string law = account.BrokenLaw(); !law.empty()) {
      return Error{fmt::format("{}counters: {}", kWrongAnswer, law)};
    }
    if (const auto error = store_.CheckFilters()) return *error;

    const uint64_t operations = account.operations();
    WorkloadReport report;
    report.metrics = {
        account.BlockReads("block_reads_per_insert"),
        lsm::PerOperation("inserted", inserted, operations),
        lsm::PerOperation("candidates_per_insert", account.total().candidates, operations),
        lsm::PerOperation("probes_per_insert", account.total().probes(), operations),
    };
    for (Metric& metric : store_.ReportMetrics()) report.metrics.push_back(std::move(metric));
    report.counters = account.Counters();
    report.counters["gets"] = operations;
    report.counters["inserted"] = inserted;
    report.counters["memtable_hits"] = stats.memtable_hits;
    report.parts = account.Parts();
    report.phases_ns = account.PhasesPerGet(stats.phases);
    report.facts = store_.ReportFacts();
    report.fpr = account.Fpr();
    return report;
  }

 private:
  LoadedStore& store_;
  std::vector<Insert> inserts_;
  uint64_t present_ = 0;
  std::string value_;
};

class InsertState final : public WorkloadState {
 public:
  InsertState(std::unique_ptr<LoadedStore> store, uint64_t limit)
      : store_(std::move(store)), limit_(limit) {}

  WorkloadFilters filters() const override { return store_->facts().filters; }

  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double> negative_share,
                                             uint64_t seed) override {
    const uint64_t operations =
        LookupsWithoutRepeats(store_->knobs().operations, negative_share.value_or(0),
                              store_->keys(), limit_ - store_->keys());
    const double share = negative_share.value_or(0);
    const LookupIndices stream =
        MakeLookups(store_->keys(), limit_, operations, share, seed);
    std::vector<InsertRun::Insert> inserts;
    inserts.reserve(operations);
    std::unordered_set<uint64_t> inserted;
    for (const uint64_t index : stream.indices) {
      std::string key = store_->KeyOf(index);
      std::string value = ValueOf(key, store_->knobs().value_bytes);
      const bool present = index < store_->keys() || !inserted.insert(index).second;
      inserts.push_back({std::move(key), std::move(value), present});
    }
    // A key is new only once.
    if (inserted.size() !=
        static_cast<uint64_t>(std::llround(static_cast<double>(operations) * share))) {
      return Error{fmt::format("{}negative_share: the key set has fewer absent keys than are to be "
                               "inserted", kNotHere)};
    }
    return std::unique_ptr<WorkloadRun>(
        std::make_unique<InsertRun>(*store_, std::move(inserts)));
  }

 private:
  std::unique_ptr<LoadedStore> store_;
  uint64_t limit_;
};

class LsmInsertIfAbsent final : public WorkloadWithKnobs<Description> {
 public:
  std::string_view name() const override { return "lsm_insert_if_absent"; }
  std::string_view description() const override {
    return "inserts into an LSM store of keys that may be there already: a get, and a put where it "
           "found nothing";
  }
  std::string_view operation() const override { return "insert"; }
  bool has_negative_share() const override { return true; }

  std::string Contradiction(const nlohmann::json& knobs, uint64_t keys) const override {
    return lsm::ContradictionOf(Parse(knobs), keys, true);
  }
  Cost EstimateCost(const nlohmann::json& json, uint64_t keys) const override {
    const Knobs knobs = Parse(json);
    // Prepared, and half of them once more in the memtable.
    const double insert_bytes = 1.5 * (96 + knobs.value_bytes);
    constexpr double kPutSeconds = 0.5e-6;
    const auto operations = static_cast<double>(knobs.operations);
    return {.memory_bytes = lsm::EstimatedMemoryBytes(knobs, keys) + operations * insert_bytes,
            .prepare_seconds = lsm::EstimatedLoadSeconds(knobs, keys),
            .iteration_seconds =
                operations * (lsm::EstimatedGetSeconds(knobs, keys) + kPutSeconds)};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    auto store = LoadedStore::Load(setup, {.knobs = Parse(setup.knobs),
                                           .keys = setup.keys,
                                           .key_of = [keys = *setup.key_set](uint64_t index) {
                                             return KeyBytes(keys, index);
                                           }});
    if (!store) return Error{store.error()};
    if (const auto error = (*store)->OpenForReads()) return *error;
    return std::unique_ptr<WorkloadState>(
        std::make_unique<InsertState>(std::move(*store), setup.key_set->size()));
  }
};

}  // namespace

std::unique_ptr<Workload> MakeLsmInsertIfAbsent() {
  return std::make_unique<LsmInsertIfAbsent>();
}

}  // namespace filterbench
