// The solver against dense elimination, which knows nothing of bands.

#include "filters/ribbon/banding.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>
#include <vector>

#include "filters/hash.h"

namespace filterbench {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return Mix64(state_ += 0x9e3779b97f4a7c15); }

 private:
  uint64_t state_;
};

template <class Row>
struct Equation {
  uint64_t start;
  Row row;
  uint32_t result;
};

template <class Row>
Equation<Row> RandomEquation(Random& random, uint64_t slots, int result_bits) {
  Row row = random.Next();
  if constexpr (sizeof(Row) == 16) row = row << 64 | random.Next();
  return {FastRange64(random.Next(), slots - 8 * sizeof(Row) + 1), row | 1,
          static_cast<uint32_t>(random.Next() & ((uint64_t{1} << result_bits) - 1))};
}

// Elimination with whole rows of bits, by leading slot.
class DenseSystem {
 public:
  explicit DenseSystem(uint64_t slots) : slots_(slots) {}

  template <class Row>
  std::pair<std::vector<bool>, uint32_t> Reduce(const Equation<Row>& equation) const {
    std::vector<bool> bits(slots_);
    for (uint64_t i = 0; i < 8 * sizeof(Row); ++i) {
      if ((equation.row >> i & 1) != 0) bits[equation.start + i] = true;
    }
    uint32_t result = equation.result;
    for (uint64_t slot = 0; slot < slots_; ++slot) {
      const auto found = rows_.find(slot);
      if (!bits[slot] || found == rows_.end()) continue;
      for (uint64_t i = 0; i < slots_; ++i) bits[i] = bits[i] != found->second.first[i];
      result ^= found->second.second;
    }
    return {bits, result};
  }

  // False where the row depends on the others.
  template <class Row>
  bool Add(const Equation<Row>& equation) {
    auto [bits, result] = Reduce(equation);
    for (uint64_t slot = 0; slot < slots_; ++slot) {
      if (bits[slot]) {
        rows_[slot] = {bits, result};
        return true;
      }
    }
    return false;
  }

 private:
  uint64_t slots_;
  std::map<uint64_t, std::pair<std::vector<bool>, uint32_t>> rows_;
};

// The columns of the solution at [start, start + width) times the row.
template <class Row>
uint32_t Product(const std::vector<uint64_t>& words, const RibbonShape& shape,
                 const Equation<Row>& equation, uint32_t columns) {
  uint32_t product = 0;
  for (uint64_t i = 0; i < 8 * sizeof(Row); ++i) {
    if ((equation.row >> i & 1) == 0) continue;
    const uint64_t slot = equation.start + i;
    uint32_t c = 0;
    for (uint32_t plane = 0; plane < shape.planes(); ++plane, c += 8) {
      const uint64_t word = words[shape.PlaneWord(plane) + slot / 8];
      product ^= static_cast<uint32_t>(word >> (slot % 8 * 8) & 0xff) << c;
    }
    for (uint32_t i = 0; c < columns; ++c, ++i) {
      const uint64_t word = words[shape.WordIndex(slot / 64) + i];
      product ^= static_cast<uint32_t>(word >> (slot % 64) & 1) << c;
    }
  }
  return product;
}

template <class Row>
class BandingTest : public ::testing::Test {};
using Rows = ::testing::Types<uint64_t, RibbonRow128>;
TYPED_TEST_SUITE(BandingTest, Rows);

TYPED_TEST(BandingTest, DecidesAsDenseEliminationDoes) {
  using Row = TypeParam;
  using Outcome = typename Banding<Row>::Outcome;
  constexpr uint64_t kSlots = 256;
  int dependent = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Random random(seed);
    auto banding = Banding<Row>::Allocate(kSlots, true);
    ASSERT_TRUE(banding);
    DenseSystem dense(kSlots);
    for (uint64_t i = 0; i < kSlots + 20; ++i) {
      // Two result bits, so that a dependent row is often consistent by chance.
      const auto equation = RandomEquation<Row>(random, kSlots, 2);
      const auto [bits, result] = dense.Reduce(equation);
      const bool independent = dense.Add(equation);
      EXPECT_EQ(banding->InSpan(equation.start, equation.row), !independent);
      const Outcome expected = independent   ? Outcome::kIndependent
                               : result == 0 ? Outcome::kRedundant
                                             : Outcome::kInconsistent;
      ASSERT_EQ(banding->template Add<true>(equation.start, equation.row, equation.result),
                expected);
      dependent += independent ? 0 : 1;
    }
  }
  EXPECT_GT(dependent, 50);
}

