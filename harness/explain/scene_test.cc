#include "harness/explain/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/explain/examples.h"

namespace filterbench::explain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Scene Made(const Request& request) {
  Result<Scene> scene = Explain(request);
  EXPECT_TRUE(scene) << scene.error();
  return std::move(*scene);
}

Scene OfExample(std::string_view name) { return Made(FindExample(name)->request); }

std::vector<uint64_t> SetPositions(const Scene& scene) {
  return SceneToJson(scene)["set_positions"].get<std::vector<uint64_t>>();
}

TEST(Explain, TheWorkedExample) {
  const Scene scene = OfExample("worked");
  EXPECT_EQ(scene.bits.size(), 32);
  EXPECT_EQ(scene.request.shape.k, 3);
  EXPECT_THAT(SetPositions(scene), ElementsAre(2, 5, 11, 14, 20, 27));
  EXPECT_EQ(scene.set_bits, 6);

  ASSERT_THAT(scene.asked, SizeIs(3));
  const AskedKey& apple = scene.asked[0];
  EXPECT_EQ(apple.verdict, Verdict::kTruePositive);

  const AskedKey& kiwi = scene.asked[1];
  EXPECT_EQ(kiwi.key, "kiwi");
  EXPECT_EQ(kiwi.verdict, Verdict::kTrueNegative);
  EXPECT_THAT(kiwi.unset, ElementsAre(9));

  const AskedKey& grape = scene.asked[2];
  EXPECT_EQ(grape.key, "grape");
  EXPECT_EQ(grape.verdict, Verdict::kFalsePositive);
  ASSERT_THAT(grape.probes, SizeIs(3));
  EXPECT_THAT(grape.probes[0].keys, ElementsAre("mango"));
  EXPECT_THAT(grape.probes[1].keys, ElementsAre("apple"));
  EXPECT_THAT(grape.probes[2].keys, ElementsAre("apple"));
  EXPECT_FALSE(scene.measured_fpr);
}

TEST(Explain, AnEmptyFilterSaysNoToAll) {
  for (const Hashing hashing : {Hashing::kXxh3, Hashing::kKm, Hashing::kMd5}) {
    if (hashing == Hashing::kMd5 && !HasMd5()) continue;
    const Scene scene =
        Made({.shape = {64, 3, hashing}, .ask = {"apple", "", "x y", std::string(1000, 'z')}});
    for (const AskedKey& key : scene.asked) EXPECT_EQ(key.verdict, Verdict::kTrueNegative);
    EXPECT_EQ(scene.set_bits, 0);
    EXPECT_EQ(scene.expected_fpr->mean, 0);
    EXPECT_EQ(scene.measured_fpr->false_positives, 0);
  }
}

TEST(Explain, TheCountIsOfDistinctSetBits) {
  const Scene scene =
      Made({.shape = {32, 3, Hashing::kByHand},
            .by_hand = {{"a", {7, 7, 1}}, {"b", {1, 2, 2}}, {"c", {9, 2, 9}}},
            .add = {"a", "b", "a"},
            .ask = {"c"}});
  EXPECT_EQ(scene.set_bits, 3);
  EXPECT_EQ(scene.distinct_keys, 2);
  EXPECT_THAT(scene.added[0].newly_set, ElementsAre(7, 1));
  EXPECT_THAT(scene.added[1].newly_set, ElementsAre(2));
  EXPECT_THAT(scene.added[2].newly_set, IsEmpty());
  EXPECT_TRUE(scene.added[2].again);
  // A key whose probes meet, or that is added again, is no second key of a bit.
  EXPECT_THAT(scene.setters[7], ElementsAre(0));
  EXPECT_THAT(scene.setters[1], ElementsAre(0, 1));
  EXPECT_THAT(scene.setters[2], ElementsAre(1));
  EXPECT_THAT(scene.asked[0].unset, ElementsAre(9));
}

