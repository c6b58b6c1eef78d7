// What the filters over one array of bits have in common: how they are built and stored.

#include "filters/bloom/bit_array.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "filters/bloom/classic.h"
#include "filters/bloom/kirsch_mitzenmacher.h"
#include "filters/simd/targets.h"
#include "filters/test_support.h"
#include "filters/test_wire.h"

namespace filterbench {
namespace {

static_assert(StreamingFilter<ClassicBloom> && StreamingFilter<KmBloom>);

template <class F>
class BitArrayTest : public ::testing::Test {};
using BitArrayFilters = ::testing::Types<ClassicBloom, KmBloom>;
TYPED_TEST_SUITE(BitArrayTest, BitArrayFilters, test::FilterNames);

// Around the batches of a build; the last lies beyond most second-level caches, so that it is built
// with prefetching and by as many threads as are asked for.
template <class F>
std::vector<std::pair<uint64_t, typename F::Params>> Shapes() {
  std::vector<std::pair<uint64_t, typename F::Params>> shapes;
  for (const auto& [name, usual] : test::UsualParams<F>(1)) {
    for (const uint64_t n : {0, 1, 15, 16, 17, 31, 32, 33, 51, 1000}) shapes.push_back({n, usual});
    typename F::Params large = usual;
    large.bits_per_key = 120;
    large.k = 3;
    shapes.push_back({300'000, large});
  }
  return shapes;
}

// Cases B1, B10: around every batch, by every target and number of threads.
TYPED_TEST(BitArrayTest, PiecesThreadsTargetsAndSingleKeysLeaveTheSameBytes) {
  for (const auto& [n, params] : Shapes<TypeParam>()) {
    SCOPED_TRACE(fmt::format("n={} bits_per_key={}", n, params.bits_per_key));
    const std::vector<uint64_t> hashes = test::TestHashes(0, n);
    auto single = TypeParam::Create(n, params);
    ASSERT_TRUE(single) << single.error();
    for (const uint64_t hash : hashes) ASSERT_EQ(single->Insert(hash), InsertStatus::kOk);
    const std::vector<std::byte> expected = single->Serialize();
    EXPECT_EQ(CountContained(*single, hashes), n);

    ForEachSupportedTarget([&, n = n, &params = params] {
      const auto built = TypeParam::Build(hashes, params);
      ASSERT_TRUE(built) << built.error();
      EXPECT_EQ(built->Serialize(), expected);
      for (const unsigned threads : {1u, 2u, 3u, 7u}) {
        auto pieces = TypeParam::Create(n, params);
        ASSERT_TRUE(pieces) << pieces.error();
        const std::span<const uint64_t> all = hashes;
        pieces->InsertAll(all.first(n / 3), threads);
        pieces->InsertAll(all.subspan(n / 3), threads);
        EXPECT_EQ(pieces->Serialize(), expected) << threads << " threads";
      }
    });
  }
}

// Cases B1, B10: parts of threads meet at no line, in tables of up to 2^40 bits.
TEST(BitArrayPartsTest, PartsAreWholeLinesAndCoverTheTableOnce) {
  for (const uint64_t bits : {uint64_t{1}, uint64_t{511}, uint64_t{513}, uint64_t{100'000},
                              kMaxBloomBits - 1}) {
    for (const unsigned threads : {1u, 2u, 5u, 64u}) {
      std::mutex mutex;
      std::vector<BitRange> parts;
      InsertInParts(bits, threads, [&](BitRange part) {
        const std::lock_guard lock(mutex);
        parts.push_back(part);
      });
      std::ranges::sort(parts, {}, &BitRange::first);
      uint64_t end = 0;
      for (const BitRange part : parts) {
        EXPECT_EQ(part.first, end);
        EXPECT_EQ(part.first % 512, 0u);
        end += part.size;
      }
      EXPECT_GE(end, bits);
    }
  }
}

// Case B10: keys at the borders between threads.
TEST(BitArrayPartsTest, KeysAtTheEdgesOfPartsAreNotLost) {
  // Random keys rarely meet an edge: these start right at one or just before it.
  constexpr uint64_t kKeys = 300'000;
  const KmBloom::Params params{.bits_per_key = 120, .k = 1};
  const uint64_t bits = BloomBitsFor(kKeys, params.bits_per_key);
  for (const unsigned threads : {2u, 3u, 7u}) {
    std::mutex mutex;
    std::vector<uint64_t> hashes;
    InsertInParts(bits, threads, [&](BitRange part) {
      const std::lock_guard lock(mutex);
      for (const uint64_t position :
           {part.first, std::min(part.first + part.size, bits) - 1}) {
        const auto hash = static_cast<uint64_t>(
            ((static_cast<unsigned __int128>(position) << 64) + bits - 1) / bits);
        ASSERT_EQ(KmBloom::Start(hash, bits), position);
        hashes.push_back(hash);
      }
    });
    auto filter = KmBloom::Create(kKeys, params);
    ASSERT_TRUE(filter) << filter.error();
    filter->InsertAll(hashes, threads);
    for (const uint64_t hash : hashes) EXPECT_TRUE(filter->MayContain(hash)) << threads;
  }
}

TYPED_TEST(BitArrayTest, EmptyFilterDeniesEverything) {
  const auto filter = TypeParam::Build({}, {});
  ASSERT_TRUE(filter) << filter.error();
  EXPECT_EQ(CountContained(*filter, test::TestHashes(0, 100'000)), 0u);
  EXPECT_FALSE(filter->MayContain(0));
  EXPECT_EQ(filter->ExpectedFpr()->mean, 0);
}

// Case E2: set bits that no key can have set.
TYPED_TEST(BitArrayTest, BitsBeyondTheTableAreRefused) {
  const auto filter = TypeParam::Build(test::TestHashes(0, 7), {.bits_per_key = 10});  // 70 bits
  ASSERT_TRUE(filter) << filter.error();
  std::vector<std::byte> wire = filter->Serialize();
  wire.back() |= std::byte{0x80};
  test::FixChecksum(wire);
  const auto read = TypeParam::Deserialize(wire);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().find("table: has bits set beyond bit 69"), std::string::npos)
      << read.error();
}

}  // namespace
}  // namespace filterbench
