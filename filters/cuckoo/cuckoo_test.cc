// The rules of the cuckoo filter itself; what holds for every filter is in contract_test.cc.
//
// Case B10 does not apply: Insert and Erase are not thread-safe by contract (cuckoo.h), and nothing
// calls them from two threads: insert points of several threads are refused by the plan.

#include "filters/cuckoo/cuckoo.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "filters/theory/agreement.h"
#include "filters/theory/cuckoo.h"

namespace filterbench {
namespace {

using Bits = Cuckoo::FingerprintBits;
constexpr Bits kAllBits[] = {Bits::k8, Bits::k12, Bits::k16};
using Slots = Cuckoo::Slots;
constexpr Slots kAllSlots[] = {Slots::k2, Slots::k4, Slots::k8};
using enum theory::CuckooPairs;

std::vector<uint64_t> Hashes(uint64_t n, uint64_t stream = 0) {
  std::vector<uint64_t> hashes(n);
  for (uint64_t i = 0; i < n; ++i) hashes[i] = Mix64(Mix64(stream + 1) + i);
  return hashes;
}

Cuckoo MustBuild(std::span<const uint64_t> hashes, const Cuckoo::Params& params) {
  Result<Cuckoo> filter = Cuckoo::Build(hashes, params);
  if (!filter) throw std::runtime_error(filter.error());
  return std::move(*filter);
}

Cuckoo MustMake(uint64_t buckets, const Cuckoo::Params& params) {
  Result<Cuckoo> filter = Cuckoo::WithUnits(buckets, params);
  if (!filter) throw std::runtime_error(filter.error());
  return std::move(*filter);
}

std::vector<std::byte> Bytes(const Cuckoo& filter) {
  return {filter.Table().begin(), filter.Table().end()};
}

uint64_t Denied(const Cuckoo& filter, std::span<const uint64_t> hashes) {
  return std::count_if(hashes.begin(), hashes.end(),
                       [&](uint64_t hash) { return !filter.MayContain(hash); });
}

// Every width of tags with every size of buckets and both kinds of partners.
std::vector<Cuckoo::Params> AllLayouts() {
  std::vector<Cuckoo::Params> layouts;
  for (const Bits bits : kAllBits) {
    for (const Slots slots : kAllSlots) {
      for (const auto partner : {Cuckoo::PartnerKind::kInvolution, Cuckoo::PartnerKind::kXor}) {
        layouts.push_back({.fingerprint_bits = bits, .slots = slots, .partner = partner});
      }
    }
  }
  return layouts;
}

// --- Buckets ---

template <int kBits>
void CheckBucketAgainstSlots() {
  using Bucket = CuckooBucket<kBits>;
  // Slots with all the values that carries or borrows would get wrong, in every combination, and
  // garbage behind the bucket.
  const uint64_t top = uint64_t{1} << (kBits - 1);
  const uint64_t values[] = {0, 1, 2, top - 1, top, top + 1, Bucket::kTagMask - 1,
                             Bucket::kTagMask};
  for (uint64_t combination = 0; combination < 8 * 8 * 8 * 8; ++combination) {
    uint64_t word = 0;
    uint64_t slots[4];
    for (int slot = 0; slot < 4; ++slot) {
      slots[slot] = values[combination >> (3 * slot) & 7];
      word = Bucket::WithTag(word, slot, slots[slot]);
    }
    for (const uint64_t behind : {uint64_t{0}, ~uint64_t{0}}) {
      const uint64_t loaded = kBits == 16 ? word : word | behind << (4 * kBits % 64);
      for (const uint64_t tag : values) {
        uint64_t expected = 0;
        for (int slot = 0; slot < 4; ++slot) {
          ASSERT_EQ(Bucket::Tag(loaded, slot), slots[slot]);
          if (slots[slot] == tag) expected |= top << (slot * kBits);
        }
        ASSERT_EQ(Bucket::SlotsWith(loaded, tag), expected) << word << " " << tag;
        if (tag == 0) {
          ASSERT_EQ(Bucket::FreeSlots(loaded), expected);
        }
        if (expected != 0) {
          ASSERT_EQ(slots[Bucket::FirstSlot(expected)], tag);
        }
      }
    }
  }
}

TEST(CuckooBucketTest, ComparesFourSlotsExactly) {
  CheckBucketAgainstSlots<8>();
  CheckBucketAgainstSlots<12>();
  CheckBucketAgainstSlots<16>();
}

// Buckets of every layout against an array of tags, with neighbours that must not change.
template <int kBits, int kSlots>
void CheckBucketAgainstArray() {
  using Bucket = CuckooBucket<kBits, kSlots>;
  static_assert(Bucket::kBytes == kSlots * kBits / 8);
  constexpr int kBuckets = 3;
  std::vector<std::byte> table(kBuckets * Bucket::kBytes + kCacheLineBytes, std::byte{0xff});
  std::byte* bucket = table.data() + Bucket::kBytes;
  uint64_t tags[kSlots];
  for (int slot = 0; slot < kSlots; ++slot) tags[slot] = Bucket::kTagMask;
  for (uint64_t step = 0; step < 5000; ++step) {
    const uint64_t random = Mix64(step + 1);
    const int slot = static_cast<int>(random % kSlots);
    const uint64_t tag = random >> 8 & (step % 2 == 0 ? 3 : Bucket::kTagMask);
    Bucket::Set(bucket, slot, tag);
    tags[slot] = tag;
    for (int i = 0; i < kSlots; ++i) ASSERT_EQ(Bucket::Get(bucket, i), tags[i]);
    ASSERT_EQ(Bucket::CountFree(bucket), std::count(tags, tags + kSlots, uint64_t{0}));
    for (const uint64_t wanted : {uint64_t{0}, uint64_t{1}, tag, Bucket::kTagMask}) {
      const uint64_t* at = std::find(tags, tags + kSlots, wanted);
      ASSERT_EQ(Bucket::Find(bucket, wanted), at == tags + kSlots ? -1 : at - tags);
      ASSERT_EQ(Bucket::Holds(bucket, wanted), at != tags + kSlots);
    }
  }
  for (size_t i = 0; i < table.size(); ++i) {
    if (i / Bucket::kBytes != 1) {
      ASSERT_EQ(table[i], std::byte{0xff}) << i;
    }
  }
}

TEST(CuckooBucketTest, AllLayoutsAreArraysOfTags) {
  CheckBucketAgainstArray<8, 2>();
  CheckBucketAgainstArray<12, 2>();
  CheckBucketAgainstArray<16, 2>();
  CheckBucketAgainstArray<8, 4>();
  CheckBucketAgainstArray<12, 4>();
  CheckBucketAgainstArray<16, 4>();
  CheckBucketAgainstArray<8, 8>();
  CheckBucketAgainstArray<12, 8>();
  CheckBucketAgainstArray<16, 8>();
}

// --- Mapping ---

TEST(CuckooMappingTest, XorPartnerIsAnotherBucketAndAnInvolution) {
  EXPECT_EQ(Cuckoo::XorPartner(0, 7, 1), 0u);
  for (int power = 1; power <= 37; ++power) {
    const uint64_t buckets = uint64_t{1} << power;
    for (uint64_t tag = 1; tag < 4096; tag += power < 8 ? 1 : 31) {
      for (const uint64_t bucket : {uint64_t{0}, uint64_t{1}, buckets / 2, buckets - 1}) {
        const uint64_t partner = Cuckoo::XorPartner(bucket, tag, buckets);
        ASSERT_LT(partner, buckets);
        ASSERT_NE(partner, bucket);
        ASSERT_EQ(Cuckoo::XorPartner(partner, tag, buckets), bucket);
      }
    }
  }
}

TEST(CuckooMappingTest, XorTakesPowersOfTwo) {
  const Cuckoo::Params params = {.partner = Cuckoo::PartnerKind::kXor};
  for (const uint64_t n : {0u, 1u, 4u, 5u, 1000u, 1000000u}) {
    const uint64_t buckets = Cuckoo::UnitsFor(n, params);
    EXPECT_EQ(buckets, std::bit_ceil(Cuckoo::UnitsFor(n, {})));
    EXPECT_EQ(Cuckoo::Grown(buckets, params), 2 * buckets);
  }
  EXPECT_TRUE(Cuckoo::WithUnits(4, params));
  EXPECT_FALSE(Cuckoo::WithUnits(5, params));
  EXPECT_TRUE(Cuckoo::WithUnits(5, {}));
}

TEST(CuckooMappingTest, LoadFollowsFromTheSlotsUnlessItIsGiven) {
  EXPECT_EQ(Cuckoo::UnitsFor(8400, {.slots = Slots::k2}), 5000u);
  EXPECT_EQ(Cuckoo::UnitsFor(9500, {.slots = Slots::k4}), 2500u);
  EXPECT_EQ(Cuckoo::UnitsFor(9800, {.slots = Slots::k8}), 1250u);
  EXPECT_EQ(Cuckoo::UnitsFor(1000, {.slots = Slots::k8, .load = 0.5}), 250u);
}


TEST(CuckooMappingTest, PartnerIsAnInvolutionForEveryNumberOfBuckets) {
  for (uint64_t buckets = 1; buckets <= 1000; ++buckets) {
    // All tags where that is quick, a sample of them beyond.
    const uint64_t tag_step = buckets < 50 ? 1 : 97;
    for (uint64_t tag = 1; tag < 4096; tag += tag_step) {
      uint64_t own_partner = 0;
      for (uint64_t bucket = 0; bucket < buckets; ++bucket) {
        const uint64_t partner = Cuckoo::Partner(bucket, tag, buckets);
        ASSERT_LT(partner, buckets);
        ASSERT_EQ(Cuckoo::Partner(partner, tag, buckets), bucket) << buckets << " " << tag;
        own_partner += partner == bucket ? 1 : 0;
      }
      if (buckets % 2 == 1) {
        ASSERT_EQ(own_partner, 1u);
      } else {
        ASSERT_TRUE(own_partner == 0 || own_partner == 2) << own_partner;
      }
    }
  }
}

TEST(CuckooMappingTest, PartnerIsAnInvolutionBeyond32Bits) {
  const uint64_t limit = Cuckoo::kMaxTableBytes / 4;
  for (const uint64_t around : {uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 33, limit}) {
    for (uint64_t buckets = around - 5; buckets <= std::min(around + 5, limit); ++buckets) {
      for (const uint64_t hash : Hashes(2000, buckets)) {
        const auto place = Cuckoo::PlaceOf<16>(hash, 0, buckets);
        ASSERT_LT(place.bucket, buckets);
        ASSERT_LT(place.partner, buckets);
        ASSERT_EQ(Cuckoo::Partner(place.partner, place.tag, buckets), place.bucket);
      }
      for (const uint64_t bucket : {uint64_t{0}, uint64_t{1}, buckets - 1}) {
        const uint64_t partner = Cuckoo::Partner(bucket, 7, buckets);
        ASSERT_EQ(Cuckoo::Partner(partner, 7, buckets), bucket);
      }
    }
  }
}

// Both buckets reach the whole table and are uniform there, also where it has more than 2^32
// buckets: chi-square over 64 equal bins, false alarm 1e-9 per check at 63 degrees of freedom.
// Case A1: both buckets, in tables of more than 2^32 buckets.
TEST(CuckooMappingTest, BucketsAreUniformInTablesOfAnySize) {
  constexpr double kChiSquareBound = 157.3;
  const uint64_t limit = Cuckoo::kMaxTableBytes / 4;
  for (const uint64_t buckets : {uint64_t{1000}, (uint64_t{1} << 32) - 1, (uint64_t{1} << 32) + 1,
                                 3 * (uint64_t{1} << 30), (uint64_t{1} << 33) + 9, limit}) {
    constexpr int kBins = 64;
    constexpr uint64_t kSamples = 1000000;
    std::vector<uint64_t> bucket_bins(kBins);
    std::vector<uint64_t> partner_bins(kBins);
    uint64_t highest = 0;
    for (const uint64_t hash : Hashes(kSamples, buckets)) {
      const auto place = Cuckoo::PlaceOf<16>(hash, 0, buckets);
      highest = std::max(highest, place.bucket);
      ++bucket_bins[static_cast<unsigned __int128>(place.bucket) * kBins / buckets];
      ++partner_bins[static_cast<unsigned __int128>(place.partner) * kBins / buckets];
    }
    EXPECT_GT(static_cast<double>(highest), 0.999 * static_cast<double>(buckets) - 1);
    for (const auto* bins : {&bucket_bins, &partner_bins}) {
      double chi_square = 0;
      for (int bin = 0; bin < kBins; ++bin) {
        // A bin holds a whole number of buckets, not always the same.
        const auto first_of = [&](uint64_t b) { return (b * buckets + kBins - 1) / kBins; };
        const double expected = static_cast<double>(kSamples) *
                                static_cast<double>(first_of(bin + 1) - first_of(bin)) /
                                static_cast<double>(buckets);
        const double excess = static_cast<double>((*bins)[bin]) - expected;
        chi_square += excess * excess / expected;
      }
      EXPECT_LT(chi_square, kChiSquareBound) << buckets;
    }
  }
}

// The tag says nothing of the bucket: all pairs of a tag and a sixteenth of the table are equally
// frequent. Chi-square over 255 x 16 cells; the bound is the normal one at 6.0 deviations.
TEST(CuckooMappingTest, TagIsIndependentOfTheBucket) {
  constexpr uint64_t kSamples = 1 << 20;
  constexpr uint64_t kBuckets = (uint64_t{1} << 33) + 9;
  std::vector<uint64_t> cells(256 * 16);
  for (const uint64_t hash : Hashes(kSamples)) {
    const auto place = Cuckoo::PlaceOf<8>(hash, 0, kBuckets);
    ++cells[place.tag * 16 + static_cast<unsigned __int128>(place.bucket) * 16 / kBuckets];
  }
  double chi_square = 0;
  for (uint64_t tag = 0; tag < 256; ++tag) {
    for (uint64_t part = 0; part < 16; ++part) {
      const uint64_t count = cells[tag * 16 + part];
      if (tag == 0) {
        ASSERT_EQ(count, 0u);  // 0 means free
        continue;
      }
      const double expected = kSamples / 4096.0 * (tag == 1 ? 2 : 1);
      const double excess = static_cast<double>(count) - expected;
      chi_square += excess * excess / expected;
    }
  }
  constexpr double kFreedom = 255 * 16 - 1;
  EXPECT_NEAR(chi_square, kFreedom, 6.0 * std::sqrt(2 * kFreedom));
}

// Case A2: from 2^0 to 2^45 keys.
TEST(CuckooMappingTest, SizesFollowFromTheLoadAndAreBounded) {
  uint64_t last = 0;
  for (int power = 0; power <= 45; ++power) {
    const uint64_t n = uint64_t{1} << power;
    const uint64_t buckets = Cuckoo::UnitsFor(n, {.load = 0.95});
    EXPECT_GE(buckets, last);
    EXPECT_GE(static_cast<double>(buckets) * 4 * 0.95, static_cast<double>(n) * (1 - 1e-12));
    last = buckets;
  }
  EXPECT_EQ(Cuckoo::UnitsFor(0, {.load = 0.95}), 1u);
  EXPECT_EQ(Cuckoo::UnitsFor(62914, {.load = 0.96}), 16384u);

  const auto too_large =
      Cuckoo::WithUnits((uint64_t{1} << 35) + 1, {.fingerprint_bits = Bits::k8});
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error(), "too large: needs 137438953476 bytes, limit 137438953472");
  EXPECT_FALSE(Cuckoo::WithUnits(UINT64_MAX, {}));
  EXPECT_FALSE(Cuckoo::WithUnits(0, {}));
}

// --- Insert and Erase ---

// Whether moves of stored tags can bring a free slot into one of the two buckets of `hash`: all
// buckets that chains of moves reach, by repeated union, in a table small enough for that.
bool AFreeSlotCanBeReached(const Cuckoo& filter, uint64_t hash) {
  return filter.view().Specialize([&]<class V>(const V& view) {
    using Bucket = typename V::Bucket;
    const auto place = Cuckoo::PlaceOf<V::kTagBits>(hash, view.salt, view.buckets);
    std::set<uint64_t> reached = {place.bucket, place.partner};
    for (size_t size = 0; size != reached.size();) {
      size = reached.size();
      for (const uint64_t bucket : std::vector<uint64_t>(reached.begin(), reached.end())) {
        for (int slot = 0; slot < Bucket::kSlots; ++slot) {
          const uint64_t tag =
              Bucket::Tag(Bucket::Load(view.table + bucket * Bucket::kBytes), slot);
          if (tag == 0) return true;
          reached.insert(Cuckoo::Partner(bucket, tag, view.buckets));
        }
      }
    }
    return false;
  });
}

// Case B2: 16 buckets, filled to the first refusal: no byte changes, every accepted key is found,
// and there was indeed no room.
TEST(CuckooInsertTest, ARefusedInsertChangesNothing) {
  for (const Bits bits : kAllBits) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      Cuckoo filter = MustMake(16, {.fingerprint_bits = bits, .seed = seed});
      std::vector<uint64_t> accepted;
      bool refused = false;
      for (const uint64_t hash : Hashes(200, seed)) {
        const std::vector<std::byte> before = Bytes(filter);
        if (filter.Insert(hash) == InsertStatus::kFull) {
          EXPECT_EQ(Bytes(filter), before);
          EXPECT_FALSE(AFreeSlotCanBeReached(filter, hash));
          refused = true;
          break;
        }
        accepted.push_back(hash);
        ASSERT_EQ(Denied(filter, accepted), 0u);
      }
      EXPECT_TRUE(refused);
      EXPECT_EQ(filter.stored(), accepted.size());
    }
  }
}

