#ifndef FILTERBENCH_WORKLOADS_LSM_STORE_WORKLOAD_TESTING_H_
#define FILTERBENCH_WORKLOADS_LSM_STORE_WORKLOAD_TESTING_H_

// For tests of the workloads on the store: one made ready in a directory of its own.

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "workloads/testing.h"
#include "workloads/workload.h"

namespace filterbench::lsm {

class TestDirectory {
 public:
  TestDirectory() : path_(::testing::TempDir() + "store-workload-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no directory " + path_);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::filesystem::path path() const { return path_; }

 private:
  std::string path_;
};

inline constexpr uint64_t kTestKeys = 2000;

// A workload made ready: what cannot be is thrown.
class Ready {
 public:
  Ready(std::unique_ptr<Workload> workload, const nlohmann::json& knobs, FilterSource& filters,
        const KeySet& key_set = {}, uint64_t keys = kTestKeys)
      : Ready(std::move(workload), knobs, filters, key_set, keys, 1) {}
  Ready(std::unique_ptr<Workload> workload, const nlohmann::json& knobs, FilterSource& filters,
        const KeySet& key_set, uint64_t keys, uint64_t seed)
      : workload_(std::move(workload)), key_set_(key_set) {
    const auto complete = workload_->CompleteKnobs(knobs);
    if (!complete) throw std::runtime_error(complete.error());
    const std::string contradiction = workload_->Contradiction(*complete, keys);
    if (!contradiction.empty()) throw std::runtime_error(contradiction);
    auto state = workload_->Prepare({.knobs = *complete,
                                     .filters = &filters,
                                     .key_set = &key_set_,
                                     .keys = keys,
                                     .seed = seed,
                                     .directory = directory_.path()});
    if (!state) throw std::runtime_error(state.error());
    state_ = std::move(*state);
  }

  WorkloadState& state() { return *state_; }

  // An iteration as the harness times it, then the report.
  Result<WorkloadReport> Run(std::optional<double> negative_share, uint64_t seed = 1) {
    auto run = state_->Start(negative_share, seed);
    if (!run) return Error{run.error()};
    for (int iteration = 0; iteration < 2; ++iteration) {
      if (auto error = (*run)->Reset()) return *error;
      const Result<uint64_t> positives = (*run)->Iterate();
      if (!positives) return Error{positives.error()};
      EXPECT_EQ(*positives, (*run)->positives_expected());
    }
    if (auto error = (*run)->Reset()) return *error;
    return (*run)->Report();
  }
  // Where it must be right.
  WorkloadReport Report(std::optional<double> negative_share, uint64_t seed = 1) {
    auto report = Run(negative_share, seed);
    if (!report) throw std::runtime_error(report.error());
    return std::move(*report);
  }

 private:
  TestDirectory directory_;
  std::unique_ptr<Workload> workload_;
  KeySet key_set_;
  std::unique_ptr<WorkloadState> state_;
};

// All but times.
inline void ExpectSameCounts(const WorkloadReport& one, const WorkloadReport& other) {
  EXPECT_EQ(one.counters, other.counters);
  EXPECT_EQ(one.parts, other.parts);
  EXPECT_EQ(one.facts, other.facts);
  ASSERT_EQ(one.metrics.size(), other.metrics.size());
  for (size_t i = 0; i < one.metrics.size(); ++i) {
    if (one.metrics[i].name.find("_ns") != std::string::npos) continue;
    if (one.metrics[i].name == "filter_build_share") continue;
    EXPECT_EQ(one.metrics[i], other.metrics[i]) << one.metrics[i].name;
  }
}

// A filter that says the same to every key; with a rate in closed form, and loaded from its bytes
// only if it is sound.
class ConstantSource final : public FilterSource {
 public:
  ConstantSource(bool answer, bool sound) : params_(nlohmann::json::object()) {
    policy_.answer = answer;
    policy_.sound = sound;
  }
  std::string_view filter() const override { return "constant"; }
  const nlohmann::json& params() const override { return params_; }
  const FilterPolicy& policy() const override { return policy_; }
  Result<const FilterPolicy*> WithBitsPerKey(double) override {
    return Error{"has no parameter bits_per_key"};
  }

 private:
  class Filter final : public KeyFilter {
   public:
    explicit Filter(bool answer) : answer_(answer) {}
    bool MayContain(uint64_t) const override { return answer_; }
    void MayContainBits(std::span<const uint64_t> hashes, uint64_t* bits) const override {
      for (size_t i = 0; i * 64 < hashes.size(); ++i) bits[i] = answer_ ? ~uint64_t{0} : 0;
    }
    uint64_t SizeInBytes() const override { return 1; }
    std::optional<uint64_t> PeakBuildBytes() const override { return std::nullopt; }
    std::optional<FprEstimate> ExpectedFpr() const override {
      return FprEstimate{.mean = answer_ ? 1.0 : 0.0, .instance_sd = 0};
    }
    std::span<const std::byte> Table() const override { return {}; }
    std::vector<std::byte> Serialize() const override { return {std::byte{1}}; }
    bool Insert(uint64_t) override { return true; }

   private:
    bool answer_;
  };
  class Policy final : public FilterPolicy {
   public:
    bool answer = true;
    bool sound = true;
    std::string_view identity() const override { return "constant{}"; }
    bool can_insert() const override { return false; }
    Result<std::unique_ptr<KeyFilter>> Build(std::span<const uint64_t>,
                                             uint64_t) const override {
      return std::unique_ptr<KeyFilter>(std::make_unique<Filter>(answer));
    }
    Result<std::unique_ptr<KeyFilter>> Create(uint64_t, uint64_t) const override {
      return Error{"takes no single keys"};
    }
    Result<std::unique_ptr<KeyFilter>> Load(std::span<const std::byte>) const override {
      if (!sound) return Error{"the bytes are no filter"};
      return std::unique_ptr<KeyFilter>(std::make_unique<Filter>(answer));
    }
  };

  nlohmann::json params_;
  Policy policy_;
};

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_STORE_WORKLOAD_TESTING_H_
