#include "workloads/name_taken/name_taken.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "workloads/hash_set.h"
#include "workloads/lookup_keys.h"
#include "workloads/single_filter.h"

namespace filterbench {
namespace {

enum class Behind { kHashSet, kNothing };

struct Described {
  struct Params {
    Behind behind = Behind::kHashSet;
    double load = 0.75;
    uint64_t operations = uint64_t{1} << 20;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"behind", &Params::behind, std::array<std::string_view, 2>{"hash_set", "nothing"},
             "what is asked where the filter says maybe: an exact set of 64-bit hashes in memory, "
             "or nothing, so that false positives stay"},
      Knob<Params, double>{"load", &Params::load, 0.1, 0.95, "keys over slots of the hash set"},
      Knob<Params, uint64_t>{"operations", &Params::operations, 1000, uint64_t{1} << 28,
                             "lookups in a pass"}};
};
using Knobs = Described::Params;

class State final : public WorkloadState {
 public:
  State(const WorkloadSetup& setup, const Knobs& knobs, SingleFilter single,
        std::optional<HashSet> set)
      : key_set_(*setup.key_set),
        keys_(setup.keys),
        hash_seed_(setup.seed),
        knobs_(knobs),
        single_(std::move(single)),
        set_(std::move(set)) {}

  WorkloadFilters filters() const override { return single_.facts; }
  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double> negative_share,
                                             uint64_t seed) override;

 private:
  friend class Run;
  const KeySet& key_set_;
  const uint64_t keys_;
  const uint64_t hash_seed_;
  const Knobs knobs_;
  const SingleFilter single_;
  const std::optional<HashSet> set_;
};

class Run final : public WorkloadRun {
 public:
  Run(const State& state, double negative_share, uint64_t seed)
      : state_(state),
        filter_(*state.single_.filter),
        stream_(state.key_set_, state.keys_, state.knobs_.operations, negative_share, seed) {}

  uint64_t operations() const override { return stream_.size(); }
  std::optional<uint64_t> positives_expected() const override {
    if (!state_.set_) return std::nullopt;
    return stream_.size() - stream_.negatives();
  }

  Result<uint64_t> Iterate() override {
    uint64_t taken = 0;
    if (state_.set_) {
      stream_.ForEachHash(state_.hash_seed_, [&](uint64_t hash) {
        taken += filter_.MayContain(hash) && state_.set_->Contains(hash) ? 1 : 0;
      });
    } else {
      stream_.ForEachHash(state_.hash_seed_,
                          [&](uint64_t hash) { taken += filter_.MayContain(hash) ? 1 : 0; });
    }
    return taken;
  }

  Result<WorkloadReport> Report() override {
    uint64_t present = 0;
    uint64_t false_positives = 0;
    uint64_t index = 0;
    uint64_t denied = 0;
    uint64_t shared = 0;
    stream_.ForEachHash(state_.hash_seed_, [&](uint64_t hash) {
      const bool is_present = stream_.is_present(index++);
      const bool maybe = filter_.MayContain(hash);
      present += is_present ? 1 : 0;
      if (is_present) {
        denied += maybe && (!state_.set_ || state_.set_->Contains(hash)) ? 0 : 1;
      } else if (maybe) {
        ++false_positives;
        shared += state_.set_ && state_.set_->Contains(hash) ? 1 : 0;
      }
    });
    if (denied != 0 || shared != 0) {
      return Error{fmt::format("{}{} keys that are there were denied, {} that are not were found",
                               kWrongAnswer, denied, shared)};
    }
    WorkloadReport report;
    report.fpr = MetFpr(filter_, false_positives, stream_.negatives());
    report.counters = {{"lookups", stream_.size()},
                       {"present", present},
                       {"false_positives", false_positives}};
    const uint64_t filter_bytes = filter_.SizeInBytes();
    report.metrics.push_back(Quantity("filter_bytes", static_cast<double>(filter_bytes)));
    if (state_.set_) {
      const uint64_t set_bytes = state_.set_->SizeInBytes();
      report.metrics.push_back(
          WithFalsePositives("set_probes_per_lookup", present, report.fpr, stream_.size()));
      report.metrics.push_back(Quantity("set_bytes", static_cast<double>(set_bytes)));
      if (filter_bytes != 0) {
        report.metrics.push_back({.name = "set_bytes_per_filter_byte",
                                  .certain = set_bytes,
                                  .per = filter_bytes,
                                  .expected_by_chance = std::nullopt,
                                  .quantity = std::nullopt});
      }
    } else {
      report.metrics.push_back(
          WithFalsePositives("wrong_answers_per_lookup", 0, report.fpr, stream_.size()));
    }
    report.facts = {{"behind", state_.set_ ? "hash set in memory" : "nothing"}};
    return report;
  }

 private:
  const State& state_;
  const KeyFilter& filter_;
  const LookupKeys stream_;
};

Result<std::unique_ptr<WorkloadRun>> State::Start(std::optional<double> negative_share,
                                                  uint64_t seed) {
  return std::unique_ptr<WorkloadRun>(std::make_unique<Run>(*this, *negative_share, seed));
}

class NameTaken final : public WorkloadWithKnobs<Described> {
 public:
  std::string_view name() const override { return "name_taken"; }
  std::string_view description() const override {
    return "is a name taken: a filter before an exact set, or alone";
  }
  std::string_view operation() const override { return "lookup"; }
  bool has_negative_share() const override { return true; }

  Cost EstimateCost(const nlohmann::json& knobs, uint64_t keys) const override {
    const Knobs parsed = Parse(knobs);
    const double n = static_cast<double>(keys);
    const double operations = static_cast<double>(parsed.operations);
    const double set = parsed.behind == Behind::kHashSet ? 8 / parsed.load : 0;
    // Hashes, what a build needs besides, the set; and the stream.
    return {.memory_bytes = n * (8 + 32 + set) + operations * 64,
            .prepare_seconds = n * 250e-9,
            .iteration_seconds = operations * 60e-9};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    const Knobs knobs = Parse(setup.knobs);
    std::optional<HashSet> set;
    std::vector<uint64_t> hashes;
    hashes.reserve(setup.keys);
    if (knobs.behind == Behind::kHashSet) set.emplace(setup.keys, knobs.load);
    ForEachPresentHash(setup, [&](uint64_t hash) {
      hashes.push_back(hash);
      if (set) set->Insert(hash);
    });
    Result<SingleFilter> single = BuildSingleFilter(setup, hashes);
    if (!single) return Error{single.error()};
    return std::unique_ptr<WorkloadState>(
        std::make_unique<State>(setup, knobs, std::move(*single), std::move(set)));
  }
};

}  // namespace

std::unique_ptr<Workload> MakeNameTaken() { return std::make_unique<NameTaken>(); }

}  // namespace filterbench
