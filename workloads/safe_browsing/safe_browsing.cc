#include "workloads/safe_browsing/safe_browsing.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "filters/hash.h"
#include "workloads/lookup_keys.h"
#include "workloads/single_filter.h"

namespace filterbench {
namespace {

struct Described {
  struct Params {
    uint64_t prefix_bits = 32;
    uint64_t operations = uint64_t{1} << 20;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, uint64_t>{"prefix_bits", &Params::prefix_bits, 13, 64,
                             "first bits of a URL's hash that the list holds"},
      Knob<Params, uint64_t>{"operations", &Params::operations, 1000, uint64_t{1} << 28,
                             "URLs that are visited in a pass"}};
};
using Knobs = Described::Params;

class State final : public WorkloadState {
 public:
  State(const WorkloadSetup& setup, const Knobs& knobs, std::vector<uint64_t> prefixes,
        SingleFilter single)
      : key_set_(*setup.key_set),
        keys_(setup.keys),
        hash_seed_(setup.seed),
        knobs_(knobs),
        prefixes_(std::move(prefixes)),
        single_(std::move(single)) {}

  WorkloadFilters filters() const override { return single_.facts; }
  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double> negative_share,
                                             uint64_t seed) override;

 private:
  friend class Run;
  const KeySet& key_set_;
  const uint64_t keys_;
  const uint64_t hash_seed_;
  const Knobs knobs_;
  const std::vector<uint64_t> prefixes_;  // ascending, each once
  const SingleFilter single_;
};

uint64_t PrefixOf(uint64_t hash, uint64_t bits) { return hash >> (64 - bits); }

// What the filter holds: prefixes are few bits, filters want uniform hashes of 64.
uint64_t HashOfPrefix(uint64_t prefix, uint64_t seed) { return HashU64(prefix, ~seed); }

class Run final : public WorkloadRun {
 public:
  Run(const State& state, double negative_share, uint64_t seed)
      : state_(state),
        filter_(*state.single_.filter),
        visits_(state.key_set_, state.keys_, state.knobs_.operations, negative_share, seed) {}

  uint64_t operations() const override { return visits_.size(); }
  // Requests to the server: those about clean URLs are known only once the filter is.
  std::optional<uint64_t> positives_expected() const override { return std::nullopt; }

  Result<uint64_t> Iterate() override {
    uint64_t requests = 0;
    visits_.ForEachHash(state_.hash_seed_,
                        [&](uint64_t hash) { requests += MayBeListed(hash) ? 1 : 0; });
    return requests;
  }

  Result<WorkloadReport> Report() override {
    uint64_t index = 0;
    uint64_t missed = 0;
    uint64_t collisions = 0;
    uint64_t false_positives = 0;
    visits_.ForEachHash(state_.hash_seed_, [&](uint64_t hash) {
      const bool listed = visits_.is_present(index++);
      const bool maybe = MayBeListed(hash);
      const bool prefix_listed =
          std::binary_search(state_.prefixes_.begin(), state_.prefixes_.end(),
                             PrefixOf(hash, state_.knobs_.prefix_bits));
      missed += prefix_listed && !maybe ? 1 : 0;
      if (listed) {
        missed += prefix_listed ? 0 : 1;
      } else if (prefix_listed) {
        ++collisions;
      } else {
        false_positives += maybe ? 1 : 0;
      }
    });
    if (missed != 0) {
      return Error{
          fmt::format("{}{} visits to listed URLs were not noticed", kWrongAnswer, missed)};
    }
    const uint64_t clean = visits_.negatives();
    WorkloadReport report;
    report.fpr = MetFpr(filter_, false_positives, clean - collisions);
    report.counters = {{"visits", visits_.size()},
                       {"clean_visits", clean},
                       {"prefix_collisions", collisions},
                       {"false_positives", false_positives}};
    const double prefixes = static_cast<double>(state_.prefixes_.size());
    report.metrics = {
        WithFalsePositives("server_requests_per_clean_url", collisions, report.fpr, clean),
        Quantity("list_bytes", static_cast<double>(filter_.SizeInBytes())),
        Quantity("list_bits_per_prefix",
                 static_cast<double>(filter_.SizeInBytes()) * 8 / std::max(prefixes, 1.0)),
        Quantity("sorted_prefixes_bytes",
                 prefixes * static_cast<double>(state_.knobs_.prefix_bits) / 8)};
    if (state_.knobs_.prefix_bits == 32) {
      report.metrics.push_back(
          Quantity("prefix_set_bytes", static_cast<double>(PrefixSetBytes(state_.prefixes_))));
    }
    return report;
  }

