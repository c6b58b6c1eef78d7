// The rules of the vector quotient filter itself; what holds for every filter is in
// filters/conformance.

#include "filters/quotient/vector_quotient.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "filters/test_support.h"
#include "filters/test_wire.h"

namespace filterbench {
namespace {

using test::TestHashes;
using Bits = VectorQuotient::FingerprintBits;
constexpr Bits kAllBits[] = {Bits::k8, Bits::k16};

VectorQuotient MustCreate(uint64_t keys, const VectorQuotient::Params& params) {
  Result<VectorQuotient> filter = VectorQuotient::Create(keys, params);
  if (!filter) throw std::runtime_error(filter.error());
  return std::move(*filter);
}

bool IsZero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

// --- One block ---

// Against a count of each tag, over many insertions and erasures. `tags` are few where buckets
// shall fill up and equal tags meet.
template <int kBits>
void CheckBlockAgainstModel(uint64_t tags, uint64_t seed) {
  using Block = MiniFilter<kBits>;
  alignas(64) std::byte block[Block::kBytes + 64] = {};
  std::map<uint64_t, int> model;
  int count = 0;
  uint64_t random = seed;
  for (int step = 0; step < 4000; ++step) {
    random = Mix64(random + 1);
    // Spread over all buckets, the first and the last included.
    const uint64_t tag = FastRange64(random, tags) * (Block::kTags - 1) / (tags - 1);
    const bool insert = Mix64(random) % 100 < (step / 500 % 2 == 0 ? 70u : 30u);
    if (insert && count < Block::kSlots) {
      Block::Insert(block, tag);
      ++model[tag];
      ++count;
    } else if (!insert) {
      const bool there = model[tag] > 0;
      ASSERT_EQ(Block::Erase(block, tag), there);
      model[tag] -= there ? 1 : 0;
      count -= there ? 1 : 0;
    }
    ASSERT_EQ(Block::Count(Block::Load(block)), count);
    ASSERT_TRUE(Block::IsConsistent(block));
    for (const auto& [known, copies] : model) {
      ASSERT_EQ(Block::Find(block, known) >= 0, copies > 0) << known << " after " << step;
    }
  }
  ASSERT_TRUE(IsZero(std::span(block).subspan(Block::kBytes))) << "wrote beyond the block";
}

TEST(MiniFilter, IsLikeAModel) {
  for (const uint64_t tags : {2, 5, 100, 5000}) {
    CheckBlockAgainstModel<8>(tags, tags);
    CheckBlockAgainstModel<16>(tags, tags + 1);
  }
}

template <int kBits>
void CheckFullBuckets() {
  using Block = MiniFilter<kBits>;
  for (const uint64_t bucket : {0, 1, Block::kBuckets / 2, Block::kBuckets - 1}) {
    alignas(64) std::byte block[Block::kBytes] = {};
    for (uint64_t i = 0; i < Block::kSlots; ++i) Block::Insert(block, bucket << kBits | i);
    ASSERT_TRUE(Block::IsConsistent(block));
    for (uint64_t i = 0; i < Block::kSlots; ++i) {
      ASSERT_GE(Block::Find(block, bucket << kBits | i), 0);
      for (const uint64_t other : {bucket - 1, bucket + 1}) {
        if (other >= Block::kBuckets) continue;
        ASSERT_LT(Block::Find(block, other << kBits | i), 0);
      }
    }
    for (uint64_t i = 0; i < Block::kSlots; ++i) {
      ASSERT_TRUE(Block::Erase(block, bucket << kBits | i));
    }
    ASSERT_TRUE(IsZero(block));
  }
}

TEST(MiniFilter, HoldsAllItsKeysInOneBucket) {
  CheckFullBuckets<8>();
  CheckFullBuckets<16>();
}

// --- Pairs of blocks ---

TEST(MiniFilterPartner, IsAnInvolutionForEveryNumberOfBlocks) {
  for (uint64_t blocks : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{7}, uint64_t{64},
                          uint64_t{1000001}, kMaxMiniFilters - 1, kMaxMiniFilters}) {
    for (uint64_t i = 0; i < 2000; ++i) {
      const uint64_t tag = FastRange64(Mix64(i), MiniFilter<16>::kTags);
      const uint64_t block = FastRange64(Mix64(i + 77777), blocks);
      const uint64_t partner = MiniFilterPartner(block, tag, blocks);
      ASSERT_LT(partner, blocks);
      ASSERT_EQ(MiniFilterPartner(partner, tag, blocks), block) << blocks;
    }
  }
}

// Two keys with one tag that share a block: if only one of their blocks were the same, erasing one
// could take the copy of the other.
// Case B3: keys that share a tag and a block.
TEST(VectorQuotient, ErasingAKeyKeepsAllThatShareItsTag) {
  VectorQuotient filter = MustCreate(180, {.seed = 3});
  const auto view = filter.view().Specialize([](const auto& sized) {
    return VectorQuotient::SizedView<8>{sized.table, sized.blocks, sized.salt, sized.prefetch};
  });
  std::map<uint64_t, std::vector<uint64_t>> by_tag;
  for (const uint64_t hash : TestHashes(0, 400000)) by_tag[view.PlaceOf(hash).tag].push_back(hash);
  for (const auto& [tag, hashes] : by_tag) {
    if (hashes.size() < 8 || hashes.size() > 40) continue;
    if (tag % 16 != 0) continue;
    for (const uint64_t hash : hashes) ASSERT_EQ(filter.Insert(hash), InsertStatus::kOk);
    for (size_t i = 0; i < hashes.size(); ++i) {
      ASSERT_EQ(filter.Erase(hashes[i]), EraseStatus::kOk);
      for (size_t j = i + 1; j < hashes.size(); ++j) ASSERT_TRUE(filter.MayContain(hashes[j]));
    }
    ASSERT_TRUE(IsZero(filter.Table()));
  }
}

// --- Sizes and load ---

// Case C7: the promised load is reached.
TEST(VectorQuotient, FillsToThePromisedLoadAndBeyond) {
  for (const Bits bits : kAllBits) {
    const uint64_t n = 200000;
    VectorQuotient filter = MustCreate(n, {.fingerprint_bits = bits, .seed = 5});
    uint64_t stored = 0;
    for (const uint64_t hash : TestHashes(0, 2 * n)) {
      if (filter.Insert(hash) != InsertStatus::kOk) break;
      ++stored;
    }
    EXPECT_GE(stored, n);
    // Two choices leave little room: where the second block is ignored a table of this size is
    // refused at 0.6 of its slots.
    EXPECT_GE(filter.Load(), bits == Bits::k8 ? 0.94 : 0.905);
    EXPECT_LE(filter.Load(), 0.97);
  }
}

// Case B2: full blocks refuse and stay as they are.
TEST(VectorQuotient, TwoFullBlocksRefuseAndChangeNothing) {
  VectorQuotient filter = MustCreate(1, {.seed = 1});
  ASSERT_EQ(filter.blocks(), 1u);
  for (const uint64_t hash : TestHashes(0, 48)) ASSERT_EQ(filter.Insert(hash), InsertStatus::kOk);
  const std::vector<std::byte> before(filter.Table().begin(), filter.Table().end());
  for (const uint64_t hash : TestHashes(48, 100)) {
    ASSERT_EQ(filter.Insert(hash), InsertStatus::kFull);
  }
  EXPECT_TRUE(test::EqualBytes(filter.Table(), before));
  EXPECT_EQ(filter.stored(), 48u);
}

TEST(VectorQuotient, BuildsAnyNumberOfKeys) {
  for (const Bits bits : kAllBits) {
    uint64_t worst = 0;
    for (uint64_t n = 0; n <= 20000; n += n < 200 ? 1 : 1 + n / 9) {
      for (const bool in_a_row : {false, true}) {
        std::vector<uint64_t> hashes = TestHashes(0, n);
        for (uint64_t i = 0; in_a_row && i < n; ++i) hashes[i] = i;
        const auto filter =
            VectorQuotient::Build(hashes, {.fingerprint_bits = bits, .seed = n});
        ASSERT_TRUE(filter) << n << ": " << filter.error();
        ASSERT_EQ(test::CountDenied(*filter, hashes), 0u) << n;
        ASSERT_EQ(filter->stored(), n);
        worst = std::max(worst, filter->report().attempts);
      }
    }
    EXPECT_LE(worst, 3u);
  }
}

// Case C2: copies take no slot.
TEST(VectorQuotient, RepeatedKeysTakeNoRoom) {
  std::vector<uint64_t> hashes = TestHashes(0, 10000);
  for (size_t i = 0; i < 30000; ++i) hashes.push_back(hashes[i % 10000]);
  const auto repeated = VectorQuotient::Build(hashes, {.seed = 9});
  const auto once = VectorQuotient::Build(TestHashes(0, 10000), {.seed = 9});
  ASSERT_TRUE(repeated && once);
  EXPECT_EQ(repeated->report().distinct_keys, 10000u);
  EXPECT_TRUE(test::EqualBytes(repeated->Table(), once->Table()));
}

// --- Damage ---

// Case E2: metadata that no block can have, under a right checksum.
TEST(VectorQuotient, RefusesMetadataOfNoBlock) {
  for (const Bits bits : kAllBits) {
    const auto filter =
        VectorQuotient::Build(TestHashes(0, 1000), {.fingerprint_bits = bits, .seed = 2});
    ASSERT_TRUE(filter);
    const std::vector<std::byte> wire = filter->Serialize();
    const size_t table_at = wire.size() - filter->Table().size();
    const size_t metadata_bits = bits == Bits::k8 ? 128 : 64;
    for (size_t block = 0; block < filter->blocks(); block += 5) {
      for (size_t bit = 0; bit < metadata_bits; ++bit) {
        std::vector<std::byte> damaged = wire;
        damaged[table_at + block * 64 + bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        test::FixChecksum(damaged);
        const auto read = VectorQuotient::Deserialize(damaged);
        ASSERT_FALSE(read) << "block " << block << " bit " << bit;
        EXPECT_NE(read.error().find("table"), std::string::npos) << read.error();
      }
    }
  }
}

}  // namespace
}  // namespace filterbench
