#include "workloads/admission/cdn_admission.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "workloads/single_filter.h"
#include "workloads/zipf.h"

namespace filterbench {
namespace {

struct Described {
  struct Params {
    uint64_t requests = 1'000'000;
    // Of objects drawn by an unbounded law of Zipf, a share of 1 / exponent was drawn once, as
    // requests grow (Karlin 1967, "Central limit theorems for certain infinite urn schemes",
    // theorem 9): three quarters.
    double zipf_exponent = 4.0 / 3;
    double cache_mib = 256;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, uint64_t>{"requests", &Params::requests, 1000, uint64_t{1} << 28,
                             "requests in a pass, which are the operations"},
      Knob<Params, double>{"zipf_exponent", &Params::zipf_exponent, 1.05, 3,
                           "of the law that objects are drawn by; the share of objects that are "
                           "asked for once tends to its inverse"},
      Knob<Params, double>{"cache_mib", &Params::cache_mib, 1, 1 << 20,
                           "size of the cache in MiB"}};
};
using Knobs = Described::Params;

constexpr std::string_view kAdmitAll = "always_maybe";

constexpr uint64_t kObjects = uint64_t{1} << 40;

// Sizes by a bounded Pareto law of index 1.2 between 4 KiB and 16 MiB, by the object.
uint64_t BytesOf(uint64_t object) {
  constexpr double kLow = 4096, kHigh = 16 << 20, kIndex = 1.2;
  const double uniform = static_cast<double>(Mix64(object + kGoldenGamma) >> 11) * 0x1p-53;
  const double tail = 1 - uniform * (1 - std::pow(kLow / kHigh, kIndex));
  return static_cast<uint64_t>(kLow * std::pow(tail, -1 / kIndex));
}

// Least recently used goes first.
class Cache {
 public:
  explicit Cache(uint64_t capacity_bytes) : capacity_(capacity_bytes) {}

  bool Touch(uint64_t object) {
    const auto found = places_.find(object);
    if (found == places_.end()) return false;
    order_.splice(order_.begin(), order_, found->second);
    return true;
  }
  // False if the object is larger than the cache and so is not written.
  bool Admit(uint64_t object, uint64_t bytes) {
    if (bytes > capacity_) return false;
    while (used_ + bytes > capacity_) {
      used_ -= order_.back().bytes;
      places_.erase(order_.back().object);
      order_.pop_back();
    }
    order_.push_front({object, bytes});
    places_[object] = order_.begin();
    used_ += bytes;
    return true;
  }

 private:
  struct Entry {
    uint64_t object;
    uint64_t bytes;
  };
  const uint64_t capacity_;
  uint64_t used_ = 0;
  std::list<Entry> order_;
  std::unordered_map<uint64_t, std::list<Entry>::iterator> places_;
};

// What was asked for lately: a filter that is being filled, and the full one before it. A policy
// whose filters take no single keys (always_maybe) has one that is never filled.
class Seen {
 public:
  Seen(const FilterPolicy& policy, uint64_t keys, uint64_t seed)
      : policy_(policy), keys_(keys), seed_(seed) {}

  std::optional<Error> Begin() {
    const uint64_t seed = Mix64(seed_ + rotations_);
    auto filter = policy_.can_insert() ? policy_.Create(keys_, seed) : policy_.Build({}, seed);
    if (!filter) return Error{filter.error()};
    current_ = std::move(*filter);
    inserted_ = 0;
    return std::nullopt;
  }

  bool MayContain(uint64_t hash) const {
    return current_->MayContain(hash) || (previous_ != nullptr && previous_->MayContain(hash));
  }

  // A filter that is full, by its number of keys or by its own account, becomes the one before.
  std::optional<Error> Insert(uint64_t hash) {
    if (inserted_ < keys_ && current_->Insert(hash)) {
      ++inserted_;
      return std::nullopt;
    }
    ++rotations_;
    previous_ = std::move(current_);
    previous_inserted_ = inserted_;
    if (auto error = Begin()) return error;
    if (!current_->Insert(hash)) return Error{"an empty filter refuses a key"};
    inserted_ = 1;
    return std::nullopt;
  }

  const KeyFilter& current() const { return *current_; }
  const KeyFilter* previous() const { return previous_.get(); }
  uint64_t inserted() const { return inserted_; }
  uint64_t previous_inserted() const { return previous_inserted_; }
  uint64_t rotations() const { return rotations_; }