 private:
  bool MayBeListed(uint64_t hash) const {
    return filter_.MayContain(
        HashOfPrefix(PrefixOf(hash, state_.knobs_.prefix_bits), state_.hash_seed_));
  }

  const State& state_;
  const KeyFilter& filter_;
  const LookupKeys visits_;
};

Result<std::unique_ptr<WorkloadRun>> State::Start(std::optional<double> negative_share,
                                                  uint64_t seed) {
  return std::unique_ptr<WorkloadRun>(std::make_unique<Run>(*this, *negative_share, seed));
}

class SafeBrowsing final : public WorkloadWithKnobs<Described> {
 public:
  std::string_view name() const override { return "safe_browsing"; }
  std::string_view description() const override {
    return "a browser's list of unsafe sites: which clean URLs still ask the server";
  }
  std::string_view operation() const override { return "URL"; }
  bool has_negative_share() const override { return true; }
  std::string Contradiction(const nlohmann::json& knobs, uint64_t keys) const override {
    const Knobs parsed = Parse(knobs);
    if (parsed.prefix_bits < 64 && keys >= uint64_t{1} << parsed.prefix_bits) {
      return fmt::format("prefix_bits: there are no {} prefixes of {} bits", keys,
                         parsed.prefix_bits);
    }
    // Visits of one prefix get one answer. With eight prefixes for each, the variance of false
    // positives is at most 1/8 above that of as many independent trials.
    if (parsed.prefix_bits < 64 && parsed.operations > (uint64_t{1} << parsed.prefix_bits) / 8) {
      return fmt::format("prefix_bits: {} bits are too few for {} visits, many of which would "
                         "share prefixes and so answers; at most {} operations",
                         parsed.prefix_bits, parsed.operations,
                         (uint64_t{1} << parsed.prefix_bits) / 8);
    }
    return {};
  }

  Cost EstimateCost(const nlohmann::json& knobs, uint64_t keys) const override {
    const double n = static_cast<double>(keys);
    const double operations = static_cast<double>(Parse(knobs).operations);
    return {.memory_bytes = n * (16 + 32) + operations * 80,
            .prepare_seconds = n * 300e-9,
            .iteration_seconds = operations * 50e-9};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    const Knobs knobs = Parse(setup.knobs);
    std::vector<uint64_t> prefixes(setup.keys);
    for (uint64_t i = 0; i < setup.keys; ++i) {
      prefixes[i] = PrefixOf(setup.key_set->Hash(i, setup.seed), knobs.prefix_bits);
    }
    std::sort(prefixes.begin(), prefixes.end());
    prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
    setup.alive();
    std::vector<uint64_t> hashes;
    hashes.reserve(prefixes.size());
    for (const uint64_t prefix : prefixes) hashes.push_back(HashOfPrefix(prefix, setup.seed));
    Result<SingleFilter> single = BuildSingleFilter(setup, hashes);
    if (!single) return Error{single.error()};
    return std::unique_ptr<WorkloadState>(
        std::make_unique<State>(setup, knobs, std::move(prefixes), std::move(*single)));
  }
};

}  // namespace

uint64_t PrefixSetBytes(const std::vector<uint64_t>& ascending_prefixes) {
  constexpr uint64_t kIndexBytes = 8;
  constexpr uint64_t kDifferenceBytes = 2;
  constexpr uint64_t kMaxRun = 100;
  uint64_t bytes = 0;
  uint64_t run = 0;
  for (size_t i = 0; i < ascending_prefixes.size(); ++i) {
    if (i == 0 || run == kMaxRun ||
        ascending_prefixes[i] - ascending_prefixes[i - 1] > UINT16_MAX) {
      bytes += kIndexBytes;
      run = 0;
    } else {
      bytes += kDifferenceBytes;
      ++run;
    }
  }
  return bytes;
}

std::unique_ptr<Workload> MakeSafeBrowsing() { return std::make_unique<SafeBrowsing>(); }

}  // namespace filterbench
