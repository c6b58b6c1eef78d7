#ifndef FILTERBENCH_WORKLOADS_TESTING_H_
#define FILTERBENCH_WORKLOADS_TESTING_H_

// For tests: filters of a known type as workloads hold them. In a run they come by name, from the
// harness.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "filters/params_json.h"
#include "workloads/key_filter.h"
#include "workloads/workload.h"

namespace filterbench {

// A filter of type F (filters/filter.h).
template <class F>
class KeyFilterOf final : public KeyFilter {
 public:
  explicit KeyFilterOf(F filter) : filter_(std::move(filter)) {}

  bool MayContain(uint64_t hash) const override { return filter_.MayContain(hash); }
  void MayContainBits(std::span<const uint64_t> hashes, uint64_t* bits) const override {
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (i % 64 == 0) bits[i / 64] = 0;
      bits[i / 64] |= uint64_t{MayContain(hashes[i])} << (i % 64);
    }
  }
  uint64_t SizeInBytes() const override { return filter_.SizeInBytes(); }
  std::optional<uint64_t> PeakBuildBytes() const override { return std::nullopt; }
  std::optional<FprEstimate> ExpectedFpr() const override { return filter_.ExpectedFpr(); }
  std::span<const std::byte> Table() const override { return filter_.Table(); }
  std::vector<std::byte> Serialize() const override { return filter_.Serialize(); }
  bool Insert(uint64_t hash) override {
    if constexpr (requires { filter_.Insert(hash); }) {
      return filter_.Insert(hash) == decltype(filter_.Insert(hash))::kOk;
    }
    throw std::logic_error("takes no single keys");
  }

 private:
  F filter_;
};

template <class F>
class PolicyOf final : public FilterPolicy {
 public:
  // The error is thrown: parameters of tests are right.
  explicit PolicyOf(const nlohmann::json& params = nlohmann::json::object())
      : params_(*ParamsFromJson<F>(params)),
        identity_(fmt::format("{}{}", F::kInfo.name, ParamsToJson<F>(params_).dump())) {}

  std::string_view identity() const override { return identity_; }
  bool can_insert() const override {
    return requires(F& filter, uint64_t hash) { filter.Insert(hash); };
  }
  Result<std::unique_ptr<KeyFilter>> Build(std::span<const uint64_t> hashes,
                                           uint64_t seed) const override {
    return Erase(F::Build(hashes, Seeded(seed)));
  }
  Result<std::unique_ptr<KeyFilter>> Create(uint64_t keys, uint64_t seed) const override {
    if constexpr (requires { F::Create(keys, Seeded(seed)); }) {
      return Erase(F::Create(keys, Seeded(seed)));
    }
    throw std::logic_error("takes no single keys");
  }
  Result<std::unique_ptr<KeyFilter>> Load(std::span<const std::byte> bytes) const override {
    return Erase(F::Deserialize(bytes));
  }

 private:
  typename F::Params Seeded(uint64_t seed) const {
    typename F::Params params = params_;
    params.seed = seed;
    return params;
  }
  static Result<std::unique_ptr<KeyFilter>> Erase(Result<F> filter) {
    if (!filter) return Error{filter.error()};
    return std::unique_ptr<KeyFilter>(std::make_unique<KeyFilterOf<F>>(std::move(*filter)));
  }

  typename F::Params params_;
  std::string identity_;
};

template <class F>
class SourceOf final : public FilterSource {
 public:
  explicit SourceOf(const nlohmann::json& params = nlohmann::json::object())
      : params_(ParamsToJson<F>(*ParamsFromJson<F>(params))), policy_(params_) {}

  std::string_view filter() const override { return F::kInfo.name; }
  const nlohmann::json& params() const override { return params_; }
  const FilterPolicy& policy() const override { return policy_; }
  Result<const FilterPolicy*> WithBitsPerKey(double bits_per_key) override {
    if (!params_.contains("bits_per_key")) {
      return Error{fmt::format("{} has no parameter bits_per_key", filter())};
    }
    nlohmann::json params = params_;
    params["bits_per_key"] = bits_per_key;
    if (const auto parsed = ParamsFromJson<F>(params); !parsed) return Error{parsed.error()};
    auto& policy = others_[bits_per_key];
    if (policy == nullptr) policy = std::make_unique<PolicyOf<F>>(params);
    return policy.get();
  }

 private:
  nlohmann::json params_;
  PolicyOf<F> policy_;
  std::map<double, std::unique_ptr<PolicyOf<F>>> others_;
};