 private:
  const FilterPolicy& policy_;
  const uint64_t keys_;
  const uint64_t seed_;
  std::unique_ptr<KeyFilter> current_;
  std::unique_ptr<KeyFilter> previous_;
  uint64_t inserted_ = 0;
  uint64_t previous_inserted_ = 0;
  uint64_t rotations_ = 0;
};

// Theory's false admissions, summed over trials that meet filters at changing loads. An object is
// let through by either filter: previous + (1 - previous) * current.
//
// Some closed forms take a third of a second, so rates are evaluated once for each of 32 loads, in
// the middle between two, and kept for the filters that follow. Of a filter of k probes, whose rate
// grows with load^k, this is off by k (k + 1) / (24 * 32^2): 0.2 % for k = 7.
class Expectation {
 public:
  Expectation(uint64_t keys, const std::function<void()>& alive) : keys_(keys), alive_(alive) {}

  // Before each request that asks the filters.
  void Meet(const Seen& seen) {
    if (seen.rotations() != rotations_) {
      rotations_ = seen.rotations();
      const auto [full, is_new] = full_rates_.try_emplace(seen.previous_inserted());
      if (is_new) full->second = Evaluate(*seen.previous());
      previous_ = full->second;
      // A filter that refused a key ended short of the middle.
      if (!rates_[step_]) rates_[step_] = previous_;
    }
    step_ = seen.inserted() * kSteps / keys_;
    if (!rates_[step_] && seen.inserted() >= Middle(step_)) {
      rates_[step_] = Evaluate(seen.current());
    }
  }
  // The request is a trial: of an object that neither filter holds.
  void AddTrial() {
    sum_.mean += previous_.mean;
    sum_.instance_sd += previous_.instance_sd;
    trials_[step_] += 1 - previous_.mean;
  }

  // After the last request; nothing where a filter has no closed form. Deviations of the two
  // filters are added, as if they always went together, which is no less than that of the sum.
  std::optional<FprEstimate> Sum(const Seen& seen) {
    for (size_t step = 0; step < trials_.size(); ++step) {
      if (trials_[step] == 0) continue;
      if (!rates_[step]) rates_[step] = Evaluate(seen.current());
      sum_.mean += trials_[step] * rates_[step]->mean;
      sum_.instance_sd += trials_[step] * rates_[step]->instance_sd;
    }
    return known_ ? std::optional(sum_) : std::nullopt;
  }

 private:
  static constexpr uint64_t kSteps = 32;

  // Of the numbers of keys that fall into a step; a full filter is a step of its own.
  uint64_t Middle(uint64_t step) const {
    const auto first = [&](uint64_t of) { return (of * keys_ + kSteps - 1) / kSteps; };
    return (first(step) + std::min(first(step + 1) - 1, keys_)) / 2;
  }
  FprEstimate Evaluate(const KeyFilter& filter) {
    const std::optional<FprEstimate> rate = filter.ExpectedFpr();
    known_ = known_ && rate.has_value();
    alive_();
    return rate.value_or(FprEstimate{});
  }

  const uint64_t keys_;
  const std::function<void()>& alive_;
  bool known_ = true;
  uint64_t rotations_ = 0;
  uint64_t step_ = 0;
  FprEstimate previous_;
  std::array<std::optional<FprEstimate>, kSteps + 1> rates_;
  std::array<double, kSteps + 1> trials_{};
  // By keys held: filters that refuse keys do so at different loads.
  std::map<uint64_t, FprEstimate> full_rates_;
  FprEstimate sum_;
};

// The hashes of what both filters of Seen stand for, exactly.
struct Window {
  std::unordered_set<uint64_t> current;
  std::unordered_set<uint64_t> previous;

  bool contains(uint64_t hash) const { return current.contains(hash) || previous.contains(hash); }
  void Rotate() { previous = std::exchange(current, {}); }
};

class State final : public WorkloadState {
 public:
  State(const WorkloadSetup& setup, const Knobs& knobs, SingleFilter sample)
      : policy_(setup.filters->policy()),
        keys_(setup.keys),
        seed_(setup.seed),
        knobs_(knobs),
        alive_(setup.alive),
        sample_(std::move(sample)) {}

  // Of one filter that holds as many objects as each may.
  WorkloadFilters filters() const override { return sample_.facts; }
  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double>, uint64_t seed) override;

