#include "workloads/semi_join/semi_join.h"

#include <algorithm>
#include <bit>
#include <cstring>
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

enum class Join { kOn, kOff };

struct Described {
  struct Params {
    uint64_t rows = uint64_t{1} << 20;
    uint64_t row_bytes = 64;
    uint64_t batch_rows = 1024;
    Join join = Join::kOn;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, uint64_t>{"rows", &Params::rows, 1000, uint64_t{1} << 26,
                             "rows of the scanned side, which are the operations"},
      Knob<Params, uint64_t>{"row_bytes", &Params::row_bytes, 8, 4096,
                             "bytes of a row that is sent, its key's hash among them"},
      Knob<Params, uint64_t>{"batch_rows", &Params::batch_rows, 1, 65536,
                             "rows that the filter is asked about at once"},
      Choice{"join", &Params::join, std::array<std::string_view, 2>{"on", "off"},
             "whether rows that arrive are looked up in the hash table of the join, in the time "
             "that is measured"}};
};
using Knobs = Described::Params;

// The join's table at its usual load.
constexpr double kTableLoad = 0.5;
// Rows whose slots are under way in the join, as filters have several lines under way in batches: a
// join that waits for each would make a filter look better than it is.
constexpr uint64_t kRowsAhead = 16;

class State final : public WorkloadState {
 public:
  State(const WorkloadSetup& setup, const Knobs& knobs, SingleFilter single, HashSet table)
      : key_set_(*setup.key_set),
        keys_(setup.keys),
        hash_seed_(setup.seed),
        knobs_(knobs),
        single_(std::move(single)),
        table_(std::move(table)) {}

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
  const HashSet table_;
};

class Run final : public WorkloadRun {
 public:
  Run(const State& state, double negative_share, uint64_t seed)
      : state_(state),
        filter_(*state.single_.filter),
        rows_(state.key_set_, state.keys_, state.knobs_.rows, negative_share, seed),
        payload_(state.knobs_.batch_rows * state.knobs_.row_bytes, 'r'),
        sent_(state.knobs_.batch_rows * state.knobs_.row_bytes) {
    hashes_.reserve(state.knobs_.batch_rows);
    bits_.resize((state.knobs_.batch_rows + 63) / 64);
  }

  uint64_t operations() const override { return rows_.size(); }
  std::optional<uint64_t> positives_expected() const override {
    if (state_.knobs_.join == Join::kOff) return std::nullopt;
    return rows_.size() - rows_.negatives();
  }

  // Rows that are joined, or those that are sent where nothing is joined.
  Result<uint64_t> Iterate() override {
    const Passed passed = Scan(state_.knobs_.join);
    return state_.knobs_.join == Join::kOn ? passed.joined : passed.sent;
  }

  Result<WorkloadReport> Report() override {
    // Joined whatever is timed: where rows are only counted, a false positive makes up for a match
    // that was lost.
    const Passed passed = Scan(Join::kOn);
    const uint64_t matching = rows_.size() - rows_.negatives();
    if (passed.joined != matching) {
      return Error{fmt::format("{}{} of {} matching rows were joined", kWrongAnswer, passed.joined,
                               matching)};
    }
    WorkloadReport report;
    // No matching row was dropped: what else was sent is false positives.
    report.fpr = MetFpr(filter_, passed.sent - matching, rows_.negatives());
    report.counters = {{"rows", rows_.size()},
                       {"matching_rows", matching},
                       {"rows_sent", passed.sent},
                       {"bytes_sent", passed.sent * state_.knobs_.row_bytes}};
    const uint64_t dropped = rows_.size() - passed.sent;
    report.metrics = {
        WithFalsePositives("rows_sent_per_row", matching, report.fpr, rows_.size()),
        {.name = "rows_dropped_per_row",
         .certain = dropped,
         .per = rows_.size(),
         .expected_by_chance = std::nullopt,
         .quantity = std::nullopt},
        Quantity("filter_bytes", static_cast<double>(filter_.SizeInBytes()))};
    if (filter_.SizeInBytes() != 0) {
      report.metrics.push_back({.name = "bytes_saved_per_filter_byte",
                                .certain = dropped * state_.knobs_.row_bytes,
                                .per = filter_.SizeInBytes(),
                                .expected_by_chance = std::nullopt,
                                .quantity = std::nullopt});
    }
    report.facts = {{"network", "counted, not crossed"}};
    return report;
  }

