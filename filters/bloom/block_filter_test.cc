#include "filters/bloom/block_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "filters/bloom/acero.h"
#include "filters/bloom/blocked.h"
#include "filters/bloom/cache_sectorized.h"
#include "filters/bloom/register_blocked.h"
#include "filters/bloom/rocksdb.h"
#include "filters/bloom/split_block.h"
#include "filters/test_support.h"

namespace filterbench {
namespace {

template <class F>
class BlockFilterTest : public ::testing::Test {};
using BlockFilters = ::testing::Types<BlockedBloom, SplitBlock, SplitBlock512, RegisterBlocked,
                                      CacheSectorized, RocksDbBloom, RocksDbLegacyBloom,
                                      RocksDbDynamicBloom, AceroBloom, ImpalaBloom>;
TYPED_TEST_SUITE(BlockFilterTest, BlockFilters, test::FilterNames);

// Those whose block is decided by the hash from its highest bit on.
template <class F>
class OrderedBlocksTest : public ::testing::Test {};
using OrderedBlockFilters =
    ::testing::Types<BlockedBloom, SplitBlock, SplitBlock512, RegisterBlocked, CacheSectorized>;
TYPED_TEST_SUITE(OrderedBlocksTest, OrderedBlockFilters, test::FilterNames);

static_assert(StreamingFilter<BlockedBloom> && StreamingFilter<SplitBlock> &&
              StreamingFilter<SplitBlock512> && StreamingFilter<RegisterBlocked> &&
              StreamingFilter<CacheSectorized> && StreamingFilter<RocksDbBloom> &&
              StreamingFilter<RocksDbLegacyBloom> && StreamingFilter<RocksDbDynamicBloom> &&
              StreamingFilter<AceroBloom> && StreamingFilter<ImpalaBloom>);

// Cases B1, B10: in pieces, by threads and one by one the bytes are the same; threads write to
// parts of the table that do not meet.
TYPED_TEST(BlockFilterTest, PiecesThreadsAndSingleKeysLeaveTheSameBytes) {
  for (const auto& [name, params] : test::UsualParams<TypeParam>(1)) {
    for (const size_t n : {0, 1, 63, 64, 65, 1000, 200000}) {
      SCOPED_TRACE(fmt::format("{} n={}", name, n));
      const std::vector<uint64_t> hashes = test::TestHashes(0, n);
      const auto built = TypeParam::Build(hashes, params);
      ASSERT_TRUE(built) << built.error();

      auto single = TypeParam::Create(n, params);
      ASSERT_TRUE(single) << single.error();
      for (const uint64_t hash : hashes) single->Insert(hash);
      EXPECT_TRUE(test::EqualBytes(single->Table(), built->Table()));

      for (const unsigned threads : {1u, 2u, 3u, 7u}) {
        auto pieces = TypeParam::Create(n, params);
        ASSERT_TRUE(pieces) << pieces.error();
        const std::span<const uint64_t> all = hashes;
        pieces->InsertAll(all.first(n / 3), threads);
        pieces->InsertAll(all.subspan(n / 3), threads);
        EXPECT_TRUE(test::EqualBytes(pieces->Table(), built->Table())) << threads << " threads";
      }
    }
  }
}

// Threads divide the blocks: the first and the last hash of every block are where one of them could
// be left out.
// Cases B1, B10: no key at a border between two threads is left out.
TYPED_TEST(OrderedBlocksTest, HashesAtTheEdgesOfBlocksAreInserted) {
  const auto filter = TypeParam::Create(500, {.bits_per_key = 10});
  ASSERT_TRUE(filter) << filter.error();
  const auto view = filter->view();
  std::vector<uint64_t> edges;
  uint64_t first = 0;
  for (uint64_t block = 0; block < view.blocks; ++block) {
    uint64_t last = first;
    for (uint64_t step = uint64_t{1} << 63; step != 0; step >>= 1) {
      if (last + step > last && view.BlockOf(last + step) == block) last += step;
    }
    edges.push_back(first);
    edges.push_back(last);
    first = last + 1;
  }
  ASSERT_EQ(first, 0u);  // the last block ends with the last hash
  for (const unsigned threads : {2u, 3u, 5u}) {
    auto in_parts = TypeParam::Create(500, {.bits_per_key = 10});
    ASSERT_TRUE(in_parts) << in_parts.error();
    in_parts->InsertAll(edges, threads);
    EXPECT_EQ(test::CountDenied(*in_parts, edges), 0u) << threads << " threads";
  }
}

// Case B1: vectorised inserts of every target.
TYPED_TEST(BlockFilterTest, EveryTargetInsertsTheSameBytes) {
  for (const auto& [name, params] : test::UsualParams<TypeParam>(1)) {
    // Tables within the cache and beyond it, since the loops differ.
    for (const size_t n : {size_t{1}, size_t{70}, test::KeysBeyondCache<TypeParam>(params)}) {
      SCOPED_TRACE(fmt::format("{} n={}", name, n));
      const std::vector<uint64_t> hashes = test::TestHashes(0, n);
      auto reference = TypeParam::Create(n, params);
      ASSERT_TRUE(reference) << reference.error();
      for (const uint64_t hash : hashes) reference->Insert(hash);
      for (const auto& kernel : TypeParam::Kernels()) {
        if (kernel.insert == nullptr) continue;
        const auto empty = TypeParam::Create(n, params);
        ASSERT_TRUE(empty) << empty.error();
        auto* table = const_cast<std::byte*>(empty->Table().data());
        kernel.insert(empty->view(), table, hashes.data(), hashes.size());
        EXPECT_TRUE(test::EqualBytes(empty->Table(), reference->Table())) << kernel.target;
      }
    }
  }
}

TYPED_TEST(BlockFilterTest, SingleKeyLoopsOfAllTargetsCountAsTheReference) {
  for (const auto& [name, params] : test::UsualParams<TypeParam>(1)) {
    const size_t n = 5000;
    const auto filter = TypeParam::Build(test::TestHashes(0, n), params);
    ASSERT_TRUE(filter) << filter.error();
    const std::vector<uint64_t> asked = test::MixedHashes(20000, n);
    uint64_t expected = 0;
    for (const uint64_t hash : asked) expected += filter->MayContain(hash) ? 1 : 0;
    for (const auto& kernel : TypeParam::Kernels()) {
      SCOPED_TRACE(fmt::format("{} {}", name, kernel.target));
      EXPECT_EQ(kernel.count_single(filter->view(), asked.data(), asked.size()), expected);
      EXPECT_EQ(kernel.chain(filter->view(), asked.data(), asked.size()), expected);
      EXPECT_EQ(kernel.count_reference(filter->view(), asked.data(), asked.size()), expected);
    }
  }
}

// Case A1: up to the largest table that is offered.
TYPED_TEST(OrderedBlocksTest, BlocksOfHugeTablesAreReachedEvenly) {
  // No table is allocated: only the arithmetic of its View is asked.
  using Scheme = typename TypeParam::Scheme;
  typename TypeParam::Params params;
  for (const uint64_t blocks : {uint64_t{3}, Scheme::kMaxBlocks / 3, Scheme::kMaxBlocks}) {
    const auto view = Scheme::MakeView(params, 4, nullptr, blocks, false);
    EXPECT_EQ(view.BlockOf(0), 0u);
    EXPECT_EQ(view.BlockOf(UINT64_MAX), blocks - 1);
    constexpr int kHashes = 1 << 20;
    constexpr int kBins = 64;
    std::vector<int> bins(kBins);
    uint64_t before = 0;
    for (uint64_t i = 0; i < kHashes; ++i) {
      const uint64_t block = view.BlockOf(test::TestHash(i));
      ASSERT_LT(block, blocks);
      ++bins[FastRange64(block * (UINT64_MAX / blocks), kBins)];
      const uint64_t next = view.BlockOf((UINT64_MAX / kHashes) * i);
      ASSERT_GE(next, before);
      before = next;
    }
    if (blocks < kBins) continue;
    // A bin is Binomial(kHashes, 1 / kBins): 7 standard deviations, a false alarm of 2e-10 in all.
    const double mean = static_cast<double>(kHashes) / kBins;
    for (const int bin : bins) EXPECT_NEAR(bin, mean, 7 * std::sqrt(mean));
  }
}

}  // namespace
}  // namespace filterbench
