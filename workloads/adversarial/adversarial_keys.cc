#include "workloads/adversarial/adversarial_keys.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "workloads/single_filter.h"

namespace filterbench {
namespace {

enum class Attack { kNone, kFalsePositives, kPileUp, kCollide };
enum class Reseed { kNone, kFilter, kAll };

struct Described {
  struct Params {
    Attack attack = Attack::kFalsePositives;
    Reseed reseed = Reseed::kNone;
    double strength = 0.1;
    uint64_t candidates = uint64_t{1} << 20;
    uint64_t operations = 100'000;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"attack", &Params::attack,
             std::array<std::string_view, 4>{"none", "false_positives", "pile_up", "collide"},
             "which keys the attacker chooses: any; absent ones that the filter lets through; some "
             "to insert whose key hashes share their high bits; some to insert that collide with "
             "one key"},
      Choice{"reseed", &Params::reseed, std::array<std::string_view, 3>{"none", "filter", "all"},
             "seeds that are fresh when the chosen keys arrive: none, the filter's, or that of the "
             "key hash too"},
      Knob<Params, double>{"strength", &Params::strength, 0.001, 0.9,
                           "the attacker's share of the lookups, and of the inserted keys in "
                           "pile_up and collide"},
      Knob<Params, uint64_t>{"candidates", &Params::candidates, 1000, uint64_t{1} << 28,
                             "keys among which the attacker chooses"},
      Knob<Params, uint64_t>{"operations", &Params::operations, 1000, uint64_t{1} << 26,
                             "lookups of absent keys in a pass; fewer where the attacker finds "
                             "fewer keys"}};
};
using Knobs = Described::Params;

bool Inserts(Attack attack) { return attack == Attack::kPileUp || attack == Attack::kCollide; }

uint64_t Share(double share, uint64_t of) {
  return static_cast<uint64_t>(std::llround(share * static_cast<double>(of)));
}

struct Seeds {
  uint64_t key_hash;
  uint64_t filter;
};

Seeds KnownSeeds(uint64_t seed) { return {seed, Mix64(seed + kGoldenGamma)}; }
Seeds SeedsAfter(Reseed reseed, uint64_t seed) {
  Seeds seeds = KnownSeeds(seed);
  if (reseed != Reseed::kNone) seeds.filter = Mix64(seed + 2 * kGoldenGamma);
  if (reseed == Reseed::kAll) seeds.key_hash = Mix64(seed + 3 * kGoldenGamma);
  return seeds;
}

// A filter over keys, by their indices.
struct Made {
  std::unique_ptr<KeyFilter> filter;  // none where building failed
  std::vector<bool> refused;          // by key, in the order given
  WorkloadFilters facts;
};

std::vector<uint64_t> Hashes(const KeySet& key_set, const std::vector<uint64_t>& indices,
                             uint64_t seed) {
  std::vector<uint64_t> hashes;
  hashes.reserve(indices.size());
  for (const uint64_t index : indices) hashes.push_back(key_set.Hash(index, seed));
  return hashes;
}

// Key by key where the filter can, since only so does it refuse some and keep the others.
Result<Made> Make(const WorkloadSetup& setup, const std::vector<uint64_t>& indices,
                  const Seeds& seeds) {
  using Clock = std::chrono::steady_clock;
  const std::vector<uint64_t> hashes = Hashes(*setup.key_set, indices, seeds.key_hash);
  const FilterPolicy& policy = setup.filters->policy();
  Made made;
  made.refused.resize(hashes.size());
  const Clock::time_point start = Clock::now();
  if (policy.can_insert()) {
    auto filter = policy.Create(hashes.size(), seeds.filter);
    if (!filter) return Error{filter.error()};
    made.filter = std::move(*filter);
    for (size_t i = 0; i < hashes.size(); ++i) made.refused[i] = !made.filter->Insert(hashes[i]);
  } else {
    auto filter = policy.Build(hashes, seeds.filter);
    // What is too large was not broken by anybody's keys.
    if (!filter && filter.error().starts_with("too large")) return Error{filter.error()};
    if (filter) made.filter = std::move(*filter);
  }
  const double build_ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  setup.alive();
  if (made.filter) {
    const auto refused =
        static_cast<uint64_t>(std::count(made.refused.begin(), made.refused.end(), true));
    made.facts = FactsOf(*made.filter, hashes.size() - refused, build_ns);
  } else {
    made.refused.assign(hashes.size(), true);
    made.facts.builds = 1;
    made.facts.digest = fmt::format("{:016x}", XXH3_64bits(nullptr, 0));
  }
  return made;
}

// What the attacker chose, as indices of keys.
struct Chosen {
  std::vector<uint64_t> inserted;
  std::vector<uint64_t> asked;
};

// Indices among [begin, begin + candidates) that the filter lets through, `most` at most.
std::vector<uint64_t> LetThrough(const WorkloadSetup& setup, const KeyFilter& filter,
                                 uint64_t begin, uint64_t candidates, uint64_t most) {
  constexpr uint64_t kKeysBetweenSignsOfLife = uint64_t{1} << 20;
  const uint64_t key_hash_seed = KnownSeeds(setup.seed).key_hash;
  std::vector<uint64_t> found;
  for (uint64_t i = begin; i < begin + candidates && found.size() < most; ++i) {
    if (filter.MayContain(setup.key_set->Hash(i, key_hash_seed))) found.push_back(i);
    if (i % kKeysBetweenSignsOfLife == 0) setup.alive();
  }
  return found;
}

// `honest`: indices of the keys that are inserted anyway. Candidates begin at `begin`; `insert` and
// `ask` keys are wanted.
Result<Chosen> Choose(const WorkloadSetup& setup, const Knobs& knobs,
                      const std::vector<uint64_t>& honest, uint64_t begin, uint64_t insert,
                      uint64_t ask) {
  const Seeds seeds = KnownSeeds(setup.seed);
  Chosen chosen;
  std::vector<uint64_t> found;
  switch (knobs.attack) {
    case Attack::kNone:
      for (uint64_t i = 0; i < ask; ++i) found.push_back(begin + i);
      break;
    case Attack::kFalsePositives: {
      const Result<Made> made = Make(setup, honest, seeds);
      if (!made) return Error{made.error()};
      if (!made->filter) return Error{"the filter cannot be built of honest keys"};
      found = LetThrough(setup, *made->filter, begin, knobs.candidates, ask);
      break;
    }
    case Attack::kPileUp: {
      std::vector<std::pair<uint64_t, uint64_t>> by_hash;
      by_hash.reserve(knobs.candidates);
      for (uint64_t i = begin; i < begin + knobs.candidates; ++i) {
        by_hash.emplace_back(setup.key_set->Hash(i, seeds.key_hash), i);
      }
      const auto end = by_hash.begin() + static_cast<std::ptrdiff_t>(insert + ask);
      std::nth_element(by_hash.begin(), end, by_hash.end());
      std::for_each(by_hash.begin(), end, [&](const auto& pair) { found.push_back(pair.second); });
      // By index, so that inserted and asked keys are alike.
      std::sort(found.begin(), found.end());
      break;
    }
    case Attack::kCollide: {
      // Not by WhyNotWith, which does not know the knobs.
      if (!setup.filters->policy().can_insert()) {
        return Error{
            fmt::format("{}attack collide needs a filter that takes single keys", kNotHere)};
      }
      auto filter = setup.filters->policy().Create(honest.size() + insert, seeds.filter);
      if (!filter) return Error{filter.error()};
      if (!(*filter)->Insert(setup.key_set->Hash(begin, seeds.key_hash))) {
        return Error{"the filter refuses its first key"};
      }
      found = LetThrough(setup, **filter, begin, knobs.candidates, insert + ask);
      if (found.size() < 4) found.clear();  // too few to insert some and ask others
      // Where fewer were found than wanted, most of them are inserted.
      insert = std::min<uint64_t>(insert, found.size() - found.size() / 4);
      break;
    }
  }
  if (found.size() <= insert) {
    return Error{fmt::format("{}of {} candidates too few are of use to the attacker", kNotHere,
                             knobs.candidates)};
  }
  const auto middle = found.begin() + static_cast<std::ptrdiff_t>(insert);
  chosen.inserted.assign(found.begin(), middle);
  chosen.asked.assign(middle, found.end());
  return chosen;
}

struct Victim {
  Made made;
  std::vector<uint64_t> keys;  // indices, the attacker's first
  uint64_t attackers_keys = 0;
  std::vector<uint64_t> attackers_lookups;
  std::vector<uint64_t> honest_lookups;
};

class Run final : public WorkloadRun {
 public:
  Run(const KeySet& key_set, uint64_t key_hash_seed, const Knobs& knobs, const Victim& victim)
      : key_set_(key_set), key_hash_seed_(key_hash_seed), knobs_(knobs), victim_(victim) {}