// Case B2: one key nine times.
TEST(CuckooInsertTest, APairOfBucketsHoldsEightCopiesAndTheNinthHarmsNobody) {
  for (const Bits bits : kAllBits) {
    Cuckoo filter = MustMake(16, {.fingerprint_bits = bits});
    const auto has_two_buckets = [&](uint64_t hash) {
      return filter.view().Specialize([&]<class V>(const V& view) {
        const auto place = Cuckoo::PlaceOf<V::kTagBits>(hash, view.salt, view.buckets);
        return place.bucket != place.partner;
      });
    };
    uint64_t hash = Mix64(12345);
    while (!has_two_buckets(hash)) hash = Mix64(hash);
    for (int copy = 0; copy < 8; ++copy) ASSERT_EQ(filter.Insert(hash), InsertStatus::kOk);

    std::vector<uint64_t> others;
    for (const uint64_t other : Hashes(30)) {
      if (filter.Insert(other) == InsertStatus::kOk) others.push_back(other);
    }
    ASSERT_GE(others.size(), 20u);
    const std::vector<std::byte> before = Bytes(filter);
    EXPECT_EQ(filter.Insert(hash), InsertStatus::kFull);
    EXPECT_EQ(Bytes(filter), before);
    EXPECT_EQ(Denied(filter, others), 0u);
    for (int copy = 0; copy < 8; ++copy) {
      EXPECT_TRUE(filter.MayContain(hash));
      ASSERT_EQ(filter.Erase(hash), EraseStatus::kOk);
    }
    EXPECT_EQ(filter.Erase(hash), EraseStatus::kNotFound);
    EXPECT_EQ(Denied(filter, others), 0u);
  }
}

