// The rules of the prefix filter itself; what holds for every filter is in filters/conformance.

#include "filters/quotient/prefix_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "filters/test_support.h"
#include "filters/test_wire.h"
#include "filters/theory/quotient.h"

namespace filterbench {
namespace {

using test::TestHashes;

PrefixFilter MustCreate(uint64_t keys, const PrefixFilter::Params& params) {
  Result<PrefixFilter> filter = PrefixFilter::Create(keys, params);
  if (!filter) throw std::runtime_error(filter.error());
  return std::move(*filter);
}

// --- One bin ---

// Against all fingerprints in order: the bin has the least 25 of them, and gives away the others.
void CheckBinAgainstModel(uint64_t fingerprints, uint64_t seed) {
  alignas(64) std::byte bin[PrefixBin::kBytes + 32] = {};
  std::vector<uint64_t> kept;
  std::vector<uint64_t> given;
  uint64_t random = seed;
  for (int step = 0; step < 200; ++step) {
    random = Mix64(random + 1);
    const uint64_t fingerprint = FastRange64(random, fingerprints) *
                                 (PrefixBin::kFingerprints - 1) / (fingerprints - 1);
    const uint64_t overflow = PrefixBin::Overflow(bin, fingerprint);
    PrefixBin::Insert(bin, fingerprint);
    kept.insert(std::ranges::upper_bound(kept, fingerprint), fingerprint);
    if (kept.size() > PrefixBin::kSlots) {
      ASSERT_EQ(overflow, kept.back());
      given.push_back(kept.back());
      kept.pop_back();
    } else {
      ASSERT_EQ(overflow, PrefixBin::kFingerprints);
    }
    ASSERT_TRUE(PrefixBin::IsConsistent(bin)) << step;
    ASSERT_EQ(static_cast<size_t>(PrefixBin::Count(PrefixBin::Load(bin))), kept.size());
    const uint64_t greatest = PrefixBin::Greatest(bin, PrefixBin::Load(bin));
    if (given.empty()) {
      ASSERT_GE(greatest, PrefixBin::kFingerprints) << "nothing is passed on";
    } else {
      ASSERT_EQ(greatest, kept.back());
    }
    for (uint64_t probe = 0; probe < PrefixBin::kFingerprints; probe += probe < 300 ? 1 : 7) {
      ASSERT_EQ(PrefixBin::Contains(bin, probe), std::ranges::binary_search(kept, probe)) << probe;
    }
    for (const uint64_t probe : kept) {
      ASSERT_TRUE(PrefixBin::Contains(bin, probe) && probe <= greatest);
    }
    // What was given away is asked for in the spare, or has an equal here.
    for (const uint64_t probe : given) {
      ASSERT_TRUE(probe > greatest || PrefixBin::Contains(bin, probe)) << probe;
    }
  }
  ASSERT_TRUE(std::ranges::all_of(std::span(bin).subspan(PrefixBin::kBytes),
                                  [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST(PrefixBin, KeepsTheLeastFingerprintsInOrder) {
  for (const uint64_t fingerprints : {uint64_t{2}, uint64_t{7}, uint64_t{60}, uint64_t{500},
                                      PrefixBin::kFingerprints}) {
    for (uint64_t seed = 0; seed < 10; ++seed) CheckBinAgainstModel(fingerprints, seed * 1000);
  }
}

// --- The spare ---

TEST(PrefixFilter, OverflowsAsTheoryHasIt) {
  const uint64_t n = 400000;
  const auto filter = PrefixFilter::Build(TestHashes(0, n), {.seed = 4});
  ASSERT_TRUE(filter) << filter.error();
  const auto sizes = PrefixFilter::SizesFor(n, 0.95);
  const theory::ForwardedShare share =
      theory::PrefixForwardedShare(n, sizes.bins, PrefixBin::kSlots);
  // Keys beyond the capacity have a variance of at most 5.4 times their mean, and queries that are
  // passed on are a sum over bins: six deviations, one false alarm in 5e8.
  const double spare_keys = share.overflowing_keys * static_cast<double>(n);
  EXPECT_NEAR(static_cast<double>(filter->stored_in_spare()), spare_keys,
              6 * std::sqrt(5.4 * spare_keys));
  const uint64_t queries = 1000000;
  uint64_t forwarded = 0;
  const PrefixFilter::View view = filter->view();
  for (const uint64_t hash : TestHashes(n, queries)) {
    const PrefixFilter::Place place = view.PlaceOf(hash);
    const std::byte* bin = view.table + place.bin * PrefixBin::kBytes;
    forwarded += place.fingerprint > PrefixBin::Greatest(bin, PrefixBin::Load(bin)) ? 1 : 0;
  }
  const double measured = static_cast<double>(forwarded) / queries;
  EXPECT_NEAR(measured, share.mean,
              6 * std::hypot(share.instance_sd, std::sqrt(share.mean / queries)));
}

TEST(PrefixForwardedShare, AgreesWithBothOfItsEnds) {
  // One bin: all keys in it, of 27 the two greatest overflow, and 3 of 28 ranks are passed on.
  const theory::ForwardedShare one = theory::PrefixForwardedShare(27, 1, 25);
  EXPECT_DOUBLE_EQ(one.mean, 3.0 / 28);
  EXPECT_DOUBLE_EQ(one.overflowing_keys, 2.0 / 27);
  EXPECT_EQ(theory::PrefixForwardedShare(25, 1, 25).mean, 0);
  // Many bins: Poisson loads of mean 23.75, summed independently.
  const theory::ForwardedShare many =
      theory::PrefixForwardedShare(uint64_t{23750000000}, 1000000000, 25);
  EXPECT_NEAR(many.mean, 0.0556776, 1e-6);
  EXPECT_NEAR(many.overflowing_keys, 0.0586389, 1e-6);
}

// Case B2: a full spare refuses and nothing changes.
TEST(PrefixFilter, AFullSpareRefusesAndChangesNothing) {
  PrefixFilter filter = MustCreate(100, {.seed = 6});
  std::vector<uint64_t> accepted;
  uint64_t refused = 0;
  for (const uint64_t hash : TestHashes(0, 2000)) {
    const std::vector<std::byte> before(filter.Table().begin(), filter.Table().end());
    if (filter.Insert(hash) == InsertStatus::kOk) {
      accepted.push_back(hash);
    } else {
      ASSERT_TRUE(test::EqualBytes(filter.Table(), before));
      ++refused;
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GE(accepted.size(), 100u);
  EXPECT_EQ(filter.stored(), accepted.size());
  EXPECT_EQ(test::CountDenied(filter, accepted), 0u);
}

// Bins keep their keys in order, so that what they hold is no matter of the order of insertion.
TEST(PrefixFilter, BinsDoNotDependOnTheOrderOfKeys) {
  std::vector<uint64_t> hashes = TestHashes(0, 20000);
  const auto forwards = PrefixFilter::Build(hashes, {.seed = 8});
  std::ranges::reverse(hashes);
  const auto backwards = PrefixFilter::Build(hashes, {.seed = 8});
  ASSERT_TRUE(forwards && backwards);
  const uint64_t bytes = PrefixFilter::SizesFor(20000, 0.95).bins * PrefixBin::kBytes;
  EXPECT_TRUE(
      test::EqualBytes(forwards->Table().first(bytes), backwards->Table().first(bytes)));
}

// What is counted at every insertion is what the bins say, which a reader counts anew.
TEST(PrefixFilter, KnowsTheShareOfItsSpareBeyondThePromise) {
  PrefixFilter filter = MustCreate(5000, {.seed = 10});
  for (const uint64_t hash : TestHashes(0, 15000)) {
    (void)filter.Insert(hash);
    if (Mix64(hash) % 1000 != 0) continue;
    const auto read = PrefixFilter::Deserialize(filter.Serialize());
    ASSERT_TRUE(read) << read.error();
    ASSERT_EQ(read->GetDetails().back().name, "forwarded_share");
    ASSERT_EQ(read->GetDetails().back().value, filter.GetDetails().back().value);
  }
  EXPECT_GT(filter.GetDetails().back().value, 0.07);
}

TEST(PrefixFilter, BuildsAnyNumberOfKeys) {
  uint64_t worst = 0;
  for (uint64_t n = 0; n <= 20000; n += n < 200 ? 1 : 1 + n / 9) {
    for (const bool in_a_row : {false, true}) {
      std::vector<uint64_t> hashes = TestHashes(0, n);
      for (uint64_t i = 0; in_a_row && i < n; ++i) hashes[i] = i;
      const auto filter = PrefixFilter::Build(hashes, {.seed = n});
      ASSERT_TRUE(filter) << n << ": " << filter.error();
      ASSERT_EQ(test::CountDenied(*filter, hashes), 0u) << n;
      worst = std::max(worst, filter->report().attempts);
    }
  }
  EXPECT_LE(worst, 2u);
}

// Case A2: sizes of 9e10 and of 2^60 keys.
TEST(PrefixFilter, SizesAreRightWhereTheyCannotBeAllocated) {
  const PrefixFilter::Sizes sizes = PrefixFilter::SizesFor(uint64_t{90000000000}, 0.95);
  EXPECT_NEAR(8.0 * static_cast<double>(sizes.TableBytes()) / 9e10, 11.45, 0.02);
  EXPECT_EQ(PrefixFilter::SizesFor(uint64_t{1} << 60, 0.95).TableBytes(), UINT64_MAX);
}

// --- Damage ---

// Case E2: headers that no bin can have, under a right checksum.
TEST(PrefixFilter, RefusesHeadersOfNoBin) {
  const uint64_t n = 1000;
  const auto filter = PrefixFilter::Build(TestHashes(0, n), {.seed = 2});
  ASSERT_TRUE(filter);
  const std::vector<std::byte> wire = filter->Serialize();
  const size_t table_at = wire.size() - filter->Table().size();
  const uint64_t bins = PrefixFilter::SizesFor(n, 0.95).bins;
  uint64_t accepted = 0;
  for (size_t bin = 0; bin < bins; ++bin) {
    for (size_t bit = 0; bit < 56; ++bit) {
      std::vector<std::byte> damaged = wire;
      damaged[table_at + bin * PrefixBin::kBytes + bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      test::FixChecksum(damaged);
      const auto read = PrefixFilter::Deserialize(damaged);
      if (bit < 50 || bit == 55) {
        ASSERT_FALSE(read) << "bin " << bin << " bit " << bit;
      }
      accepted += read ? 1 : 0;
    }
  }
  // A full bin may have given something away or not: only the code tells, and the other value of it
  // is the only one that passes.
  EXPECT_LE(accepted, bins);
}

}  // namespace
}  // namespace filterbench
