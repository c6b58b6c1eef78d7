// The gate must stop every filter that lies, each kind of lie planted here.

#include "harness/run/verify.h"

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/theory/agreement.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kKeys = 20'000;
constexpr uint64_t kQueries = 200'000;

std::vector<uint64_t> Hashes(uint64_t first, uint64_t count) {
  std::vector<uint64_t> hashes(count);
  for (uint64_t i = 0; i < count; ++i) hashes[i] = Mix64(first + i);
  return hashes;
}

// A correct filter whose answers are bent on their way out.
class Liar final : public BuiltFilter {
 public:
  // (hash, the true answer, target) -> the answer given
  using Bend = std::function<bool(uint64_t, bool, std::string_view)>;

  Liar(std::unique_ptr<BuiltFilter> honest, Bend bend)
      : honest_(std::move(honest)), bend_(std::move(bend)) {}

  uint64_t SizeInBytes() const override { return honest_->SizeInBytes(); }
  uint64_t AllocatedBytes() const override { return honest_->AllocatedBytes(); }
  std::span<const std::byte> Table() const override { return honest_->Table(); }
  const BuildReport& Report() const override { return honest_->Report(); }
  Details GetDetails() const override { return honest_->GetDetails(); }
  std::optional<FprEstimate> ExpectedFpr() const override { return honest_->ExpectedFpr(); }
  std::vector<std::byte> Serialize() const override { return honest_->Serialize(); }

  uint64_t InsertUntilFull(std::span<const uint64_t> hashes) override {
    return honest_->InsertUntilFull(hashes);
  }
  std::unique_ptr<TargetLookups> On(std::string_view target) const override {
    return honest_->On(target);
  }
  bool Erase(uint64_t hash) override { return honest_->Erase(hash); }
  void InsertAll(std::span<const uint64_t> hashes, unsigned threads) override {
    honest_->InsertAll(hashes, threads);
  }
  uint64_t Count(const KeyStream& stream, Mode, std::string_view target) const override {
    uint64_t count = 0;
    for (const uint64_t word : stream.words) count += Answer(word, target) ? 1 : 0;
    return count;
  }
  void Bits(std::span<const uint64_t> words, std::string_view target,
            uint64_t* bits) const override {
    std::fill_n(bits, (words.size() + 63) / 64, 0);
    for (size_t i = 0; i < words.size(); ++i) {
      bits[i / 64] |= uint64_t{Answer(words[i], target)} << (i % 64);
    }
  }

 private:
  bool Answer(uint64_t hash, std::string_view target) const {
    uint64_t bits = 0;
    honest_->Bits({&hash, 1}, "scalar", &bits);
    return bend_(hash, bits != 0, target);
  }

  std::unique_ptr<BuiltFilter> honest_;
  Bend bend_;
};

Verification VerifyBent(Liar::Bend bend) {
  const std::vector<uint64_t> present = Hashes(0, kKeys);
  const std::vector<uint64_t> absent = Hashes(kKeys, kQueries);
  const Result<const FilterType*> type = FindFilterType("blocked_bloom");
  EXPECT_TRUE(type) << type.error();
  const nlohmann::json params = *(*type)->CompleteParams({{"bits_per_key", 10}});
  Result<std::unique_ptr<BuiltFilter>> built = (*type)->Build({.words = present}, params, 1);
  EXPECT_TRUE(built) << built.error();
  const Liar liar(std::move(*built), std::move(bend));
  return Verify({.type = *type,
                 .filter = &liar,
                 .present =
                     [&](const auto& use) {
                       const std::span<const uint64_t> all = present;
                       use(KeyStream{.words = all.first(kKeys / 3)});
                       use(KeyStream{.words = all.subspan(kKeys / 3)});
                     },
                 .absent = {.words = absent},
                 .targets = (*type)->targets()});
}

TEST(Verify, AnHonestFilterPasses) {
  const Verification result = VerifyBent([](uint64_t, bool answer, auto) { return answer; });
  EXPECT_EQ(result.problem, "");
  ASSERT_TRUE(result.fpr);
  EXPECT_EQ(result.fpr->queries, kQueries);
  EXPECT_GT(result.fpr->false_positives, 0u);
  EXPECT_EQ(result.answers_digest.size(), 16u);
}

// Case C5: all members are asked after every build; one that is denied fails the case.
TEST(Verify, OneFalseNegativeIsFound) {
  const uint64_t denied = Mix64(kKeys - 1);
  const Verification result = VerifyBent(
      [=](uint64_t hash, bool answer, auto) { return answer && hash != denied; });
  EXPECT_EQ(result.problem, "1 false negatives among 20000 keys");
}

TEST(Verify, AFalseNegativeInALaterPieceIsFound) {
  for (const uint64_t index : {uint64_t{0}, kKeys / 3 - 1, kKeys / 3}) {
    const uint64_t denied = Mix64(index);
    const Verification result = VerifyBent(
        [=](uint64_t hash, bool answer, auto) { return answer && hash != denied; });
    EXPECT_EQ(result.problem, "1 false negatives among 20000 keys");
  }
}