TEST(CuckooInsertTest, ABucketThatIsItsOwnPartnerHoldsFourCopies) {
  Cuckoo filter = MustMake(1, {});
  for (int copy = 0; copy < 4; ++copy) ASSERT_EQ(filter.Insert(42), InsertStatus::kOk);
  EXPECT_EQ(filter.Insert(42), InsertStatus::kFull);
  EXPECT_EQ(filter.Insert(43), InsertStatus::kFull);
  EXPECT_EQ(filter.Load(), 1.0);
  for (int copy = 0; copy < 4; ++copy) ASSERT_EQ(filter.Erase(42), EraseStatus::kOk);
  EXPECT_EQ(Bytes(filter), Bytes(MustMake(1, {})));
}

TEST(CuckooEraseTest, KeepsAllOthersAndLeavesNothingBehind) {
  for (const Bits bits : kAllBits) {
    const std::vector<uint64_t> keys = Hashes(15000);
    Cuckoo filter = MustBuild(keys, {.fingerprint_bits = bits});
    for (size_t i = 0; i < keys.size(); i += 2) {
      ASSERT_EQ(filter.Erase(keys[i]), EraseStatus::kOk);
    }
    std::vector<uint64_t> kept;
    for (size_t i = 1; i < keys.size(); i += 2) kept.push_back(keys[i]);
    EXPECT_EQ(Denied(filter, kept), 0u);
    EXPECT_EQ(filter.stored(), kept.size());
    // Erased keys are absent keys now, at the rate of what is left.
    std::vector<uint64_t> erased;
    for (size_t i = 0; i < keys.size(); i += 2) erased.push_back(keys[i]);
    EXPECT_TRUE(theory::FprAgrees(erased.size() - Denied(filter, erased), erased.size(),
                                  *filter.ExpectedFpr(), 1e-9));
    for (const uint64_t hash : erased) ASSERT_EQ(filter.Insert(hash), InsertStatus::kOk);
    EXPECT_EQ(Denied(filter, keys), 0u);
    for (const uint64_t hash : keys) ASSERT_EQ(filter.Erase(hash), EraseStatus::kOk);
    const auto table = filter.Table();
    EXPECT_EQ(std::count(table.begin(), table.end(), std::byte{0}),
              static_cast<std::ptrdiff_t>(table.size()));
    EXPECT_EQ(filter.stored(), 0u);
  }
}