  uint64_t operations() const override {
    return victim_.attackers_lookups.size() + victim_.honest_lookups.size();
  }
  std::optional<uint64_t> positives_expected() const override { return std::nullopt; }

  Result<uint64_t> Iterate() override {
    return CountMaybe(victim_.attackers_lookups) + CountMaybe(victim_.honest_lookups);
  }

  Result<WorkloadReport> Report() override {
    const uint64_t attackers = victim_.attackers_lookups.size();
    const uint64_t honest = victim_.honest_lookups.size();
    const uint64_t attackers_maybe = CountMaybe(victim_.attackers_lookups);
    const uint64_t honest_maybe = CountMaybe(victim_.honest_lookups);
    uint64_t denied = 0;
    uint64_t attackers_refused = 0;
    uint64_t honest_refused = 0;
    for (size_t i = 0; i < victim_.keys.size(); ++i) {
      if (victim_.made.refused[i]) {
        ++(i < victim_.attackers_keys ? attackers_refused : honest_refused);
      } else {
        denied += MayContain(victim_.keys[i]) ? 0 : 1;
      }
    }
    if (denied != 0) {
      return Error{fmt::format("{}{} keys that were inserted are denied", kWrongAnswer, denied)};
    }
    const bool known = knobs_.attack == Attack::kFalsePositives && knobs_.reseed == Reseed::kNone;
    if (known && attackers_maybe != attackers) {
      return Error{fmt::format("{}{} false positives are denied by a filter of the same seed",
                               kWrongAnswer, attackers - attackers_maybe)};
    }

    WorkloadReport report;
    const bool built = victim_.made.filter != nullptr;
    // Theory is of keys that nobody chose, or whose choice the seeds no longer know.
    const bool no_choice = knobs_.attack == Attack::kNone || knobs_.reseed == Reseed::kAll;
    const bool honest_theory = built && (no_choice || !Inserts(knobs_.attack));
    report.fpr.false_positives = honest_maybe;
    report.fpr.queries = honest;
    if (honest_theory) report.fpr = MetFpr(*victim_.made.filter, honest_maybe, honest);
    Metric attack = {.name = "false_positives_per_attack_lookup",
                     .certain = known ? attackers_maybe : 0,
                     .by_chance = known ? 0 : attackers_maybe,
                     .trials = known ? 0 : attackers,
                     .per = attackers,
                     .expected_by_chance = std::nullopt,
                     .quantity = std::nullopt};
    if (built && no_choice) {
      if (const auto expected = victim_.made.filter->ExpectedFpr()) {
        attack.expected_by_chance = expected->mean * static_cast<double>(attackers);
      }
    }
    report.metrics.push_back(std::move(attack));
    report.metrics.push_back(
        WithFalsePositives("false_positives_per_honest_lookup", 0, report.fpr, honest));
    report.metrics.push_back(
        Certain("refused_per_honest_key", honest_refused,
                victim_.keys.size() - victim_.attackers_keys));
    if (victim_.attackers_keys != 0) {
      report.metrics.push_back(
          Certain("refused_per_attack_key", attackers_refused, victim_.attackers_keys));
    }
    report.metrics.push_back(Certain("failed_builds_per_build", built ? 0 : 1, 1));
    report.counters = {{"lookups", attackers + honest},
                       {"attack_lookups", attackers},
                       {"attack_keys", victim_.attackers_keys},
                       {"keys", victim_.keys.size()},
                       {"refused", attackers_refused + honest_refused},
                       {"false_positives", attackers_maybe + honest_maybe}};
    return report;
  }

