#include "workloads/lsm/leveldb_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include "filters/bloom/blocked.h"
#include "filters/hash.h"
#include "filters/theory/agreement.h"
#include "workloads/testing.h"

namespace filterbench::lsm {
namespace {

using nlohmann::json;

// Keys of all lengths from 0 to 40 and some longer, half of them with bytes above 127.
std::vector<std::string> Keys(size_t n) {
  std::vector<std::string> keys(n);
  for (size_t i = 0; i < n; ++i) {
    const size_t length = i % 97 == 96 ? 1000 + i : i % 41;
    for (size_t j = 0; j < length; ++j) {
      keys[i].push_back(static_cast<char>(Mix64(i * 4096 + j + 1)));
    }
  }
  return keys;
}

std::vector<leveldb::Slice> Slices(const std::vector<std::string>& keys) {
  return {keys.begin(), keys.end()};
}

// Asks a policy that says maybe to everything it does not know of.
bool Asked(const CountingPolicy& policy, const std::string& key, const std::string& filter) {
  return policy.KeyMayMatch(key, filter);
}

TEST(LevelDbPolicyTest, LevelDbBloomIsTheBuiltInOneByteForByte) {
  const std::vector<std::string> keys = Keys(600);
  for (const uint32_t bits_per_key : {1, 10, 44}) {
    const std::unique_ptr<const leveldb::FilterPolicy> library(
        leveldb::NewBloomFilterPolicy(static_cast<int>(bits_per_key)));
    const CountingPolicy ours(LevelDbBloomFilters(bits_per_key));
    const CountingPolicy built_in(BuiltInFilters(bits_per_key));
    EXPECT_STREQ(ours.Name(), library->Name());
    EXPECT_STREQ(built_in.Name(), library->Name());
    for (const int n : {0, 1, 7, 36}) {
      // Filters are appended to those before, and those are left alone.
      std::string expected = "before";
      std::string bytes = expected;
      std::string built_in_bytes = expected;
      const std::vector<leveldb::Slice> slices = Slices(keys);
      library->CreateFilter(slices.data(), n, &expected);
      ours.CreateFilter(slices.data(), n, &bytes);
      built_in.CreateFilter(slices.data(), n, &built_in_bytes);
      ASSERT_EQ(bytes, expected) << n << " keys, " << bits_per_key << " bits";
      ASSERT_EQ(built_in_bytes, expected);
      const std::string filter = expected.substr(6);
      for (const std::string& key : keys) {
        ASSERT_EQ(Asked(ours, key, filter), library->KeyMayMatch(key, filter)) << n;
        ASSERT_EQ(Asked(built_in, key, filter), library->KeyMayMatch(key, filter)) << n;
      }
    }
  }
}

TEST(LevelDbPolicyTest, LevelDbBloomAnswersForeignBytesAsTheLibraryDoes) {
  const std::unique_ptr<const leveldb::FilterPolicy> library(leveldb::NewBloomFilterPolicy(10));
  const CountingPolicy ours(LevelDbBloomFilters(10));
  const std::vector<std::string> keys = Keys(50);
  for (uint64_t i = 0; i < 2000; ++i) {
    std::string bytes;
    // One byte that is 0 is what ours stores where a filter could not be built.
    for (uint64_t j = 0; j < 2 + i % 23; ++j) {
      bytes.push_back(static_cast<char>(Mix64(i * 64 + j + 1) | Mix64(i * 64 + j + 7777)));
    }
    bytes.back() = static_cast<char>(i % 40);  // number of probes
    for (const std::string& key : keys) {
      ASSERT_EQ(Asked(ours, key, bytes), library->KeyMayMatch(key, bytes)) << i;
    }
  }
  EXPECT_EQ(Asked(ours, "key", ""), library->KeyMayMatch("key", ""));
}

TEST(LevelDbPolicyTest, SerializedFiltersHaveTheirKeysAndTheRateOfTheory) {
  const PolicyOf<BlockedBloom> filters(json{{"bits_per_key", 10}});
  const CountingPolicy policy(SerializedFilters(filters, 11, 22));
  constexpr int kFilters = 400;
  constexpr int kKeys = 36;
  constexpr int kAbsent = 100;
  uint64_t positives = 0;
  FprEstimate expected;
  std::vector<std::string> stored;
  for (int f = 0; f < kFilters; ++f) {
    std::vector<std::string> keys;
    for (int i = 0; i < kKeys; ++i) keys.push_back(fmt::format("key {} {}", f, i));
    std::string bytes;
    policy.CreateFilter(Slices(keys).data(), kKeys, &bytes);
    const MadeFilter* made = policy.Find(bytes);
    ASSERT_NE(made, nullptr);
    EXPECT_EQ(made->keys, static_cast<uint64_t>(kKeys));
    EXPECT_EQ(made->stored_bytes, bytes.size());
    ASSERT_TRUE(made->expected);
    expected = *made->expected;
    for (const std::string& key : keys) ASSERT_TRUE(Asked(policy, key, bytes));
    for (int i = 0; i < kAbsent; ++i) {
      positives += Asked(policy, fmt::format("absent {} {}", f, i), bytes);
    }
    stored.push_back(bytes);
  }
  // Filters differ independently, so that their mean differs less.
  expected.instance_sd /= std::sqrt(double{kFilters});
  EXPECT_TRUE(theory::FprAgrees(positives, kFilters * kAbsent, expected, 1e-9))
      << positives << ", expected " << expected.mean * kFilters * kAbsent;
  EXPECT_EQ(policy.filters_made(), static_cast<uint64_t>(kFilters));
  EXPECT_EQ(policy.format().loads(), static_cast<uint64_t>(kFilters));  // each once
}

// LevelDB closes tables and uses their memory again: an answer must come from the bytes that are at
// the address now.
TEST(LevelDbPolicyTest, AFilterIsFoundByItsBytesNotByWhereTheyLie) {
  const PolicyOf<BlockedBloom> filters(json{{"bits_per_key", 16}});
  for (const uint64_t limit : {uint64_t{1}, uint64_t{1} << 20}) {
    const CountingPolicy policy(SerializedFilters(filters, 1, 2, limit));
    std::string first;
    std::string second;
    const std::vector<std::string> of_first = {"a", "b", "c"};
    const std::vector<std::string> of_second = {"x", "y", "z"};
    policy.CreateFilter(Slices(of_first).data(), 3, &first);
    policy.CreateFilter(Slices(of_second).data(), 3, &second);
    ASSERT_EQ(first.size(), second.size());
    std::string memory = first;
    for (int round = 0; round < 3; ++round) {
      memory.assign(first);
      for (const std::string& key : of_first) ASSERT_TRUE(Asked(policy, key, memory));
      memory.assign(second);
      for (const std::string& key : of_second) ASSERT_TRUE(Asked(policy, key, memory));
    }
    EXPECT_EQ(policy.format().loads(), limit == 1 ? 6u : 2u);
  }
}

TEST(LevelDbPolicyTest, DamagedBytesAnswerMaybeNeverNo) {
  const PolicyOf<BlockedBloom> filters(json{{"bits_per_key", 10}});
  CountingPolicy policy(SerializedFilters(filters, 1, 2));
  const std::vector<std::string> keys = Keys(35);
  std::string bytes;
  policy.CreateFilter(Slices(keys).data(), 35, &bytes);
  std::vector<FilterProbe> probes;
  policy.Trace(&probes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    EXPECT_TRUE(Asked(policy, "absent", damaged)) << "byte " << i;
    EXPECT_EQ(probes.back().answer, FilterAnswer::kUnusable);
  }
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_TRUE(Asked(policy, "absent", bytes.substr(0, n))) << n << " bytes";
  }
  EXPECT_TRUE(Asked(policy, "absent", bytes + "x"));
  // With another seed the same filter would deny its keys: LevelDB must not find it.
  EXPECT_STRNE(policy.Name(), CountingPolicy(SerializedFilters(filters, 3, 2)).Name());
}

// A policy that cannot build.
class NeverBuilt final : public FilterPolicy {
 public:
  std::string_view identity() const override { return "never_built"; }
  bool can_insert() const override { return false; }
  Result<std::unique_ptr<KeyFilter>> Build(std::span<const uint64_t>, uint64_t) const override {
    return Error{"too few keys"};
  }
  Result<std::unique_ptr<KeyFilter>> Create(uint64_t, uint64_t) const override {
    return Error{"takes no single keys"};
  }
  Result<std::unique_ptr<KeyFilter>> Load(std::span<const std::byte>) const override {
    return Error{"no filter"};
  }
};

TEST(LevelDbPolicyTest, AFilterThatCannotBeBuiltIsCountedAndAnswersMaybe) {
  const NeverBuilt filters;
  CountingPolicy policy(SerializedFilters(filters, 1, 2));
  const std::vector<std::string> keys = {"a", "b"};
  std::string bytes;
  policy.CreateFilter(Slices(keys).data(), 2, &bytes);
  EXPECT_EQ(policy.filters_not_built(), 1u);
  EXPECT_EQ(policy.filters_made(), 0u);
  EXPECT_EQ(policy.Find(bytes), nullptr);
  std::vector<FilterProbe> probes;
  policy.Trace(&probes);
  EXPECT_TRUE(Asked(policy, "a", bytes));
  EXPECT_EQ(probes.back().answer, FilterAnswer::kNotBuilt);
}

TEST(LevelDbPolicyTest, FilterBlocksAreTakenApartAndDamagedOnesRefused) {
  const auto u32 = [](uint32_t value) {
    return std::string{static_cast<char>(value), static_cast<char>(value >> 8),
                       static_cast<char>(value >> 16), static_cast<char>(value >> 24)};
  };
  const std::string block = "aaabbbbb" + u32(0) + u32(3) + u32(3) + u32(8) + '\x0b';
  // Three filters, the second empty; then the offset of the offsets.
  const auto filters = FiltersOfBlock(block);
  ASSERT_TRUE(filters);
  EXPECT_EQ(*filters, (std::vector<std::string_view>{"aaa", "bbbbb"}));
  EXPECT_FALSE(FiltersOfBlock(""));
  EXPECT_FALSE(FiltersOfBlock("1234"));
  EXPECT_FALSE(FiltersOfBlock("aaa" + u32(0) + u32(200) + '\x0b'));
  EXPECT_FALSE(FiltersOfBlock("aaa" + u32(9) + u32(3) + '\x0b'));
  EXPECT_FALSE(FiltersOfBlock("aaa" + u32(3) + u32(1) + u32(3) + '\x0b'));
}

}  // namespace
}  // namespace filterbench::lsm