// Why the precondition of Erase stands in its contract: a tag that two keys share may be taken from
// the wrong one. What is not there at all is refused and changes nothing.
// Case B3: 15,000 strangers are erased with tags of 8 bits: why the precondition is in the
// contract.
TEST(CuckooEraseTest, OfAKeyThatWasNeverInsertedIsRefusedUnlessItSharesATag) {
  const std::vector<uint64_t> keys = Hashes(15000, 1);
  const std::vector<uint64_t> strangers = Hashes(15000, 2);
  Cuckoo filter = MustBuild(keys, {.fingerprint_bits = Bits::k8});
  uint64_t removed = 0;
  for (const uint64_t hash : strangers) {
    const bool present = filter.MayContain(hash);
    const std::vector<std::byte> before = present ? std::vector<std::byte>{} : Bytes(filter);
    const EraseStatus status = filter.Erase(hash);
    ASSERT_EQ(status == EraseStatus::kOk, present);
    if (!present) {
      ASSERT_EQ(Bytes(filter), before);
    }
    removed += present ? 1 : 0;
  }
  EXPECT_GT(removed, 0u);
  EXPECT_EQ(filter.stored(), keys.size() - removed);
  EXPECT_GT(Denied(filter, keys), 0u);
  EXPECT_LE(Denied(filter, keys), removed);
}