 private:
  friend class Run;
  const FilterPolicy& policy_;
  const uint64_t keys_;
  const uint64_t seed_;
  const Knobs knobs_;
  const std::function<void()> alive_;
  const SingleFilter sample_;
};

class Run final : public WorkloadRun {
 public:
  Run(const State& state, uint64_t seed)
      : state_(state), capacity_bytes_(static_cast<uint64_t>(state.knobs_.cache_mib * (1 << 20))) {
    const ZipfSampler sampler(state.knobs_.zipf_exponent, kObjects);
    requests_.reserve(state.knobs_.requests);
    for (uint64_t i = 0; i < state.knobs_.requests; ++i) requests_.push_back(sampler.Draw(seed));
  }

  uint64_t operations() const override { return requests_.size(); }
  std::optional<uint64_t> positives_expected() const override { return std::nullopt; }

  std::optional<Error> Reset() override {
    cache_.emplace(capacity_bytes_);
    seen_.emplace(state_.policy_, state_.keys_, state_.seed_);
    return seen_->Begin();
  }

  // Requests that the cache answers.
  Result<uint64_t> Iterate() override {
    uint64_t hits = 0;
    for (const uint64_t object : requests_) {
      if (cache_->Touch(object)) {
        ++hits;
        continue;
      }
      const uint64_t hash = HashU64(object, state_.seed_);
      if (seen_->MayContain(hash)) {
        cache_->Admit(object, BytesOf(object));
      } else if (auto error = seen_->Insert(hash)) {
        return *error;
      }
    }
    return hits;
  }

  Result<WorkloadReport> Report() override {
    Tally tally;
    Window held;
    // Objects that came in by a false positive, which the filters do not hold. Asked again they
    // meet the same answer, and are no further trials until both filters are others.
    Window let_through;
    uint64_t rotations = 0;
    Expectation expected(state_.keys_, state_.alive_);
    for (const uint64_t object : requests_) {
      const uint64_t bytes = BytesOf(object);
      tally.bytes += bytes;
      if (cache_->Touch(object)) {
        ++tally.hits;
        tally.hit_bytes += bytes;
        continue;
      }
      const uint64_t hash = HashU64(object, state_.seed_);
      expected.Meet(*seen_);
      const bool maybe = seen_->MayContain(hash);
      if (held.contains(hash)) {
        if (!maybe) return Error{fmt::format("{}an object that was seen is denied", kWrongAnswer)};
      } else if (!let_through.contains(hash)) {
        ++tally.new_objects_asked;
        expected.AddTrial();
        if (maybe) {
          ++tally.false_admissions;
          let_through.current.insert(hash);
        }
      }
      if (maybe) {
        tally.CountWrite(cache_->Admit(object, bytes), bytes);
        continue;
      }
      if (auto error = seen_->Insert(hash)) return *error;
      if (seen_->rotations() != rotations) {
        rotations = seen_->rotations();
        held.Rotate();
        let_through.Rotate();
      }
      held.current.insert(hash);
    }
    const Tally all = AdmitAll();

    std::unordered_map<uint64_t, uint64_t> counts;
    for (const uint64_t object : requests_) ++counts[object];
    const auto once = static_cast<uint64_t>(
        std::count_if(counts.begin(), counts.end(), [](const auto& c) { return c.second == 1; }));
    const auto ratio = [](const char* name, uint64_t part, uint64_t whole) {
      return Metric{.name = name,
                    .certain = part,
                    .per = whole,
                    .expected_by_chance = std::nullopt,
                    .quantity = std::nullopt};
    };
    WorkloadReport report;
    // Of both filters together, as they are asked.
    report.fpr.false_positives = tally.false_admissions;
    report.fpr.queries = tally.new_objects_asked;
    std::optional<double> expected_admissions;
    if (const std::optional<FprEstimate> sum = expected.Sum(*seen_)) {
      expected_admissions = sum->mean;
      // The first request of a pass is always a trial.
      const auto trials = static_cast<double>(tally.new_objects_asked);
      report.fpr.expected = sum->mean / trials;
      report.fpr.expected_instance_sd = sum->instance_sd / trials;
    }
    report.metrics = {
        ratio("disk_writes_per_request", tally.writes, requests_.size()),
        ratio("disk_writes_per_request_admitting_all", all.writes, requests_.size()),
        ratio("disk_bytes_written_per_byte_admitting_all", tally.written_bytes, all.written_bytes),
        ratio("byte_hit_ratio", tally.hit_bytes, tally.bytes),
        ratio("byte_hit_ratio_admitting_all", all.hit_bytes, all.bytes),
        ratio("object_hit_ratio", tally.hits, requests_.size()),
        ratio("one_hit_share_of_objects", once, counts.size()),
        {.name = "false_admissions_per_new_object",
         .by_chance = tally.false_admissions,
         .trials = tally.new_objects_asked,
         .per = tally.new_objects_asked,
         .expected_by_chance = expected_admissions,
         .quantity = std::nullopt},
        Quantity("filter_bytes",
                 static_cast<double>(seen_->current().SizeInBytes() +
                                     (seen_->previous() != nullptr
                                          ? seen_->previous()->SizeInBytes()
                                          : 0)))};
    report.counters = {{"requests", requests_.size()},
                       {"objects", counts.size()},
                       {"objects_asked_once", once},
                       {"hits", tally.hits},
                       {"disk_writes", tally.writes},
                       {"new_objects_asked", tally.new_objects_asked},
                       {"rotations", seen_->rotations()},
                       {"false_admissions", tally.false_admissions}};
    return report;
  }