// F with a fault: it denies about one in 16 of its keys.
template <class F>
struct Denying : F {
  explicit Denying(F honest) : F(std::move(honest)) {}

  static Result<Denying> Build(std::span<const uint64_t> hashes,
                               const typename F::Params& params) {
    return Wrap(F::Build(hashes, params));
  }
  static Result<Denying> Deserialize(std::span<const std::byte> bytes) {
    return Wrap(F::Deserialize(bytes));
  }
  bool MayContain(uint64_t hash) const { return hash % 16 != 0 && F::MayContain(hash); }

 private:
  static Result<Denying> Wrap(Result<F> honest) {
    if (!honest) return Error{honest.error()};
    return Denying(std::move(*honest));
  }
};

// A key set of each kind, that of a file among them, which lives as long.
class KeySetsOfEachKind {
 public:
  // The file has `lines` keys.
  explicit KeySetsOfEachKind(uint64_t lines)
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("filterbench_keys_{}.txt", getpid())) {
    std::ofstream file(path_);
    for (uint64_t i = 0; i < lines; ++i) file << "user" << i * i << '\n';
    if (!file.flush()) throw std::runtime_error(fmt::format("cannot write {}", path_.string()));
  }
  ~KeySetsOfEachKind() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  KeySetsOfEachKind(const KeySetsOfEachKind&) = delete;
  KeySetsOfEachKind& operator=(const KeySetsOfEachKind&) = delete;

  std::vector<KeySetSpec> specs() const {
    return {{.kind = KeyKind::kMixed},
            {.kind = KeyKind::kSequential},
            {.kind = KeyKind::kBytes, .length_bytes = 24},
            {.kind = KeyKind::kFile, .path = path_.string()}};
  }

 private:
  std::filesystem::path path_;
};

// A workload that was made ready, and one counted pass over it.
class TestedWorkload {
 public:
  // Knobs and filter must be right: an error of preparing is thrown.
  TestedWorkload(const Workload& workload, FilterSource& source, nlohmann::json knobs,
                 uint64_t keys, KeySetSpec key_set = {}, uint64_t seed = 1)
      : key_set_(*KeySet::Open(key_set, seed)) {
    setup_.knobs = *workload.CompleteKnobs(knobs);
    setup_.filters = &source;
    setup_.key_set = &key_set_;
    setup_.keys = keys;
    setup_.seed = seed;
    auto state = workload.Prepare(setup_);
    if (!state) throw std::runtime_error(state.error());
    state_ = std::move(*state);
  }

  WorkloadState& state() { return *state_; }

  // Of a counted pass that no iteration came before: what it finds wrong by itself.
  Result<WorkloadReport> ReportAlone(std::optional<double> negative_share, uint64_t seed = 5) {
    const auto run = state_->Start(negative_share, seed);
    if (!run) throw std::runtime_error(run.error());
    Reset(**run);
    return (*run)->Report();
  }

  // After an iteration, which must find what it says; an error is thrown.
  WorkloadReport Report(std::optional<double> negative_share, uint64_t seed = 5) {
    const auto run = state_->Start(negative_share, seed);
    if (!run) throw std::runtime_error(run.error());
    Reset(**run);
    const Result<uint64_t> positives = (*run)->Iterate();
    if (!positives) throw std::runtime_error(positives.error());
    if (const auto expected = (*run)->positives_expected(); expected && *expected != *positives) {
      throw std::runtime_error(fmt::format("{} positives, not {}", *positives, *expected));
    }
    positives_ = *positives;
    Reset(**run);
    Result<WorkloadReport> report = (*run)->Report();
    if (!report) throw std::runtime_error(report.error());
    return std::move(*report);
  }

  uint64_t positives() const { return positives_; }  // of the last iteration

 private:
  static void Reset(WorkloadRun& run) {
    if (const auto error = run.Reset()) throw std::runtime_error(error->message);
  }

  KeySet key_set_;
  WorkloadSetup setup_;
  std::unique_ptr<WorkloadState> state_;
  uint64_t positives_ = 0;
};

// The metric of a name, which must be there.
inline const Metric& MetricOf(const WorkloadReport& report, std::string_view name) {
  for (const Metric& metric : report.metrics) {
    if (metric.name == name) return metric;
  }
  throw std::runtime_error(fmt::format("no metric {}", name));
}

inline double ValueOfMetric(const WorkloadReport& report, std::string_view name) {
  const Metric& metric = MetricOf(report, name);
  if (metric.quantity) return *metric.quantity;
  return static_cast<double>(metric.certain + metric.by_chance) / static_cast<double>(metric.per);
}

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_TESTING_H_