TEST(CuckooInsertTest, InsertsBeyondTheBuildAreKeptOrRefused) {
  const std::vector<uint64_t> first = Hashes(8);
  Cuckoo filter = MustBuild(first, {.fingerprint_bits = Bits::k8, .load = 0.1});
  std::vector<uint64_t> inside = first;
  for (const uint64_t hash : Hashes(100, 5)) {
    if (filter.Insert(hash) == InsertStatus::kOk) inside.push_back(hash);
    ASSERT_EQ(Denied(filter, inside), 0u);
  }
  EXPECT_EQ(filter.stored(), inside.size());
  EXPECT_LE(filter.Load(), 1.0);
}

// --- Build ---

TEST(CuckooBuildTest, EveryNumberOfKeys) {
  const std::vector<uint64_t> keys = Hashes(2000);
  const std::vector<uint64_t> absent = Hashes(1000, 9);
  for (const Bits bits : kAllBits) {
    for (size_t n = 0; n <= keys.size(); ++n) {
      const std::span<const uint64_t> given(keys.data(), n);
      const Cuckoo filter = MustBuild(given, {.fingerprint_bits = bits});
      ASSERT_EQ(Denied(filter, given), 0u) << n;
      ASSERT_EQ(filter.stored(), n);
      ASSERT_LE(filter.units(), Cuckoo::UnitsFor(n, {.load = 0.95}) * 102 / 100 + 2) << n;
      if (n == 0) {
        ASSERT_EQ(Denied(filter, absent), absent.size());
        ASSERT_TRUE(!filter.MayContain(0));
      }
    }
  }
}

