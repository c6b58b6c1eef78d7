// The rules of the quotient filter itself; what holds for every filter is in filters/conformance.

#include "filters/quotient/quotient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "filters/test_support.h"
#include "filters/test_wire.h"
#include "filters/theory/agreement.h"

namespace filterbench {
namespace {

using test::TestHashes;

Quotient MustCreate(uint64_t keys, const Quotient::Params& params) {
  Result<Quotient> filter = Quotient::Create(keys, params);
  if (!filter) throw std::runtime_error(filter.error());
  return std::move(*filter);
}

// Deserialize checks each bit of the metadata.
void ExpectConsistent(const Quotient& filter) {
  const Result<Quotient> read = Quotient::Deserialize(filter.Serialize());
  ASSERT_TRUE(read) << read.error();
}

// Against the multiset of fingerprints, over insertions, repeated keys and erasures up to a full
// table and back to an empty one.
void CheckAgainstModel(uint64_t remainder_bits, uint64_t keys, uint64_t seed) {
  Quotient filter = MustCreate(keys, {.remainder_bits = remainder_bits, .seed = seed});
  const Quotient::View view = filter.view();
  std::map<std::pair<uint64_t, uint64_t>, int> model;
  const auto copies = [&](uint64_t hash) -> int& {
    const Quotient::Place place = view.PlaceOf(hash);
    return model[{place.quotient, place.remainder}];
  };
  std::vector<uint64_t> stored;
  uint64_t random = seed;
  for (int step = 0; step < 4000; ++step) {
    random = Mix64(random + 1);
    if (stored.empty() || random % 100 < (step / 1000 % 2 == 0 ? 75u : 35u)) {
      const bool again = !stored.empty() && Mix64(random) % 8 == 0;
      const uint64_t hash = again ? stored[random % stored.size()] : test::TestHash(random);
      const std::vector<std::byte> before(filter.Table().begin(), filter.Table().end());
      if (filter.Insert(hash) == InsertStatus::kOk) {
        stored.push_back(hash);
        ++copies(hash);
      } else {
        ASSERT_TRUE(test::EqualBytes(filter.Table(), before)) << "a refused insert changed bytes";
        ASSERT_GE(filter.Load(), 0.9);
      }
    } else {
      uint64_t& hash = stored[Mix64(random) % stored.size()];
      ASSERT_EQ(filter.Erase(hash), EraseStatus::kOk);
      --copies(hash);
      hash = stored.back();
      stored.pop_back();
    }
    if (step % 64 != 0) continue;
    ASSERT_NO_FATAL_FAILURE(ExpectConsistent(filter)) << step;
    ASSERT_EQ(test::CountDenied(filter, stored), 0u) << step;
    for (const uint64_t hash : TestHashes(random, 100)) {
      ASSERT_EQ(filter.MayContain(hash), copies(hash) > 0) << step;
    }
  }
  for (const uint64_t hash : stored) ASSERT_EQ(filter.Erase(hash), EraseStatus::kOk);
  ASSERT_TRUE(std::ranges::all_of(filter.Table(), [](std::byte byte) {
    return byte == std::byte{0};
  })) << "an empty table is not zero";
}

TEST(Quotient, IsLikeAModel) {
  for (uint64_t bits = 4; bits <= 16; ++bits) {
    SCOPED_TRACE(bits);
    CheckAgainstModel(bits, 20, bits);
    CheckAgainstModel(bits, 300, bits + 100);
  }
  CheckAgainstModel(8, 700, 1);
}

// A long cluster crosses many blocks: its offsets, and shifts through all of them.
TEST(Quotient, ShiftsThroughManyBlocks) {
  for (const uint64_t bits : {uint64_t{5}, uint64_t{8}, uint64_t{16}}) {
    SCOPED_TRACE(bits);
    Quotient filter = MustCreate(1000, {.remainder_bits = bits, .seed = 11});
    const Quotient::View view = filter.view();
    // Keys of the first quotients only.
    std::vector<uint64_t> low;
    for (uint64_t i = 0; low.size() < 200; ++i) {
      if (view.PlaceOf(test::TestHash(i)).quotient < 20) low.push_back(test::TestHash(i));
    }
    std::vector<uint64_t> stored;
    for (const uint64_t hash : low) {
      ASSERT_EQ(filter.Insert(hash), InsertStatus::kOk);
      stored.push_back(hash);
      ASSERT_NO_FATAL_FAILURE(ExpectConsistent(filter));
    }
    EXPECT_GE(view.Offset(1), 100u);
    for (size_t i = 0; i < stored.size(); ++i) {
      ASSERT_EQ(filter.Erase(stored[i * 7 % 200]), EraseStatus::kOk);
      ASSERT_NO_FATAL_FAILURE(ExpectConsistent(filter));
    }
    EXPECT_EQ(filter.stored(), 0u);
  }
}

// Case B2: one key until it is refused; what was accepted can be erased.
TEST(Quotient, OffsetsThatWouldNotFitRefuse) {
  Quotient filter = MustCreate(3000, {.seed = 12});
  const uint64_t hash = test::TestHash(1);
  int inserted = 0;
  while (inserted < 1000 && filter.Insert(hash) == InsertStatus::kOk) ++inserted;
  // The run begins within a block, and 255 slots of it may lie beyond.
  EXPECT_GE(inserted, 256);
  EXPECT_LE(inserted, 255 + 64);
  ExpectConsistent(filter);
  for (int i = 0; i < inserted; ++i) ASSERT_EQ(filter.Erase(hash), EraseStatus::kOk);
  EXPECT_EQ(filter.Erase(hash), EraseStatus::kNotFound);
}

TEST(Quotient, FingerprintsKeepTheOrderOfMixedHashes) {
  const Quotient filter = MustCreate(1000, {.seed = 0});
  const Quotient::View view = filter.view();
  std::vector<std::pair<uint64_t, std::pair<uint64_t, uint64_t>>> sorted;
  for (const uint64_t hash : TestHashes(0, 1000)) {
    const Quotient::Place place = view.PlaceOf(hash);
    EXPECT_LT(place.quotient, view.quotients);
    sorted.push_back({QuotientMix(hash, view.salt), {place.quotient, place.remainder}});
  }
  std::ranges::sort(sorted);
  for (size_t i = 1; i < sorted.size(); ++i) EXPECT_LE(sorted[i - 1].second, sorted[i].second);
}

// Every width: kernels answer like the reference, at the rate of theory.
TEST(Quotient, EveryWidthHasItsRateOnEveryTarget) {
  const uint64_t n = 20000;
  const std::vector<uint64_t> absent = TestHashes(n, uint64_t{1} << 17);
  std::vector<uint64_t> expected(absent.size() / 64);
  std::vector<uint64_t> bits(absent.size() / 64);
  for (uint64_t width = 4; width <= 16; ++width) {
    SCOPED_TRACE(width);
    const auto filter = Quotient::Build(TestHashes(0, n), {.remainder_bits = width, .seed = width});
    ASSERT_TRUE(filter) << filter.error();
    const uint64_t false_positives = CountContained(*filter, absent);
    EXPECT_TRUE(theory::FprAgrees(false_positives, absent.size(), *filter->ExpectedFpr(), 1e-9))
        << false_positives << " expected " << filter->ExpectedFpr()->mean * absent.size();
    Quotient::Kernels().back().bits_batched(filter->view(), absent.data(), absent.size(),
                                            expected.data());
    for (const auto& kernel : Quotient::Kernels()) {
      kernel.bits_batched(filter->view(), absent.data(), absent.size(), bits.data());
      ASSERT_EQ(bits, expected) << kernel.target;
      ASSERT_EQ(kernel.count_batched(filter->view(), TestHashes(0, n).data(), n), n);
    }
  }
}

TEST(Quotient, BuildsAnyNumberOfKeys) {
  uint64_t worst = 0;
  for (uint64_t n = 0; n <= 20000; n += n < 200 ? 1 : 1 + n / 9) {
    for (const bool in_a_row : {false, true}) {
      std::vector<uint64_t> hashes = TestHashes(0, n);
      for (uint64_t i = 0; in_a_row && i < n; ++i) hashes[i] = i;
      const auto filter = Quotient::Build(hashes, {.seed = n});
      ASSERT_TRUE(filter) << n << ": " << filter.error();
      ASSERT_EQ(test::CountDenied(*filter, hashes), 0u) << n;
      worst = std::max(worst, filter->report().attempts);
    }
  }
  EXPECT_LE(worst, 2u);
}

// --- Damage ---

// One bit of the metadata, wherever it is: the table is refused, since a lookup could leave it.
// Case E2: every bit of the metadata, under a right checksum.
TEST(Quotient, RefusesMetadataOfNoTable) {
  const auto filter = Quotient::Build(TestHashes(0, 500), {.seed = 2});
  ASSERT_TRUE(filter);
  const std::vector<std::byte> wire = filter->Serialize();
  const size_t table_at = wire.size() - filter->Table().size();
  const uint64_t block_bytes = filter->view().block_bytes;
  for (uint64_t block = 0; block < Quotient::BlocksFor(filter->quotients()); ++block) {
    for (uint64_t bit = 0; bit < 8 * Quotient::kRemaindersAt; ++bit) {
      std::vector<std::byte> damaged = wire;
      damaged[table_at + block * block_bytes + bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      test::FixChecksum(damaged);
      const auto read = Quotient::Deserialize(damaged);
      ASSERT_FALSE(read) << "block " << block << " bit " << bit;
      EXPECT_NE(read.error().find("table"), std::string::npos) << read.error();
    }
  }
}

// Any bytes in a table: refused, or answered without leaving it.
TEST(Quotient, SurvivesAnyTable) {
  const auto filter = Quotient::Build(TestHashes(0, 60), {.seed = 2});
  ASSERT_TRUE(filter);
  const std::vector<std::byte> wire = filter->Serialize();
  const size_t table_at = wire.size() - filter->Table().size();
  for (uint64_t i = 0; i < 3000; ++i) {
    std::vector<std::byte> damaged = wire;
    for (uint64_t j = 0; j <= i % 5; ++j) {
      const uint64_t random = Mix64(i * 5 + j + 1);
      damaged[table_at + FastRange64(random, wire.size() - table_at)] ^=
          static_cast<std::byte>(random);
    }
    test::FixChecksum(damaged);
    Result<Quotient> read = Quotient::Deserialize(damaged);
    if (!read) continue;
    for (const uint64_t hash : TestHashes(0, 200)) (void)read->MayContain(hash);
    for (const uint64_t hash : TestHashes(0, 200)) (void)read->Insert(hash);
    for (const uint64_t hash : TestHashes(0, 200)) (void)read->Erase(hash);
    ExpectConsistent(*read);
  }
}

}  // namespace
}  // namespace filterbench