TYPED_TEST(BandingTest, SolutionSatisfiesEveryEquationInEveryStoredColumn) {
  using Row = TypeParam;
  using Outcome = typename Banding<Row>::Outcome;
  constexpr uint64_t kBlocks = 7;
  uint64_t refused = 0;
  for (const uint32_t columns : {1u, 2u, 7u, 8u, 9u, 16u, 17u, 31u}) {
    for (uint64_t first_wide = 0; first_wide <= kBlocks; ++first_wide) {
      const RibbonShape shape{kBlocks, columns, first_wide};
      Random random(columns * 100 + first_wide);
      auto banding = Banding<Row>::Allocate(shape.slots(), true);
      ASSERT_TRUE(banding);
      std::vector<Equation<Row>> accepted;
      for (uint64_t i = 0; i < shape.slots(); ++i) {
        const auto equation =
            RandomEquation<Row>(random, shape.slots(), static_cast<int>(shape.max_columns()));
        // A refused equation must leave no trace: those accepted before still hold.
        if (banding->template Add<true>(equation.start, equation.row, equation.result) !=
            Outcome::kInconsistent) {
          accepted.push_back(equation);
        }
      }
      EXPECT_GT(accepted.size(), shape.slots() * 8 / 10);
      refused += shape.slots() - accepted.size();
      std::vector<uint64_t> words(shape.words());
      banding->Solve(shape, false, 0, words.data());
      for (const auto& equation : accepted) {
        const uint32_t mine = columns + (equation.start / 64 >= first_wide ? 1 : 0);
        const auto mask = static_cast<uint32_t>((uint64_t{1} << mine) - 1);
        ASSERT_EQ(Product(words, shape, equation, mine), equation.result & mask);
      }
    }
  }
  EXPECT_GT(refused, 0u);
}

TYPED_TEST(BandingTest, FreeSlotsAreZeroOrPseudoRandomAndTheOrderOfRowsDoesNotMatter) {
  using Row = TypeParam;
  const RibbonShape shape{6, 5, 2};
  Random random(3);
  std::vector<Equation<Row>> equations;
  for (uint64_t i = 0; i < shape.slots() / 2; ++i) {
    equations.push_back(RandomEquation<Row>(random, shape.slots(), 6));
  }
  const auto solve = [&](bool backwards, bool random_free, uint64_t salt) {
    auto banding = Banding<Row>::Allocate(shape.slots(), false);
    for (size_t i = 0; i < equations.size(); ++i) {
      const auto& equation = equations[backwards ? equations.size() - 1 - i : i];
      banding->template Add<false>(equation.start, equation.row, 0);
    }
    std::vector<uint64_t> words(shape.words());
    banding->Solve(shape, random_free, salt, words.data());
    return words;
  };
  // All right-hand sides are zero: with zeros in the free slots, so is the solution.
  EXPECT_EQ(solve(false, false, 1), std::vector<uint64_t>(shape.words()));
  const std::vector<uint64_t> words = solve(false, true, 1);
  EXPECT_EQ(words, solve(true, true, 1));
  EXPECT_NE(words, solve(false, true, 2));
  for (const auto& equation : equations) {
    EXPECT_EQ(Product(words, shape, equation, shape.columns), 0u);
  }
  uint64_t ones = 0;
  for (const uint64_t word : words) ones += std::popcount(word);
  // Half of the 64 * words bits; at most 20 deviations of 64 * words / 2 free ones.
  EXPECT_NEAR(static_cast<double>(ones), 32.0 * static_cast<double>(words.size()), 20 * 24.0);
}

TYPED_TEST(BandingTest, ClearForgetsRowsAndResults) {
  using Row = TypeParam;
  const RibbonShape shape{4, 3, 4};
  auto banding = Banding<Row>::Allocate(shape.slots(), true);
  ASSERT_TRUE(banding);
  Random random(9);
  for (int i = 0; i < 200; ++i) {
    const auto equation = RandomEquation<Row>(random, shape.slots(), 3);
    banding->template Add<true>(equation.start, equation.row, equation.result);
  }
  banding->Clear();
  std::vector<uint64_t> words(shape.words(), 1);
  banding->Solve(shape, false, 0, words.data());
  EXPECT_EQ(words, std::vector<uint64_t>(shape.words()));
}