// Case C7: 62,914 keys in 65,536 slots, 100 seeds, sorted and shuffled.
TEST(CuckooBuildTest, FillsThePromisedLoadWithTheFirstSeed) {
  for (const Bits bits : kAllBits) {
    uint64_t first_seed_sufficed = 0;
    for (uint64_t seed = 0; seed < 100; ++seed) {
      std::vector<uint64_t> keys = Hashes(62914, 3);
      if (seed % 2 == 1) std::sort(keys.begin(), keys.end());
      const Cuckoo filter =
          MustBuild(keys, {.fingerprint_bits = bits, .load = 0.96, .seed = seed});
      ASSERT_EQ(Denied(filter, keys), 0u);
      if (filter.report().attempts == 1 && filter.units() == 16384) ++first_seed_sufficed;
    }
    EXPECT_GE(first_seed_sufficed, 99u);
  }
}

// Case C2: copies take no slot.
TEST(CuckooBuildTest, RepeatedHashesAreStoredOnceAndCostNoSpace) {
  const auto check = [](const std::vector<uint64_t>& given) {
    const std::set<uint64_t> distinct(given.begin(), given.end());
    for (const Bits bits : kAllBits) {
      Cuckoo filter = MustBuild(given, {.fingerprint_bits = bits});
      EXPECT_EQ(filter.report().distinct_keys, distinct.size());
      EXPECT_EQ(filter.stored(), distinct.size());
      EXPECT_EQ(Denied(filter, given), 0u);
      // Each distinct hash can be erased exactly once: all of them have their own tag.
      const std::vector<uint64_t> once(distinct.begin(), distinct.end());
      EXPECT_EQ(filter.units(), MustBuild(once, {.fingerprint_bits = bits}).units());
      for (const uint64_t hash : once) ASSERT_EQ(filter.Erase(hash), EraseStatus::kOk);
      EXPECT_EQ(filter.stored(), 0u);
    }
  };
  check({1, 1});
  check(std::vector<uint64_t>(256, 77));
  check(std::vector<uint64_t>(100000, 0));
  std::vector<uint64_t> some = Hashes(81);
  some.insert(some.end(), some.begin(), some.begin() + 40);
  check(some);
  std::vector<uint64_t> one_percent = Hashes(100000);
  for (size_t i = 0; i < 1000; ++i) one_percent[i * 97 + 1] = one_percent[i * 31];
  check(one_percent);
  std::vector<uint64_t> thrice = Hashes(20000);
  for (int i = 0; i < 2; ++i) thrice.insert(thrice.end(), thrice.begin(), thrice.begin() + 20000);
  check(thrice);
}

// Case C5: exhaustion is an error that says how far it came.
TEST(CuckooBuildTest, KeysThatFitNoTableAreAnErrorNotAFilter) {
  // Distinct hashes that no seed and no larger table tells apart: equal tags, and bits that decide
  // the bucket only beyond 2^28 buckets. Eight of them fit, nine never.
  std::vector<uint64_t> alike(9);
  for (uint64_t i = 0; i < alike.size(); ++i) alike[i] = 0x123456789abc0000 + (i << 16);
  for (const Bits bits : kAllBits) {
    const auto filter = Cuckoo::Build(alike, {.fingerprint_bits = bits});
    ASSERT_FALSE(filter);
    EXPECT_NE(filter.error().find("a key found no free slot in 32 attempts"), std::string::npos)
        << filter.error();
    EXPECT_NE(filter.error().find("load reached"), std::string::npos);
  }
}

TEST(CuckooBuildTest, IsDeterministicAndHangsOnTheSeed) {
  const std::vector<uint64_t> keys = Hashes(5000);
  const Cuckoo one = MustBuild(keys, {.seed = 1});
  EXPECT_EQ(Bytes(one), Bytes(MustBuild(keys, {.seed = 1})));
  EXPECT_NE(Bytes(one), Bytes(MustBuild(keys, {.seed = 2})));
}

TEST(CuckooBuildTest, ReportsTheLoadReached) {
  const std::vector<uint64_t> keys = Hashes(38000);
  const Cuckoo filter = MustBuild(keys, {});
  std::map<std::string_view, double> details;
  for (const Detail& detail : filter.GetDetails()) details[detail.name] = detail.value;
  EXPECT_EQ(details["slots"], 40000);
  EXPECT_EQ(details["load"], 0.95);
  EXPECT_EQ(details["stored"], 38000);
}

// --- Kernels ---