 private:
  struct Passed {
    uint64_t sent = 0;
    uint64_t joined = 0;
  };

  Passed Scan(Join join) {
    Passed passed;
    hashes_.clear();
    rows_.ForEachHash(state_.hash_seed_, [&](uint64_t hash) {
      hashes_.push_back(hash);
      if (hashes_.size() == state_.knobs_.batch_rows) Pass(join, passed);
    });
    if (!hashes_.empty()) Pass(join, passed);
    return passed;
  }

  // One batch: what the filter lets through is packed, as an operator hands it on, and joined.
  void Pass(Join join, Passed& passed) {
    filter_.MayContainBits(hashes_, bits_.data());
    const uint64_t row_bytes = state_.knobs_.row_bytes;
    char* end = sent_.data();
    for (size_t word = 0; word * 64 < hashes_.size(); ++word) {
      for (uint64_t left = bits_[word]; left != 0; left &= left - 1) {
        const size_t row = word * 64 + static_cast<size_t>(std::countr_zero(left));
        std::memcpy(end, payload_.data() + row * row_bytes, row_bytes);
        std::memcpy(end, &hashes_[row], sizeof(uint64_t));
        end += row_bytes;
      }
    }
    passed.sent += static_cast<uint64_t>(end - sent_.data()) / row_bytes;
    if (join == Join::kOn) {
      passed.joined += JoinArrived(static_cast<uint64_t>(end - sent_.data()) / row_bytes);
    }
    hashes_.clear();
  }

  // How many of the first rows in the buffer have a partner.
  uint64_t JoinArrived(uint64_t rows) const {
    const auto hash_of = [&](uint64_t row) {
      uint64_t hash;
      std::memcpy(&hash, sent_.data() + row * state_.knobs_.row_bytes, sizeof(hash));
      return hash;
    };
    for (uint64_t row = 0; row < std::min(rows, kRowsAhead); ++row) {
      state_.table_.Prefetch(hash_of(row));
    }
    uint64_t joined = 0;
    for (uint64_t row = 0; row < rows; ++row) {
      if (row + kRowsAhead < rows) state_.table_.Prefetch(hash_of(row + kRowsAhead));
      joined += state_.table_.Contains(hash_of(row)) ? 1 : 0;
    }
    return joined;
  }

  const State& state_;
  const KeyFilter& filter_;
  const LookupKeys rows_;
  const std::string payload_;  // of a batch
  std::vector<char> sent_;
  std::vector<uint64_t> hashes_;
  std::vector<uint64_t> bits_;
};

Result<std::unique_ptr<WorkloadRun>> State::Start(std::optional<double> negative_share,
                                                  uint64_t seed) {
  return std::unique_ptr<WorkloadRun>(std::make_unique<Run>(*this, *negative_share, seed));
}

class SemiJoin final : public WorkloadWithKnobs<Described> {
 public:
  std::string_view name() const override { return "semi_join"; }
  std::string_view description() const override {
    return "rows of a scan that a filter of the join's other side drops before the network";
  }
  std::string_view operation() const override { return "row"; }
  bool has_negative_share() const override { return true; }

  Cost EstimateCost(const nlohmann::json& knobs, uint64_t keys) const override {
    const Knobs parsed = Parse(knobs);
    const double n = static_cast<double>(keys);
    const double rows = static_cast<double>(parsed.rows);
    // A batch of rows before the filter and after it.
    const double batches = 2.0 * static_cast<double>(parsed.batch_rows * parsed.row_bytes);
    return {.memory_bytes = n * (8 + 32 + 8 / kTableLoad) + rows * 64 + batches,
            .prepare_seconds = n * 250e-9,
            .iteration_seconds = rows * 40e-9};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    std::vector<uint64_t> hashes;
    hashes.reserve(setup.keys);
    HashSet table(setup.keys, kTableLoad);
    ForEachPresentHash(setup, [&](uint64_t hash) {
      hashes.push_back(hash);
      table.Insert(hash);
    });
    Result<SingleFilter> single = BuildSingleFilter(setup, hashes);
    if (!single) return Error{single.error()};
    return std::unique_ptr<WorkloadState>(std::make_unique<State>(
        setup, Parse(setup.knobs), std::move(*single), std::move(table)));
  }
};

}  // namespace

std::unique_ptr<Workload> MakeSemiJoin() { return std::make_unique<SemiJoin>(); }

}  // namespace filterbench
