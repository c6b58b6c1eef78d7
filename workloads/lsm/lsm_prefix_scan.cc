#include "workloads/lsm/lsm_prefix_scan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "workloads/key_bytes.h"
#include "workloads/lookups.h"
#include "workloads/lsm/store_workload.h"

namespace filterbench {
namespace {

using lsm::LoadedStore;
using lsm::ReadAccount;
using lsm::ReadStats;

constexpr uint32_t kPrefixBytes = 8;

enum class PrefixFilter { kOn, kOff };

struct Description {
  struct Params : lsm::StoreKnobs {
    uint64_t keys_per_prefix = 8;
    PrefixFilter prefix_filter = PrefixFilter::kOn;
  };
  static constexpr auto kKnobs = std::tuple_cat(
      lsm::ShapeKnobs<Params>(),
      std::tuple{lsm::FilesKnob<Params>(),
                 Knob<Params, uint64_t>{"keys_per_prefix", &Params::keys_per_prefix, 1, 1'000'000,
                                        "rows of a prefix, which are written together"},
                 Choice<Params, PrefixFilter, 2>{
                     "prefix_filter",
                     &Params::prefix_filter,
                     {"on", "off"},
                     "off: every file whose keys the prefix lies between is opened"},
                 lsm::ReadsKnob<Params>(), lsm::OperationsKnob<Params>()});
};

std::string BigEndian(uint64_t number, size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(number >> (8 * (bytes - 1 - i)));
  return text;
}

// Prefixes from the key set: its integers, or hashes of its strings, which may begin alike.
std::string PrefixAt(const KeySet& key_set, uint64_t index) {
  if (!key_set.is_bytes()) return KeyBytes(key_set, index);
  return BigEndian(key_set.Hash(index, 0), kPrefixBytes);
}

class ScanRun final : public WorkloadRun {
 public:
  struct Scan {
    std::string prefix;
    uint64_t rows = 0;
  };

  ScanRun(LoadedStore& store, std::vector<Scan> scans)
      : store_(store), scans_(std::move(scans)) {}

  uint64_t operations() const override { return scans_.size(); }
  std::optional<uint64_t> positives_expected() const override {
    return std::count_if(scans_.begin(), scans_.end(),
                         [](const Scan& scan) { return scan.rows > 0; });
  }

  Result<uint64_t> Iterate() override {
    uint64_t found = 0;
    for (const Scan& scan : scans_) {
      uint64_t rows = 0;
      const auto error = store_.store().ScanPrefix(
          scan.prefix, nullptr, [&](std::string_view, std::string_view) {
            ++rows;
            return true;
          });
      if (error) return *error;
      found += rows > 0 ? 1 : 0;
    }
    return found;
  }

  Result<WorkloadReport> Report() override {
    ReadAccount account(store_.facts());
    ReadStats stats;
    uint64_t all_rows = 0;
    for (const Scan& scan : scans_) {
      stats.runs.assign(store_.facts().runs.size(), {});
      uint64_t rows = 0;
      std::string wrong;
      const auto error = store_.store().ScanPrefix(
          scan.prefix, &stats, [&](std::string_view key, std::string_view value) {
            if (key != scan.prefix + BigEndian(rows, kSuffixBytes)) {
              wrong = fmt::format("row {} has another key", rows);
            } else if (value != ValueOf(key, store_.knobs().value_bytes)) {
              wrong = fmt::format("row {} has another value than was put", rows);
            }
            ++rows;
            return wrong.empty();
          });
      if (error) return *error;
      if (wrong.empty() && rows != scan.rows) {
        wrong = fmt::format("{} rows instead of {}", rows, scan.rows);
      }
      if (!wrong.empty()) return Error{fmt::format("{}scan of a prefix: {}", kWrongAnswer, wrong)};
      all_rows += rows;
      account.Add(scan.prefix, stats.runs);
    }
    if (const std::string law = account.BrokenLaw(); !law.empty()) {
      return Error{fmt::format("{}counters: {}", kWrongAnswer, law)};
    }
    if (const auto error = store_.CheckFilters()) return *error;

    const lsm::ReadCounters& total = account.total();
    const uint64_t scans = account.operations();
    const uint64_t opened = total.not_consulted + total.maybe_true + total.maybe_false;
    Metric files_opened = account.BlockReads("files_opened_per_scan");
    files_opened.certain = opened - total.maybe_false;
    WorkloadReport report;
    report.metrics = {
        account.BlockReads("block_reads_per_scan"),
        std::move(files_opened),
        lsm::PerOperation("candidates_per_scan", total.candidates, scans),
        lsm::PerOperation("rows_per_scan", all_rows, scans),
    };
    for (Metric& metric : store_.ReportMetrics()) report.metrics.push_back(std::move(metric));
    report.counters = account.Counters();
    report.counters["scans"] = scans;
    report.counters["rows"] = all_rows;
    report.parts = account.Parts();
    report.facts = store_.ReportFacts();
    report.fpr = account.Fpr();
    return report;
  }

  static constexpr size_t kSuffixBytes = 4;

 private:
  LoadedStore& store_;
  std::vector<Scan> scans_;
};

class ScanState final : public WorkloadState {
 public:
  // `prefixes`: those of the rows in the store, in ascending order.
  ScanState(std::unique_ptr<LoadedStore> store, KeySet key_set, uint64_t keys_per_prefix,
            std::vector<std::string> prefixes)
      : store_(std::move(store)),
        key_set_(std::move(key_set)),
        keys_per_prefix_(keys_per_prefix),
        prefixes_(std::move(prefixes)) {}