TEST(Explain, DeletingBreaksAKeyThatSharesABit) {
  const Scene scene = Made({.shape = {32, 3, Hashing::kByHand},
                            .by_hand = {{"apple", {2, 14, 27}},
                                        {"plum", {14, 5, 30}},
                                        {"fig", {8, 9, 10}}},
                            .add = {"apple", "plum", "fig"},
                            .remove = {"apple"},
                            .ask = {"apple", "plum", "fig"}});
  ASSERT_THAT(scene.removed, SizeIs(1));
  EXPECT_TRUE(scene.removed[0].was_added);
  EXPECT_THAT(scene.removed[0].cleared, ElementsAre(2, 14, 27));
  ASSERT_THAT(scene.removed[0].broken, SizeIs(1));
  EXPECT_EQ(scene.removed[0].broken[0].key, "plum");
  EXPECT_THAT(scene.removed[0].broken[0].missing, ElementsAre(14));
  EXPECT_EQ(scene.asked[0].verdict, Verdict::kTrueNegative);
  EXPECT_EQ(scene.asked[1].verdict, Verdict::kFalseNegative);
  EXPECT_EQ(scene.asked[2].verdict, Verdict::kTruePositive);
  EXPECT_EQ(scene.distinct_keys, 2);
  EXPECT_THAT(scene.expected_fpr.error(), HasSubstr("cleared"));
}

TEST(Explain, RemovingAKeyThatWasNeverAddedBreaksOthersToo) {
  const Scene scene = Made({.shape = {8, 2, Hashing::kByHand},
                            .by_hand = {{"a", {0, 1}}, {"b", {1, 2}}},
                            .add = {"a"},
                            .remove = {"b", "b"}});
  EXPECT_FALSE(scene.removed[0].was_added);
  EXPECT_THAT(scene.removed[0].cleared, ElementsAre(1));
  EXPECT_THAT(scene.removed[0].broken, SizeIs(1));
  EXPECT_THAT(scene.removed[1].broken, IsEmpty());
}

TEST(Explain, TheExampleOfDeletionHasAFalseNegativeAmongItsQuestions) {
  const Scene scene = OfExample("deletion");
  EXPECT_THAT(scene.removed[0].broken, testing::Not(IsEmpty()));
  EXPECT_TRUE(std::any_of(scene.asked.begin(), scene.asked.end(), [](const AskedKey& key) {
    return key.verdict == Verdict::kFalseNegative;
  }));
}

TEST(Explain, SaturationOnlyRises) {
  for (const Hashing hashing : {Hashing::kXxh3, Hashing::kKm}) {
    const Scene scene = Made({.shape = {64, 3, hashing}, .saturate = true});
    ASSERT_THAT(scene.saturation, SizeIs(7));
    EXPECT_EQ(scene.saturation[0].keys, 0);
    for (size_t i = 1; i < scene.saturation.size(); ++i) {
      const SaturationRow& before = scene.saturation[i - 1];
      const SaturationRow& row = scene.saturation[i];
      EXPECT_GT(row.keys, before.keys);
      EXPECT_GE(row.set_bits, before.set_bits);
      EXPECT_GT(row.expected->mean, before.expected->mean);
      // The same absent keys are asked, and no bit was cleared.
      EXPECT_GE(row.measured.false_positives, before.measured.false_positives);
    }
    EXPECT_GT(scene.saturation.back().measured.rate, 0.9);
  }
  // One bit, one probe: the fewest stops that there are.
  EXPECT_THAT(Made({.shape = {1, 1}, .saturate = true}).saturation, SizeIs(5));
}

// What was asked are k independent uniform probes of one filter, whose `set_bits` are known: the
// false positives are binomial with (set_bits / m)^k. Five standard deviations are exceeded with a
// chance of 6e-7 a filter.
TEST(Explain, MeasuredIsWhatTheFillGives) {
  for (const uint64_t keys : {5, 10, 20, 60}) {
    for (const Shape shape : {Shape{64, 3}, Shape{100, 2}, Shape{512, 5}}) {
      Request request{.shape = shape};
      for (uint64_t i = 0; i < keys; ++i) request.add.push_back(fmt::format("some {}", i));
      const Scene scene = Made(request);
      const double rate = std::pow(scene.fill(), shape.k);
      const auto asked = static_cast<double>(scene.measured_fpr->absent_keys);
      EXPECT_NEAR(scene.measured_fpr->rate, rate, 5 * std::sqrt(rate * (1 - rate) / asked));
    }
  }
}