 private:
  static Metric Certain(std::string name, uint64_t certain, uint64_t per) {
    return {.name = std::move(name),
            .certain = certain,
            .per = per,
            .expected_by_chance = std::nullopt,
            .quantity = std::nullopt};
  }
  // An application whose filter cannot be built lets everything through.
  bool MayContain(uint64_t index) const {
    const uint64_t hash = key_set_.Hash(index, key_hash_seed_);
    return victim_.made.filter == nullptr || victim_.made.filter->MayContain(hash);
  }
  uint64_t CountMaybe(const std::vector<uint64_t>& indices) const {
    uint64_t maybe = 0;
    for (const uint64_t index : indices) maybe += MayContain(index) ? 1 : 0;
    return maybe;
  }

  const KeySet& key_set_;
  const uint64_t key_hash_seed_;
  const Knobs& knobs_;
  const Victim& victim_;
};

class State final : public WorkloadState {
 public:
  State(const WorkloadSetup& setup, const Knobs& knobs, Victim victim)
      : key_set_(*setup.key_set),
        key_hash_seed_(SeedsAfter(knobs.reseed, setup.seed).key_hash),
        knobs_(knobs),
        victim_(std::move(victim)) {}

  WorkloadFilters filters() const override { return victim_.made.facts; }
  // The attacker's keys are what they are: nothing is drawn for a stream.
  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double>, uint64_t) override {
    return std::unique_ptr<WorkloadRun>(
        std::make_unique<Run>(key_set_, key_hash_seed_, knobs_, victim_));
  }