 private:
  struct Tally {
    uint64_t bytes = 0;
    uint64_t hits = 0;
    uint64_t hit_bytes = 0;
    uint64_t writes = 0;
    uint64_t written_bytes = 0;
    uint64_t new_objects_asked = 0;
    uint64_t false_admissions = 0;

    void CountWrite(bool written, uint64_t object_bytes) {
      if (!written) return;
      ++writes;
      written_bytes += object_bytes;
    }
  };

  // The same requests without a filter: every object is written when it is missed.
  Tally AdmitAll() const {
    Tally tally;
    Cache cache(capacity_bytes_);
    for (const uint64_t object : requests_) {
      const uint64_t bytes = BytesOf(object);
      tally.bytes += bytes;
      if (cache.Touch(object)) {
        ++tally.hits;
        tally.hit_bytes += bytes;
      } else {
        tally.CountWrite(cache.Admit(object, bytes), bytes);
      }
    }
    return tally;
  }

  const State& state_;
  const uint64_t capacity_bytes_;
  std::vector<uint64_t> requests_;  // objects by rank
  std::optional<Cache> cache_;
  std::optional<Seen> seen_;
};

Result<std::unique_ptr<WorkloadRun>> State::Start(std::optional<double>, uint64_t seed) {
  return std::unique_ptr<WorkloadRun>(std::make_unique<Run>(*this, seed));
}

class CdnAdmission final : public WorkloadWithKnobs<Described> {
 public:
  std::string_view name() const override { return "cdn_admission"; }
  std::string_view description() const override {
    return "a cache that writes objects at their second request, told by two filters in turn";
  }
  std::string_view operation() const override { return "request"; }
  bool has_negative_share() const override { return false; }
  std::string Contradiction(const nlohmann::json&, uint64_t keys) const override {
    return keys == 0 ? "keys: a filter of no keys sees nothing" : "";
  }
  // always_maybe admits every object.
  std::string WhyNotWith(std::string_view filter, const nlohmann::json&,
                         bool can_insert) const override {
    if (can_insert || filter == kAdmitAll) return {};
    return fmt::format("{} takes no single keys, and objects come one by one", filter);
  }

  Cost EstimateCost(const nlohmann::json& knobs, uint64_t keys) const override {
    const double requests = static_cast<double>(Parse(knobs).requests);
    return {.memory_bytes = static_cast<double>(keys) * 16 + requests * 100,
            .prepare_seconds = static_cast<double>(keys) * 200e-9 + requests * 1e-6,
            .iteration_seconds = requests * 200e-9};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    const FilterPolicy& policy = setup.filters->policy();
    auto filter = policy.can_insert() ? policy.Create(setup.keys, setup.seed)
                                      : policy.Build({}, setup.seed);
    if (!filter) return Error{filter.error()};
    uint64_t held = 0;
    while (policy.can_insert() && held < setup.keys &&
           (*filter)->Insert(HashU64(held + 1, setup.seed))) {
      ++held;
    }
    const double build_ns =
        std::chrono::duration<double, std::nano>(Clock::now() - start).count();
    setup.alive();
    SingleFilter sample{nullptr, FactsOf(**filter, held, build_ns)};
    return std::unique_ptr<WorkloadState>(
        std::make_unique<State>(setup, Parse(setup.knobs), std::move(sample)));
  }
};

}  // namespace

std::unique_ptr<Workload> MakeCdnAdmission() { return std::make_unique<CdnAdmission>(); }

}  // namespace filterbench