TEST(Verify, AnswersInAnotherOrderAreFound) {
  const std::string best((*FindFilterType("blocked_bloom"))->targets().front());
  if (best == "scalar") GTEST_SKIP() << "this machine has no vector target";
  // As many answers as there should be in each word: two neighbours of different answers change
  // places.
  std::map<uint64_t, bool> truth;
  VerifyBent([&](uint64_t hash, bool answer, auto) { return truth[hash] = answer; });
  uint64_t index = kKeys;
  while (truth.at(Mix64(index)) == truth.at(Mix64(index + 1))) index += 2;
  const Verification result =
      VerifyBent([&](uint64_t hash, bool answer, std::string_view target) {
        const bool is_of_two = hash == Mix64(index) || hash == Mix64(index + 1);
        return answer != (target == best && is_of_two);
      });
  EXPECT_THAT(result.problem, HasSubstr(best + " kernel and the scalar reference differ"));
}

TEST(Verify, AKernelThatDiffersOnOneKeyIsFound) {
  const std::string best((*FindFilterType("blocked_bloom"))->targets().front());
  if (best == "scalar") GTEST_SKIP() << "this machine has no vector target";
  for (const uint64_t index : {uint64_t{0}, uint64_t{63}, kKeys - 1, kKeys + kQueries - 1}) {
    const Verification result =
        VerifyBent([&](uint64_t hash, bool answer, std::string_view target) {
          return answer != (target == best && hash == Mix64(index));
        });
    EXPECT_THAT(result.problem, HasSubstr(best + " kernel and the scalar reference differ"));
  }
}

// 0.96 % expected: 1,920 of 200,000, standard deviation 44. A lie of a quarter is eleven of them.
TEST(Verify, TooManyFalsePositivesAreFound) {
  const Verification result = VerifyBent(
      [](uint64_t hash, bool answer, auto) { return answer || Mix64(hash) % 400 == 0; });
  EXPECT_THAT(result.problem, HasSubstr("theory says"));
}

// Too good to be true is a fault too: memory that is not accounted for, absent keys that are not.
TEST(Verify, TooFewFalsePositivesAreFound) {
  const std::vector<uint64_t> present = Hashes(0, kKeys);
  const std::set<uint64_t> keys(present.begin(), present.end());
  const Verification result = VerifyBent([&](uint64_t hash, bool answer, auto) {
    return answer && (keys.contains(hash) || Mix64(hash) % 4 != 0);
  });
  EXPECT_THAT(result.problem, HasSubstr("theory says"));
}

// Exact, from the greatest and least counts that pass: no draws. Half of the false alarm is for
// what filters differ by, so a filter of which theory knows the rate itself alarms with the other
// half at most. A rate that is 10 % off is found for sure from 10,000 expected false positives on,
// and not at all below 1,000: that many absent keys a round asks for.
TEST(Verify, AlarmsAsSeldomAsItSaysAndFindsTenPercent) {
  struct Row {
    double rate;
    uint64_t queries;
    double least_power, most_power;
  };
  for (const Row& row : {Row{0.3, 100'000, 0.999, 1}, Row{0.01, 1'000'000, 0.999, 1},
                         Row{0.001, 10'000'000, 0.999, 1}, Row{0.01, 100'000, 0.0005, 0.002},
                         Row{0.001, 100'000, 0, 1e-6}}) {
    const auto passes = [&](uint64_t count) {
      return theory::FprAgrees(count, row.queries, {row.rate, 0}, kFprFalseAlarm);
    };
    const auto middle = static_cast<uint64_t>(row.rate * static_cast<double>(row.queries));
    ASSERT_TRUE(passes(middle));
    uint64_t most = middle;
    for (uint64_t fails = row.queries; fails - most > 1;) {
      const uint64_t count = std::midpoint(most, fails);
      (passes(count) ? most : fails) = count;
    }
    uint64_t least = middle;
    for (uint64_t fails = 0; least - fails > 1;) {
      const uint64_t count = std::midpoint(fails, least);
      (passes(count) ? least : fails) = count;
    }
    const auto alarms = [&](double rate) {
      return theory::BinomialUpperTail(most + 1, row.queries, rate) +
             theory::BinomialLowerTail(least - 1, row.queries, rate);
    };
    EXPECT_LE(alarms(row.rate), kFprFalseAlarm / 2 * 1.001) << row.rate;
    EXPECT_GT(alarms(row.rate), kFprFalseAlarm / 4) << row.rate;
    for (const double factor : {0.9, 1.1}) {
      EXPECT_GE(alarms(factor * row.rate), row.least_power) << row.rate << " " << factor;
      EXPECT_LE(alarms(factor * row.rate), row.most_power) << row.rate << " " << factor;
    }
  }
}

}  // namespace
}  // namespace filterbench
