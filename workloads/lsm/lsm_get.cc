#include "workloads/lsm/lsm_get.h"

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "workloads/key_bytes.h"
#include "workloads/lsm/gets.h"
#include "workloads/lsm/store_workload.h"

namespace filterbench {
namespace {

using lsm::LoadedStore;
using lsm::ReadAccount;
using lsm::ReadStats;

enum class PresentKeys { kAny, kOldest };

struct Description {
  struct Params : lsm::StoreKnobs {
    PresentKeys present_keys = PresentKeys::kAny;
  };
  static constexpr auto kKnobs = std::tuple_cat(
      lsm::ShapeKnobs<Params>(),
      std::tuple{lsm::FilesKnob<Params>(), lsm::FilterLevelsKnob<Params>(),
                 lsm::BitsAllocationKnob<Params>(), lsm::FilterMemoryKnob<Params>(),
                 Choice<Params, PresentKeys, 2>{
                     "present_keys",
                     &Params::present_keys,
                     {"any", "oldest"},
                     "which of the present keys are asked; oldest: those in the file, or the run, "
                     "that is asked last"},
                 lsm::ReadsKnob<Params>(), lsm::OperationsKnob<Params>()});
};

using lsm::Lookup;

class GetRun final : public WorkloadRun {
 public:
  GetRun(LoadedStore& store, std::vector<Lookup> lookups)
      : store_(store), lookups_(std::move(lookups)) {}

  uint64_t operations() const override { return lookups_.size(); }
  std::optional<uint64_t> positives_expected() const override {
    return lsm::CountPresent(lookups_);
  }

  Result<uint64_t> Iterate() override {
    uint64_t found = 0;
    for (const Lookup& lookup : lookups_) {
      const Result<bool> answer = store_.store().Get(lookup.key, &value_, nullptr);
      if (!answer) return Error{answer.error()};
      found += *answer;
    }
    return found;
  }

  Result<WorkloadReport> Report() override {
    ReadAccount account(store_.facts());
    ReadStats stats;
    stats.time_phases = true;
    for (const Lookup& lookup : lookups_) {
      stats.runs.assign(store_.facts().runs.size(), {});
      const Result<bool> found = store_.store().Get(lookup.key, &value_, &stats);
      if (!found) return Error{found.error()};
      if (auto wrong =
              lsm::CheckAnswer(lookup, *found, value_, store_.knobs().value_bytes)) {
        return *wrong;
      }
      account.Add(lookup.key, stats.runs);
    }
    if (const std::string law = account.BrokenLaw(); !law.empty()) {
      return Error{fmt::format("{}counters: {}", kWrongAnswer, law)};
    }
    if (const auto error = store_.CheckFilters()) return *error;

    const lsm::ReadCounters& total = account.total();
    const uint64_t gets = account.operations();
    WorkloadReport report;
    report.metrics = {
        account.BlockReads("block_reads_per_get"),
        lsm::PerOperation("candidates_per_get", total.candidates, gets),
        lsm::PerOperation("probes_per_get", total.probes(), gets),
        lsm::PerOperation("filter_reads_per_get", total.filter_reads, gets),
        lsm::PerOperation("block_bytes_per_get", total.block_bytes, gets),
    };
    for (Metric& metric : store_.ReportMetrics()) report.metrics.push_back(std::move(metric));
    report.counters = account.Counters();
    report.counters["gets"] = gets;
    report.counters["memtable_hits"] = stats.memtable_hits;
    report.parts = account.Parts();
    report.phases_ns = account.PhasesPerGet(stats.phases);
    report.facts = store_.ReportFacts();
    report.fpr = account.Fpr();
    return report;
  }

 private:
  LoadedStore& store_;
  std::vector<Lookup> lookups_;
  std::string value_;
};

class GetState final : public WorkloadState {
 public:
  // `present`: the indices of the keys that are asked; empty for all.
  GetState(std::unique_ptr<LoadedStore> store, std::vector<uint64_t> present, uint64_t limit)
      : store_(std::move(store)), present_(std::move(present)), limit_(limit) {}

  WorkloadFilters filters() const override { return store_->facts().filters; }

  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double> negative_share,
                                             uint64_t seed) override {
    auto lookups =
        lsm::DrawGets({.keys = store_->keys(),
                       .present = present_,
                       .absent = limit_ - store_->keys(),
                       .operations = store_->knobs().operations,
                       .negative_share = negative_share.value_or(0),
                       .seed = seed,
                       .key_of = [this](uint64_t index) { return store_->KeyOf(index); }});
    if (!lookups) return Error{lookups.error()};
    return std::unique_ptr<WorkloadRun>(std::make_unique<GetRun>(*store_, std::move(*lookups)));
  }

 private:
  std::unique_ptr<LoadedStore> store_;
  std::vector<uint64_t> present_;
  uint64_t limit_;
};

class LsmGet final : public WorkloadWithKnobs<Description> {
 public:
  std::string_view name() const override { return "lsm_get"; }
  std::string_view description() const override {
    return "point reads of an LSM store: memtable, then filter, index and one block of each file "
           "that may have the key";
  }
  std::string_view operation() const override { return "get"; }
  bool has_negative_share() const override { return true; }

  std::string Contradiction(const nlohmann::json& knobs, uint64_t keys) const override {
    return lsm::ContradictionOf(Parse(knobs), keys, true);
  }
  Cost EstimateCost(const nlohmann::json& json, uint64_t keys) const override {
    const Knobs knobs = Parse(json);
    constexpr double kLookupBytes = 64;
    const auto operations = static_cast<double>(knobs.operations);
    return {.memory_bytes = lsm::EstimatedMemoryBytes(knobs, keys) + operations * kLookupBytes,
            .prepare_seconds = lsm::EstimatedLoadSeconds(knobs, keys),
            .iteration_seconds = operations * lsm::EstimatedGetSeconds(knobs, keys)};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    const Knobs knobs = Parse(setup.knobs);
    auto store = LoadedStore::Load(setup, {.knobs = knobs,
                                           .keys = setup.keys,
                                           .key_of = [keys = *setup.key_set](uint64_t index) {
                                             return KeyBytes(keys, index);
                                           }});
    if (!store) return Error{store.error()};
    std::vector<uint64_t> present;
    if (knobs.present_keys == PresentKeys::kOldest) {
      auto oldest = (*store)->IndicesInOldestRun();
      if (!oldest) return Error{oldest.error()};
      present = std::move(*oldest);
    }
    if (const auto error = (*store)->OpenForReads()) return *error;
    return std::unique_ptr<WorkloadState>(std::make_unique<GetState>(
        std::move(*store), std::move(present), setup.key_set->size()));
  }
};

}  // namespace

std::unique_ptr<Workload> MakeLsmGet() { return std::make_unique<LsmGet>(); }

}  // namespace filterbench