 private:
  const KeySet& key_set_;
  const uint64_t key_hash_seed_;
  const Knobs knobs_;
  const Victim victim_;
};

class AdversarialKeys final : public WorkloadWithKnobs<Described> {
 public:
  std::string_view name() const override { return "adversarial_keys"; }
  std::string_view description() const override {
    return "keys chosen by somebody who knows the seeds, before and after fresh ones";
  }
  std::string_view operation() const override { return "lookup"; }
  bool has_negative_share() const override { return false; }

  std::string Contradiction(const nlohmann::json& knobs, uint64_t keys) const override {
    const Knobs parsed = Parse(knobs);
    const uint64_t ask = Share(parsed.strength, parsed.operations);
    const uint64_t insert = Inserts(parsed.attack) ? Share(parsed.strength, keys) : 0;
    if (ask + insert >= parsed.candidates) {
      return fmt::format("candidates {}: strength {} needs more than {} of {} keys and {} lookups",
                         parsed.candidates, parsed.strength, ask + insert, keys,
                         parsed.operations);
    }
    return {};
  }

  Cost EstimateCost(const nlohmann::json& knobs, uint64_t keys) const override {
    const Knobs parsed = Parse(knobs);
    const double n = static_cast<double>(keys);
    const double candidates = static_cast<double>(parsed.candidates);
    const double operations = static_cast<double>(parsed.operations);
    // Indices, hashes and what a build needs besides; candidates are held by pile_up alone.
    return {.memory_bytes = n * (16 + 32) + operations * 16 +
                            (parsed.attack == Attack::kPileUp ? candidates * 16 : 0),
            .prepare_seconds = n * 500e-9 + candidates * 60e-9,
            .iteration_seconds = operations * 60e-9};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    const Knobs knobs = Parse(setup.knobs);
    const uint64_t ask = Share(knobs.strength, knobs.operations);
    const uint64_t insert = Inserts(knobs.attack) ? Share(knobs.strength, setup.keys) : 0;
    const uint64_t honest_asked = knobs.operations - ask;
    const uint64_t needed = setup.keys + knobs.candidates + honest_asked;
    if (needed > setup.key_set->size()) {
      return Error{fmt::format("{}the set has {} keys, this needs {}", kNotHere,
                               setup.key_set->size(), needed)};
    }
    std::vector<uint64_t> honest;
    for (uint64_t i = 0; i < setup.keys - insert; ++i) honest.push_back(i);
    Result<Chosen> chosen = Choose(setup, knobs, honest, setup.keys, insert, ask);
    if (!chosen) return Error{chosen.error()};

    Victim victim;
    victim.attackers_keys = chosen->inserted.size();
    victim.attackers_lookups = std::move(chosen->asked);
    // First, when the damage is the greatest to those who come later.
    victim.keys = std::move(chosen->inserted);
    victim.keys.insert(victim.keys.end(), honest.begin(), honest.end());
    for (uint64_t i = 0; i < honest_asked; ++i) {
      victim.honest_lookups.push_back(setup.keys + knobs.candidates + i);
    }
    Result<Made> made = Make(setup, victim.keys, SeedsAfter(knobs.reseed, setup.seed));
    if (!made) return Error{made.error()};
    victim.made = std::move(*made);
    return std::unique_ptr<WorkloadState>(
        std::make_unique<State>(setup, knobs, std::move(victim)));
  }
};

}  // namespace

std::unique_ptr<Workload> MakeAdversarialKeys() { return std::make_unique<AdversarialKeys>(); }

}  // namespace filterbench