// The loops with prefetches are taken for large tables only: here both are, at every length around
// one, two and three words of answers, and the word after the last stays as it was.
TEST(CuckooKernelTest, AgreesWithTheReferenceWithAndWithoutPrefetch) {
  const std::vector<uint64_t> keys = Hashes(500);
  for (const Cuckoo::Params& params : AllLayouts()) {
    const Cuckoo filter = MustBuild(std::span(keys).first(300), params);
    for (const bool prefetch : {false, true}) {
      Cuckoo::View view = filter.view();
      view.prefetch = prefetch;
      for (const auto& kernel : Cuckoo::Kernels()) {
        for (size_t n = 0; n <= 200; ++n) {
          const uint64_t* from = keys.data() + 300 - n / 2;
          constexpr uint64_t kUntouched = 0x5a5a5a5a5a5a5a5a;
          std::vector<uint64_t> answers((n + 63) / 64 + 1, kUntouched);
          std::vector<uint64_t> expected = answers;
          std::fill(expected.begin(), expected.end() - 1, 0);
          uint64_t count = 0;
          for (size_t i = 0; i < n; ++i) {
            expected[i / 64] |= uint64_t{filter.MayContain(from[i])} << (i % 64);
            count += filter.MayContain(from[i]) ? 1 : 0;
          }
          kernel.bits_batched(view, from, n, answers.data());
          ASSERT_EQ(answers, expected) << kernel.target << " " << n;
          ASSERT_EQ(kernel.count_batched(view, from, n), count) << kernel.target << " " << n;
        }
      }
    }
  }
}

// More than 2^32 buckets without the memory: a mapping of which only what is touched exists.
TEST(CuckooKernelTest, AgreesWithTheReferenceBeyond32BitBuckets) {
  constexpr uint64_t kBuckets = (uint64_t{1} << 32) + 12345;
  for (const Bits bits : kAllBits) {
    const uint64_t bytes = kBuckets *
        Cuckoo::UnitBytes({.fingerprint_bits = bits}) + kCacheLineBytes;
    void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) GTEST_SKIP() << "no address space for " << bytes << " bytes";
    auto* table = static_cast<std::byte*>(mapping);
    const Cuckoo::View view = {table, kBuckets, Mix64(1), bits, true};
    const std::vector<uint64_t> hashes = Hashes(1000);
    view.Specialize([&]<class V>(const V&) {
      using Bucket = typename V::Bucket;
      for (size_t i = 0; i < hashes.size(); i += 2) {  // into either bucket, any slot
        const auto place = Cuckoo::PlaceOf<V::kTagBits>(hashes[i], view.salt, kBuckets);
        std::byte* bucket =
            table + (i % 4 == 0 ? place.bucket : place.partner) * Bucket::kBytes;
        Bucket::Store(bucket, Bucket::WithTag(Bucket::Load(bucket), i / 4 % 4, place.tag));
      }
    });
    for (const auto& kernel : Cuckoo::Kernels()) {
      std::vector<uint64_t> answers((hashes.size() + 63) / 64);
      kernel.bits_batched(view, hashes.data(), hashes.size(), answers.data());
      for (size_t i = 0; i < hashes.size(); ++i) {
        ASSERT_EQ(answers[i / 64] >> (i % 64) & 1, view.MayContain(hashes[i]) ? 1 : 0)
            << kernel.target << " " << i;
        if (i % 2 == 0) {
          ASSERT_TRUE(view.MayContain(hashes[i]));
        }
      }
    }
    munmap(mapping, bytes);
  }
}

// --- Rate ---

// Both forms of theory agree where they must: for many keys they differ by a factor 1 + q / 2.
TEST(CuckooTheoryTest, ExactRateIsCloseToThePapers) {
  for (const int bits : {8, 12, 16}) {
    const double q = (std::exp2(bits) + 2) / std::exp2(2 * bits);
    for (const double load : {0.05, 0.5, 0.95}) {
      const uint64_t buckets = 1 << 22;
      const uint64_t n = static_cast<uint64_t>(buckets * 4 * load);
      const double exact = theory::CuckooFpr(n, buckets, bits, kInvolution).mean;
      const double paper = theory::CuckooFpr(bits, load, 4);
      EXPECT_NEAR(exact / paper, 1.0, 2 * q) << bits << " " << load;
    }
  }
  EXPECT_NEAR(theory::CuckooFpr(8, 0.95, 4), 0.02953358373807413, 1e-15);
  EXPECT_NEAR(*Cuckoo::TheoryFpr(12 / 0.95), 0.0018548790779743252, 1e-15);
  EXPECT_EQ(theory::CuckooFpr(0, 1, 8, kInvolution).mean, 0.0);
}