  WorkloadFilters filters() const override { return store_->facts().filters; }

  Result<std::unique_ptr<WorkloadRun>> Start(std::optional<double> negative_share,
                                             uint64_t seed) override {
    const double share = negative_share.value_or(0);
    const uint64_t present = prefixes_.size();
    const uint64_t operations = LookupsWithoutRepeats(store_->knobs().operations, share, present,
                                                      key_set_.size() - present);
    const LookupIndices stream =
        MakeLookups(present, key_set_.size(), operations, share, seed);
    if (stream.negatives !=
        static_cast<uint64_t>(std::llround(static_cast<double>(operations) * share))) {
      return Error{fmt::format("{}negative_share: the key set has no absent keys", kNotHere)};
    }
    std::vector<ScanRun::Scan> scans;
    scans.reserve(operations);
    for (const uint64_t index : stream.indices) {
      std::string prefix = PrefixAt(key_set_, index);
      uint64_t rows = 0;
      if (index < present) {
        rows = std::min(keys_per_prefix_, store_->keys() - index * keys_per_prefix_);
      } else if (std::binary_search(prefixes_.begin(), prefixes_.end(), prefix)) {
        return Error{fmt::format("{}two keys of the key set have the same prefix", kNotHere)};
      }
      scans.push_back({std::move(prefix), rows});
    }
    return std::unique_ptr<WorkloadRun>(std::make_unique<ScanRun>(*store_, std::move(scans)));
  }

 private:
  std::unique_ptr<LoadedStore> store_;
  KeySet key_set_;
  uint64_t keys_per_prefix_;
  std::vector<std::string> prefixes_;
};

class LsmPrefixScan final : public WorkloadWithKnobs<Description> {
 public:
  std::string_view name() const override { return "lsm_prefix_scan"; }
  std::string_view description() const override {
    return "scans of an LSM store for all rows under a prefix of 8 bytes, with filters of prefixes";
  }
  std::string_view operation() const override { return "scan"; }
  bool has_negative_share() const override { return true; }

  std::string Contradiction(const nlohmann::json& json, uint64_t keys) const override {
    const Knobs knobs = Parse(json);
    if (knobs.keys_per_prefix > keys) {
      return fmt::format("keys_per_prefix: {} are more than all {} keys", knobs.keys_per_prefix,
                         keys);
    }
    if (knobs.shape == lsm::Shape::kFiles && keys / knobs.keys_per_prefix < knobs.files) {
      return fmt::format("files: {} files need more than {} prefixes", knobs.files,
                         keys / knobs.keys_per_prefix);
    }
    return lsm::ContradictionOf(WithFilterLevels(knobs), keys, true);
  }
  Cost EstimateCost(const nlohmann::json& json, uint64_t keys) const override {
    const Knobs knobs = WithFilterLevels(Parse(json));
    constexpr double kScanBytes = 64;
    constexpr double kRowSeconds = 0.2e-6;
    const auto rows = static_cast<double>(knobs.keys_per_prefix);
    const auto operations = static_cast<double>(knobs.operations);
    // Without filters of prefixes every file is read.
    const double gets = 1 + 0.5 * static_cast<double>(knobs.files);
    return {.memory_bytes = lsm::EstimatedMemoryBytes(knobs, keys) + operations * kScanBytes +
                            static_cast<double>(keys) / rows * kScanBytes,
            .prepare_seconds = lsm::EstimatedLoadSeconds(knobs, keys),
            .iteration_seconds =
                operations * (gets * lsm::EstimatedGetSeconds(knobs, keys) + rows * kRowSeconds)};
  }

  Result<std::unique_ptr<WorkloadState>> Prepare(const WorkloadSetup& setup) const override {
    const Knobs knobs = WithFilterLevels(Parse(setup.knobs));
    const KeySet key_set = *setup.key_set;
    const uint64_t per_prefix = knobs.keys_per_prefix;
    std::vector<std::string> prefixes;
    for (uint64_t i = 0; i * per_prefix < setup.keys; ++i) {
      prefixes.push_back(PrefixAt(key_set, i));
    }
    std::sort(prefixes.begin(), prefixes.end());
    if (std::adjacent_find(prefixes.begin(), prefixes.end()) != prefixes.end()) {
      return Error{fmt::format("{}two keys of the key set have the same prefix", kNotHere)};
    }
    const bool filtered = knobs.prefix_filter == PrefixFilter::kOn;
    auto store = LoadedStore::Load(
        setup, {.knobs = knobs,
                .keys = setup.keys,
                .key_of =
                    [key_set, per_prefix](uint64_t index) {
                      return PrefixAt(key_set, index / per_prefix) +
                             BigEndian(index % per_prefix, ScanRun::kSuffixBytes);
                    },
                .rows_together = per_prefix,
                .prefix_bytes = filtered ? kPrefixBytes : 0});
    if (!store) return Error{store.error()};
    if (const auto error = (*store)->OpenForReads()) return *error;
    return std::unique_ptr<WorkloadState>(std::make_unique<ScanState>(
        std::move(*store), key_set, per_prefix, std::move(prefixes)));
  }

 private:
  // Without filters of prefixes, scans ask none.
  static Knobs WithFilterLevels(Knobs knobs) {
    knobs.filter_levels = knobs.prefix_filter == PrefixFilter::kOn ? lsm::FilterLevels::kAll
                                                                   : lsm::FilterLevels::kNone;
    return knobs;
  }
};

}  // namespace

std::unique_ptr<Workload> MakeLsmPrefixScan() { return std::make_unique<LsmPrefixScan>(); }

}  // namespace filterbench
