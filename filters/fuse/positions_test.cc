// Where the slots of a key lie, in tables of any size: nothing is allocated here (A1 and A2 of the
// known cases).

#include "filters/fuse/positions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace filterbench {
namespace {

uint64_t Hash(uint64_t i) { return Mix64(i + 0x1234567890abcdef); }

// Upper bound of chi-square at `freedom` degrees: the normal approximation at 7 deviations of a law
// that has a longer tail than the normal one. False alarm below 1e-9 per check for 63 degrees and
// more (157.3 at 63).
double ChiSquareBound(double freedom) { return freedom + 7 * std::sqrt(2 * freedom) + 16; }

double ChiSquare(const std::vector<uint64_t>& cells, double expected) {
  double sum = 0;
  for (const uint64_t count : cells) {
    const double excess = static_cast<double>(count) - expected;
    sum += excess * excess / expected;
  }
  return sum;
}

TEST(FuseHashTest, MixingIsABijectionThatCanBeUndone) {
  for (const uint64_t salt : {uint64_t{0}, Hash(1), Hash(2)}) {
    for (uint64_t i = 0; i < 1000; ++i) {
      EXPECT_EQ(FuseHash::Unmix(FuseHash::Mix(Hash(i), salt), salt), Hash(i));
      EXPECT_EQ(FuseHash::Unmix(FuseHash::Mix(i, salt), salt), i);
    }
  }
}

TEST(FuseHashTest, SaltsOfAttemptsAndSeedsDiffer) {
  std::set<uint64_t> salts;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint64_t attempt = 0; attempt < 64; ++attempt) salts.insert(FuseHash::Salt(seed, attempt));
  }
  EXPECT_EQ(salts.size(), 6400u);
}

// Slots of every layout over 1e6 hashes: inside the table, in parts that do not overlap, uniform
// where theory says so, up to 2^40 bits.
template <class Layout>
void CheckXorSlots(const Layout& layout) {
  constexpr int kBins = 64;
  constexpr uint64_t kSamples = 1000000;
  for (int i = 0; i < Layout::kArity; ++i) {
    std::vector<uint64_t> bins(kBins);
    uint64_t highest = 0;
    for (uint64_t sample = 0; sample < kSamples; ++sample) {
      const FuseHash hash(FuseHash::Mix(Hash(sample), 77));
      const uint64_t slot = layout.SlotsOf(hash)[i] - i * layout.block_slots;
      ASSERT_LT(slot, layout.block_slots);
      highest = std::max(highest, slot);
      ++bins[static_cast<unsigned __int128>(slot) * kBins / layout.block_slots];
    }
    EXPECT_GT(static_cast<double>(highest), 0.999 * static_cast<double>(layout.block_slots));
    EXPECT_LT(ChiSquare(bins, double{kSamples} / kBins), ChiSquareBound(kBins - 1))
        << layout.block_slots << " slot " << i;
  }
}

constexpr uint64_t kLargeSizes[] = {(uint64_t{1} << 32) - 1, (uint64_t{1} << 32) + 1,
                                    3 * (uint64_t{1} << 30), (uint64_t{1} << 33) + 9};

// Case A1: slots beyond 2^32.
TEST(XorLayoutTest, SlotsAreUniformInBlocksOfAnySize) {
  for (const uint64_t block_slots : kLargeSizes) CheckXorSlots(XorLayout{block_slots});
  CheckXorSlots(XorLayout{(uint64_t{1} << 37) / 3});
}

