#include "workloads/adversarial/adversarial_keys.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/bloom/leveldb_bloom.h"
#include "filters/cuckoo/cuckoo.h"
#include "filters/fuse/xor.h"
#include "filters/limits/always_maybe.h"
#include "filters/theory/agreement.h"
#include "workloads/testing.h"

namespace filterbench {
namespace {

constexpr uint64_t kKeys = 5000;
constexpr double kFalseAlarm = 1e-9;

nlohmann::json Knobs(const char* attack, const char* reseed) {
  return {{"attack", attack}, {"reseed", reseed}, {"operations", 5000}, {"candidates", 200'000}};
}

template <class F>
WorkloadReport ReportOf(const nlohmann::json& knobs, uint64_t keys = kKeys,
                        const nlohmann::json& params = nlohmann::json::object()) {
  SourceOf<F> source(params);
  return TestedWorkload(*MakeAdversarialKeys(), source, knobs, keys).Report(std::nullopt);
}

constexpr const char* kByAttacker = "false_positives_per_attack_lookup";
constexpr const char* kByOthers = "false_positives_per_honest_lookup";

// Whether a metric is what theory expects of keys that nobody chose.
bool IsOrdinary(const WorkloadReport& report, const char* name) {
  const Metric& metric = MetricOf(report, name);
  return theory::FprAgrees(metric.by_chance, metric.trials,
                           {*report.fpr.expected, report.fpr.expected_instance_sd.value_or(0)},
                           kFalseAlarm);
}

template <class F>
class FoundFalsePositives : public testing::Test {};
using OfEachKind = testing::Types<BlockedBloom, Cuckoo, Xor>;
TYPED_TEST_SUITE(FoundFalsePositives, OfEachKind);

TYPED_TEST(FoundFalsePositives, PassUntilAllIsReseeded) {
  const WorkloadReport known = ReportOf<TypeParam>(Knobs("false_positives", "none"));
  EXPECT_EQ(ValueOfMetric(known, kByAttacker), 1);
  EXPECT_EQ(MetricOf(known, kByAttacker).trials, 0u);  // nothing about it is chance
  EXPECT_TRUE(IsOrdinary(known, kByOthers));
  EXPECT_GT(known.counters.at("attack_lookups"), 20u);

  const WorkloadReport fresh = ReportOf<TypeParam>(Knobs("false_positives", "all"));
  EXPECT_EQ(fresh.counters.at("attack_lookups"), known.counters.at("attack_lookups"));
  EXPECT_TRUE(IsOrdinary(fresh, kByAttacker));
  EXPECT_TRUE(IsOrdinary(fresh, kByOthers));
}

// Fuse filters derive all from hash and seed.
TEST(AdversarialKeys, AFilterThatMixesItsSeedIntoEachHashIsMendedByIt) {
  EXPECT_TRUE(IsOrdinary(ReportOf<Xor>(Knobs("false_positives", "filter")), kByAttacker));
}

// Fingerprint and first bucket are bits of the key hash; the seed moves the other bucket, and
// decides which keys are displaced: neither nothing nor all is mended.
TEST(AdversarialKeys, AFilterThatTakesPartOfItsPlacesFromTheKeyHashIsMendedInPart) {
  const WorkloadReport report = ReportOf<Cuckoo>(Knobs("false_positives", "filter"));
  EXPECT_LT(ValueOfMetric(report, kByAttacker), 0.9);
  EXPECT_FALSE(IsOrdinary(report, kByAttacker));
  EXPECT_TRUE(IsOrdinary(report, kByOthers));
}

// All bits that they probe follow from the key hash: only another one helps.
TEST(AdversarialKeys, AFilterThatUsesNoSeedIsMendedByTheKeyHashAlone) {
  EXPECT_EQ(ValueOfMetric(ReportOf<BlockedBloom>(Knobs("false_positives", "filter")), kByAttacker),
            1);
  EXPECT_EQ(ValueOfMetric(ReportOf<LevelDbBloom>(Knobs("false_positives", "filter")), kByAttacker),
            1);
  const WorkloadReport all = ReportOf<LevelDbBloom>(Knobs("false_positives", "all"));
  EXPECT_LT(ValueOfMetric(all, kByAttacker), 0.2);
}

TEST(AdversarialKeys, KeysThatNobodyChoseAreOrdinary) {
  for (const char* reseed : {"none", "filter", "all"}) {
    const WorkloadReport report = ReportOf<BlockedBloom>(Knobs("none", reseed));
    EXPECT_TRUE(IsOrdinary(report, kByAttacker)) << reseed;
    EXPECT_EQ(report.counters.at("attack_lookups"), 500u);
    EXPECT_EQ(report.counters.at("attack_keys"), 0u);
  }
}

TEST(AdversarialKeys, PilesFillBlocksThatTheKeyHashChooses) {
  const WorkloadReport known = ReportOf<BlockedBloom>(Knobs("pile_up", "none"));
  EXPECT_GT(ValueOfMetric(known, kByAttacker), 0.5);
  EXPECT_FALSE(known.fpr.expected.has_value());  // theory is of uniform keys
  EXPECT_EQ(known.counters.at("attack_keys"), kKeys / 10);
  EXPECT_EQ(known.counters.at("keys"), kKeys);
  const WorkloadReport fresh = ReportOf<BlockedBloom>(Knobs("pile_up", "all"));
  EXPECT_TRUE(IsOrdinary(fresh, kByAttacker));
}

// A key's two buckets have room for eight of them. Of a million candidates about
// 2 buckets / (1000 / 4 / 0.95) / 2^8 pass by one key: 29. A Poisson variable of that mean is below
// 12, too few for a refusal, with a chance of 1e-4; of this seed it is not.
TEST(AdversarialKeys, CollidingKeysAreRefusedUntilReseeded) {
  nlohmann::json knobs = Knobs("collide", "none");
  knobs["candidates"] = 1'000'000;
  const nlohmann::json params = {{"fingerprint_bits", "8"}};
  const WorkloadReport known = ReportOf<Cuckoo>(knobs, 1000, params);
  EXPECT_GT(ValueOfMetric(known, "refused_per_attack_key"), 0);
  EXPECT_GE(known.counters.at("attack_keys") - known.counters.at("refused"), 8u);
  EXPECT_EQ(ValueOfMetric(known, kByAttacker), 1);
  knobs["reseed"] = "all";
  const WorkloadReport fresh = ReportOf<Cuckoo>(knobs, 1000, params);
  EXPECT_EQ(ValueOfMetric(fresh, "refused_per_attack_key"), 0);
  EXPECT_EQ(ValueOfMetric(fresh, "refused_per_honest_key"), 0);
}

TEST(AdversarialKeys, TheSameSeedCountsTheSame) {
  const nlohmann::json knobs = Knobs("pile_up", "filter");
  EXPECT_EQ(ReportOf<BlockedBloom>(knobs).metrics, ReportOf<BlockedBloom>(knobs).metrics);
}

TEST(AdversarialKeys, AllKindsOfKeysCanBeChosen) {
  const KeySetsOfEachKind key_sets(kKeys + 210'000);
  for (const KeySetSpec& key_set : key_sets.specs()) {
    SourceOf<BlockedBloom> source;
    TestedWorkload tested(*MakeAdversarialKeys(), source, Knobs("false_positives", "none"), kKeys,
                          key_set);
    EXPECT_EQ(ValueOfMetric(tested.Report(std::nullopt), kByAttacker), 1);
  }
}

TEST(AdversarialKeys, ADeniedKeyIsAWrongAnswer) {
  for (const char* attack : {"none", "pile_up"}) {
    SourceOf<Denying<Xor>> source;
    TestedWorkload tested(*MakeAdversarialKeys(), source, Knobs(attack, "none"), kKeys);
    const Result<WorkloadReport> report = tested.ReportAlone(std::nullopt);
    ASSERT_FALSE(report) << attack;
    EXPECT_THAT(report.error(), testing::StartsWith(kWrongAnswer));
  }
}

// It cannot be built where one in 20 hashes is among the smallest 128th of all.
struct Brittle : Xor {
  explicit Brittle(Xor honest) : Xor(std::move(honest)) {}
  static Result<Brittle> Build(std::span<const uint64_t> hashes, const Params& params) {
    const auto small = std::count_if(hashes.begin(), hashes.end(),
                                     [](uint64_t hash) { return hash >> 57 == 0; });
    if (static_cast<size_t>(small) > hashes.size() / 20) return Error{"no seed works"};
    auto filter = Xor::Build(hashes, params);
    if (!filter) return Error{filter.error()};
    return Brittle(std::move(*filter));
  }
  static Result<Brittle> Deserialize(std::span<const std::byte> bytes) {
    auto filter = Xor::Deserialize(bytes);
    if (!filter) return Error{filter.error()};
    return Brittle(std::move(*filter));
  }
};

TEST(AdversarialKeys, AFilterThatCannotBeBuiltLetsAllThrough) {
  const WorkloadReport known = ReportOf<Brittle>(Knobs("pile_up", "filter"));
  EXPECT_EQ(ValueOfMetric(known, "failed_builds_per_build"), 1);
  EXPECT_EQ(ValueOfMetric(known, kByOthers), 1);
  EXPECT_EQ(ValueOfMetric(known, "refused_per_honest_key"), 1);
  const WorkloadReport fresh = ReportOf<Brittle>(Knobs("pile_up", "all"));
  EXPECT_EQ(ValueOfMetric(fresh, "failed_builds_per_build"), 0);
}

TEST(AdversarialKeys, SaysWhatCannotBe) {
  const auto workload = MakeAdversarialKeys();
  const auto complete = [&](const nlohmann::json& knobs) {
    return *workload->CompleteKnobs(knobs);
  };
  EXPECT_EQ(workload->Contradiction(complete(Knobs("pile_up", "none")), kKeys), "");
  EXPECT_THAT(workload->Contradiction(complete(Knobs("pile_up", "none")), 2'000'000),
              testing::HasSubstr("candidates 200000"));
  EXPECT_EQ(workload->Contradiction(complete(Knobs("none", "none")), 2'000'000), "");
  // 1000 keys have a false positive of 16-bit fingerprints with a chance of 0.015; not here.
  nlohmann::json few = Knobs("false_positives", "none");
  few["candidates"] = 1000;
  try {
    ReportOf<Xor>(few, kKeys, {{"fingerprint_bits", "16"}});
    ADD_FAILURE();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(kNotHere));
  }
}

}  // namespace
}  // namespace filterbench