// The rate of a filter is the probability of the cells (tag, pair of buckets) that its keys occupy.
// Small tables are enumerated: their mean rate over many seeds and its spread are those of theory.
TEST(CuckooTheoryTest, MeanAndDeviationOverSmallFilters) {
  constexpr int kFilters = 4000;
  for (const auto& [n, buckets] :
       {std::pair<uint64_t, uint64_t>{3, 1}, {7, 3}, {40, 11}, {44, 12}}) {
    double sum = 0;
    double sum_of_squares = 0;
    for (uint64_t seed = 0; seed < kFilters; ++seed) {
      // Where keys lie does not matter, only which cells they occupy: nothing needs to be built.
      std::set<std::pair<uint64_t, uint64_t>> cells;
      double rate = 0;
      for (const uint64_t hash : Hashes(n, Mix64(seed + 1))) {
        const auto place = Cuckoo::PlaceOf<8>(hash, 0, buckets);
        if (!cells.insert({place.tag, std::min(place.bucket, place.partner)}).second) continue;
        rate += (place.tag == 1 ? 2 : 1) / 256.0 * (place.bucket == place.partner ? 1.0 : 2.0) /
                static_cast<double>(buckets);
      }
      sum += rate;
      sum_of_squares += rate * rate;
    }
    const FprEstimate theory = theory::CuckooFpr(n, buckets, 8, kInvolution);
    const double mean = sum / kFilters;
    const double sd = std::sqrt(sum_of_squares / kFilters - mean * mean);
    // Six standard errors of the mean, and what an even number of buckets leaves open: the share of
    // tags with an even sum, one half give or take 3 % for 255 tags, four deviations of it.
    const double parity = buckets % 2 == 0 ? 0.13 / static_cast<double>(buckets) : 0;
    EXPECT_NEAR(mean, theory.mean, 6 * theory.instance_sd / std::sqrt(kFilters) + parity * mean);
    EXPECT_NEAR(sd / theory.instance_sd, 1.0, 0.1) << n << " keys in " << buckets;
  }
}

// Two buckets for every key: the same with pairs b, b xor x.
TEST(CuckooTheoryTest, MeanAndDeviationOverSmallFiltersByXor) {
  constexpr int kFilters = 4000;
  for (const auto& [n, buckets] : {std::pair<uint64_t, uint64_t>{3, 1}, {7, 2}, {40, 16}}) {
    double sum = 0;
    double sum_of_squares = 0;
    for (uint64_t seed = 0; seed < kFilters; ++seed) {
      std::set<std::pair<uint64_t, uint64_t>> cells;
      double rate = 0;
      for (const uint64_t hash : Hashes(n, Mix64(seed + 1))) {
        const auto place = Cuckoo::PlaceOf<8>(hash, 0, buckets, true);
        if (!cells.insert({place.tag, std::min(place.bucket, place.partner)}).second) continue;
        rate += (place.tag == 1 ? 2 : 1) / 256.0 * (buckets == 1 ? 1.0 : 2.0) /
                static_cast<double>(buckets);
      }
      sum += rate;
      sum_of_squares += rate * rate;
    }
    const FprEstimate theory = theory::CuckooFpr(n, buckets, 8, kDistinct);
    const double mean = sum / kFilters;
    const double sd = std::sqrt(sum_of_squares / kFilters - mean * mean);
    EXPECT_NEAR(mean, theory.mean, 6 * theory.instance_sd / std::sqrt(kFilters));
    EXPECT_NEAR(sd / theory.instance_sd, 1.0, 0.1) << n << " keys in " << buckets;
  }
}

TEST(CuckooTheoryTest, MeasuredRatesAgreeForAllSlotsAndPartners) {
  for (const Slots slots : kAllSlots) {
    for (const auto partner : {Cuckoo::PartnerKind::kInvolution, Cuckoo::PartnerKind::kXor}) {
      // Just what a power of two holds, so that xor wastes nothing.
      const Cuckoo::Params params = {
          .fingerprint_bits = Bits::k8, .slots = slots, .partner = partner};
      const uint64_t n = slots == Slots::k2 ? 27000 : slots == Slots::k4 ? 62000 : 128000;
      const Cuckoo filter = MustBuild(Hashes(n), params);
      EXPECT_GT(filter.Load(), 0.82);
      constexpr uint64_t kQueries = 1000000;
      const uint64_t maybe = CountContained(filter, Hashes(kQueries, 4));
      EXPECT_TRUE(theory::FprAgrees(maybe, kQueries, *filter.ExpectedFpr(), 1e-9))
          << maybe << " of " << kQueries << ", expected " << filter.ExpectedFpr()->mean;
    }
  }
}

TEST(CuckooTheoryTest, MeasuredRatesAgree) {
  for (const Bits bits : kAllBits) {
    for (const double load : {0.3, 0.95}) {
      for (const uint64_t n : {1000u, 100000u}) {
        const Cuckoo filter = MustBuild(Hashes(n), {.fingerprint_bits = bits, .load = load});
        constexpr uint64_t kQueries = 1000000;
        const uint64_t maybe = CountContained(filter, Hashes(kQueries, 4));
        EXPECT_TRUE(theory::FprAgrees(maybe, kQueries, *filter.ExpectedFpr(), 1e-9))
            << maybe << " of " << kQueries << ", expected " << filter.ExpectedFpr()->mean;
      }
    }
  }
}

}  // namespace
}  // namespace filterbench