// What is taken back leaves no trace, and a matrix that grew is the same.
TYPED_TEST(BandingTest, RowsAreTakenBackAndMatricesGrow) {
  using Row = TypeParam;
  using Outcome = typename Banding<Row>::Outcome;
  const RibbonShape shape{4, 9, 4};
  Random random(4);
  auto banding = Banding<Row>::Allocate(shape.slots() / 2, true);
  auto other = Banding<Row>::Allocate(shape.slots(), true);
  ASSERT_TRUE(banding && other);
  for (int i = 0; i < 100; ++i) {
    const auto equation = RandomEquation<Row>(random, shape.slots() / 2, 9);
    banding->template Add<true>(equation.start, equation.row, equation.result);
    other->template Add<true>(equation.start, equation.row, equation.result);
  }
  ASSERT_FALSE(banding->Grow(shape.slots()));
  EXPECT_EQ(banding->slots(), shape.slots());
  std::vector<uint64_t> taken;
  for (int i = 0; i < 100; ++i) {
    const auto equation = RandomEquation<Row>(random, shape.slots(), 9);
    uint64_t slot = 0;
    if (banding->template Add<true>(equation.start, equation.row, equation.result, &slot) ==
        Outcome::kIndependent) {
      taken.push_back(slot);
    }
  }
  EXPECT_GT(taken.size(), 50u);
  for (; !taken.empty(); taken.pop_back()) banding->Remove(taken.back());
  std::vector<uint64_t> words(shape.words());
  std::vector<uint64_t> expected(shape.words());
  banding->Solve(shape, false, 0, words.data());
  other->Solve(shape, false, 0, expected.data());
  EXPECT_EQ(words, expected);
}

// Planes may end before the last block does.
TYPED_TEST(BandingTest, PlanesLeaveOutUnusedSlots) {
  using Row = TypeParam;
  const RibbonShape shape{4, 19, 4, 24};
  EXPECT_EQ(shape.words(), 2 * (256 - 24) / 8 + 4 * 3u);
  Random random(8);
  auto banding = Banding<Row>::Allocate(shape.slots(), true);
  ASSERT_TRUE(banding);
  std::vector<Equation<Row>> equations;
  for (int i = 0; i < 150; ++i) {
    equations.push_back(RandomEquation<Row>(random, shape.used_slots(), 19));
    const auto& equation = equations.back();
    ASSERT_NE(banding->template Add<true>(equation.start, equation.row, equation.result),
              Banding<Row>::Outcome::kInconsistent);
  }
  constexpr uint64_t kUntouched = 0x5555555555555555;
  std::vector<uint64_t> words(shape.words() + 1, kUntouched);
  banding->Solve(shape, false, 0, words.data());
  EXPECT_EQ(words.back(), kUntouched);
  for (const auto& equation : equations) {
    ASSERT_EQ(Product(words, shape, equation, 19), equation.result);
  }
}

// Case A1: words of a solution beyond 2^32.
TEST(RibbonShapeTest, CountsWordsBeyond32Bits) {
  const uint64_t blocks = uint64_t{1} << 30;  // 2^36 slots
  const RibbonShape shape{blocks, 16, blocks - 3};
  EXPECT_EQ(shape.PlaneWord(1), blocks * 8);
  EXPECT_EQ(shape.WordIndex(blocks - 3), blocks * 16);
  EXPECT_EQ(shape.WordIndex(blocks - 1), blocks * 16 + 2);
  EXPECT_EQ(shape.words(), blocks * 16 + 3);
  EXPECT_EQ(shape.max_columns(), 17u);
  EXPECT_EQ((RibbonShape{blocks, 16, blocks}).max_columns(), 16u);
  const RibbonShape words_too{blocks, 11, blocks - 3};
  EXPECT_EQ(words_too.WordIndex(blocks - 3), blocks * 8 + (blocks - 3) * 3);
  EXPECT_EQ(words_too.WordIndex(blocks - 2), blocks * 8 + (blocks - 3) * 3 + 4);
  EXPECT_EQ(words_too.words(), blocks * 11 + 3);
}

TEST(TransposeBitsTest, ExchangesRowsAndColumns) {
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(TransposeBits8x8(uint64_t{1} << i), uint64_t{1} << (i % 8 * 8 + i / 8));
  }
}

}  // namespace
}  // namespace filterbench