// The mean over filters of disjoint sets of keys: its standard deviation follows from that of the
// filters, which theory gives, and from what is left of counting. Five of them: 6e-7.
TEST(Explain, ExpectedIsTheMeanOfWhatIsMeasured) {
  constexpr int kFilters = 20;
  constexpr uint64_t kKeys = 12;
  for (const Hashing hashing : {Hashing::kXxh3, Hashing::kKm, Hashing::kMd5}) {
    if (hashing == Hashing::kMd5 && !HasMd5()) continue;
    double sum = 0;
    Result<FprEstimate> expected = Error{};
    uint64_t asked = 0;
    for (int filter = 0; filter < kFilters; ++filter) {
      Request request{.shape = {64, 3, hashing}};
      for (uint64_t i = 0; i < kKeys; ++i) {
        request.add.push_back(fmt::format("filter {} key {}", filter, i));
      }
      const Scene scene = Made(request);
      sum += scene.measured_fpr->rate;
      expected = scene.expected_fpr;
      asked = scene.measured_fpr->absent_keys;
    }
    const double mean = expected->mean;
    const double variance = expected->instance_sd * expected->instance_sd +
                            mean * (1 - mean) / static_cast<double>(asked);
    EXPECT_NEAR(sum / kFilters, mean, 5 * std::sqrt(variance / kFilters))
        << kHashingNames[static_cast<size_t>(hashing)];
  }
}

TEST(Explain, AddedKeysAreNotAskedAsAbsentOnes) {
  // All absent keys that would be asked first are added: were they asked, they would all be
  // positives; the filter is large enough to have none.
  Request request{.shape = {kMaxBits, 16}};
  for (int i = 0; i < 100; ++i) request.add.push_back(fmt::format("absent {}", i));
  EXPECT_EQ(Made(request).measured_fpr->false_positives, 0);
}

TEST(Explain, WhereTheoryIsSilentTheReasonIsGiven) {
  const Scene scene = Made({.shape = {100, 17, Hashing::kKm}, .add = {"a"}});
  EXPECT_FALSE(scene.expected_fpr);
  EXPECT_FALSE(scene.expected_fpr.error().empty());
  EXPECT_TRUE(SceneToJson(scene)["expected_fpr"]["rate"].is_null());
}

TEST(Explain, PositionsByHandAreForAllKeys) {
  const Shape shape{32, 1, Hashing::kByHand};
  const auto error = [](const Request& request) {
    const Result<Scene> scene = Explain(request);
    return scene ? "accepted" : scene.error();
  };
  EXPECT_THAT(error({.shape = shape, .by_hand = {{"a", {1}}}, .add = {"a"}, .ask = {"b"}}),
              HasSubstr("b has no positions"));
  EXPECT_THAT(error({.shape = shape, .by_hand = {{"a", {1}}, {"b", {1}}}, .add = {"a"}}),
              HasSubstr("b has positions but"));
  EXPECT_THAT(error({.shape = shape, .saturate = true}), HasSubstr("needs a hash function"));
}

TEST(Explain, EveryExampleCanBeShown) {
  for (const Example& example : Examples()) {
    if (example.request.shape.hashing == Hashing::kMd5 && !HasMd5()) continue;
    EXPECT_TRUE(Explain(example.request)) << example.name;
  }
  EXPECT_EQ(FindExample("nothing"), nullptr);
}

TEST(SceneToJson, KeysThatAreNoUtf8CanBeWritten) {
  const std::string text =
      SceneToJson(Made({.add = {"\xff"}, .remove = {"\xfe"}, .ask = {"\xff"}})).dump();
  EXPECT_THAT(text, HasSubstr("\xef\xbf\xbd"));
}

}  // namespace
}  // namespace filterbench::explain