template <int kArity>
void CheckFuseSlots(uint64_t first_segments, uint64_t segment_slots) {
  const FuseLayout<kArity> layout{first_segments * segment_slots, segment_slots};
  constexpr int kBins = 64;
  constexpr uint64_t kSamples = 1000000;
  std::vector<uint64_t> starts(kBins);
  std::vector<uint64_t> displacements(kArity * kBins);
  uint64_t highest = 0;
  for (uint64_t sample = 0; sample < kSamples; ++sample) {
    const FuseHash hash(FuseHash::Mix(Hash(sample), 77));
    const auto slots = layout.SlotsOf(hash);
    ASSERT_LT(slots[0], layout.first_slots);
    ++starts[static_cast<unsigned __int128>(slots[0]) * kBins / layout.first_slots];
    for (int i = 0; i < kArity; ++i) {
      ASSERT_EQ(slots[i] / segment_slots, slots[0] / segment_slots + i);
      ++displacements[i * kBins + slots[i] % segment_slots * kBins / segment_slots];
    }
    highest = std::max(highest, slots[kArity - 1]);
  }
  EXPECT_LT(highest, layout.Slots());
  EXPECT_GT(static_cast<double>(highest), 0.999 * static_cast<double>(layout.Slots()));
  EXPECT_LT(ChiSquare(starts, double{kSamples} / kBins), ChiSquareBound(kBins - 1));
  EXPECT_LT(ChiSquare(displacements, double{kSamples} / kBins),
            ChiSquareBound(kArity * (kBins - 1)));
}

// Case A1: segments beyond 2^32 slots.
TEST(FuseLayoutTest, SlotsLieInNeighbouringSegmentsAndAreUniformThere) {
  constexpr uint64_t kSegment = uint64_t{1} << FuseLayout<3>::kMaxLog2SegmentSlots;
  for (const uint64_t slots : kLargeSizes) {
    CheckFuseSlots<3>(slots / kSegment, kSegment);
    CheckFuseSlots<4>(slots / kSegment, kSegment);
  }
  CheckFuseSlots<3>((uint64_t{1} << 37) / kSegment - 2, kSegment);
  CheckFuseSlots<4>((uint64_t{1} << 37) / kSegment - 3, kSegment);
  CheckFuseSlots<3>(100000, 64);
  CheckFuseSlots<4>(100000, 64);
}

// The rate is 2^-bits only if the fingerprint says nothing of the slots: each pair of a slot's part
// and a fingerprint's eight bits is equally frequent, for both bytes of the fingerprint.
template <class Layout>
void CheckFingerprints(const Layout& layout) {
  constexpr uint64_t kSamples = 1 << 20;
  constexpr uint64_t kParts = 16;
  for (int i = 0; i < Layout::kArity; ++i) {
    for (const int shift : {0, 8}) {
      std::vector<uint64_t> high_cells(256 * kParts);
      std::vector<uint64_t> low_cells(256 * kParts);
      for (uint64_t sample = 0; sample < kSamples; ++sample) {
        const FuseHash hash(FuseHash::Mix(Hash(sample), 99));
        const uint64_t fingerprint = hash.Fingerprint<uint16_t>() >> shift & 255;
        ASSERT_EQ(hash.Fingerprint<uint8_t>(), hash.Fingerprint<uint16_t>() & 255);
        const uint64_t slot = layout.SlotsOf(hash)[i];
        ++high_cells[fingerprint * kParts +
                     static_cast<unsigned __int128>(slot % (layout.Slots() / 4)) * kParts /
                         (layout.Slots() / 4)];
        ++low_cells[fingerprint * kParts + slot % kParts];
      }
      const double freedom = 256 * kParts - 1;
      if constexpr (!Layout::kIsLocal) {
        EXPECT_LT(ChiSquare(low_cells, kSamples / (freedom + 1)), ChiSquareBound(freedom));
      } else {
        EXPECT_LT(ChiSquare(low_cells, kSamples / (freedom + 1)), ChiSquareBound(freedom));
        // Each quarter is folded on the first: its ends are not those of the table, but with this
        // many segments uniform all the same.
        EXPECT_LT(ChiSquare(high_cells, kSamples / (freedom + 1)), ChiSquareBound(freedom));
      }
    }
  }
}

TEST(FuseHashTest, FingerprintsAreIndependentOfTheSlots) {
  CheckFingerprints(XorLayout{41000});
  CheckFingerprints(XorLayout{uint64_t{1} << 35});
  CheckFingerprints(FuseLayout<3>{1000 << 8, 1 << 8});
  CheckFingerprints(FuseLayout<4>{(uint64_t{1} << 36), uint64_t{1} << 18});
  CheckFingerprints(FuseLayout<3>{(uint64_t{1} << 36), uint64_t{1} << 18});
}

}  // namespace
}  // namespace filterbench
