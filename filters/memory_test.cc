// What a filter asks of memory, for every filter of the catalogue: its size at numbers of keys that
// no memory holds; tables beyond 2^32 bits, 2^32 bytes and up to the filter's limit, of which only
// what is touched exists; tables at the edge of pages that may not be touched.
//
// Case A1: every dynamic filter writes all over tables beyond 2^32 bits and bytes, and all targets
// find it there; xor, binary fuse and ribbon, which need all keys at once, do so beside their code.
// Case A2: sizes do not decrease with the keys, up to 2^45 of them; what is too large is refused
// with what it needs and with the limit, both right.
// Case B6: tables as well as spans end and begin where nothing may be read.

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "filters/catalogue.h"
#include "filters/pages.h"
#include "filters/test_support.h"
#include "filters/test_tables.h"

namespace filterbench {
namespace {

using test::GuardedArray;
using test::MixedHashes;
using test::TestHashes;

// A filter whatever its type, so that tests are compiled once.
class AnyFilter {
 public:
  virtual ~AnyFilter() = default;
  virtual bool MayContain(uint64_t hash) const = 0;
  // The status of the insert, where the filter has one.
  virtual bool Insert(uint64_t hash) = 0;
  virtual std::span<const std::byte> Table() const = 0;
  virtual size_t kernels() const = 0;
  virtual std::string_view target(size_t kernel) const = 0;
  virtual void Bits(size_t kernel, std::span<const uint64_t> hashes, uint64_t* bits) const = 0;
  // By each of the loops that count; equal ones.
  virtual std::vector<uint64_t> Counts(size_t kernel, std::span<const uint64_t> hashes) const = 0;
  // Itself, written and read; how many bytes that were, where it is asked.
  virtual std::unique_ptr<AnyFilter> Copy(uint64_t* wire_bytes = nullptr) const = 0;
};

template <class F>
class FilterOf final : public AnyFilter {
 public:
  explicit FilterOf(F filter) : filter_(std::move(filter)) {}
  bool MayContain(uint64_t hash) const override { return filter_.MayContain(hash); }
  bool Insert(uint64_t hash) override {
    if constexpr (DynamicFilter<F>) {
      return filter_.Insert(hash) == InsertStatus::kOk;
    } else {
      return false;
    }
  }
  std::span<const std::byte> Table() const override { return filter_.Table(); }
  size_t kernels() const override { return F::Kernels().size(); }
  std::string_view target(size_t kernel) const override { return F::Kernels()[kernel].target; }
  void Bits(size_t kernel, std::span<const uint64_t> hashes, uint64_t* bits) const override {
    F::Kernels()[kernel].bits_batched(filter_.view(), hashes.data(), hashes.size(), bits);
  }
  std::vector<uint64_t> Counts(size_t kernel, std::span<const uint64_t> hashes) const override {
    const auto& loops = F::Kernels()[kernel];
    const auto view = filter_.view();
    return {loops.count_batched(view, hashes.data(), hashes.size()),
            loops.count_single(view, hashes.data(), hashes.size()),
            loops.chain(view, hashes.data(), hashes.size())};
  }
  std::unique_ptr<AnyFilter> Copy(uint64_t* wire_bytes) const override {
    const std::vector<std::byte> wire = filter_.Serialize();
    if (wire_bytes != nullptr) *wire_bytes = wire.size();
    Result<F> copy = F::Deserialize(wire);
    if (!copy) return nullptr;
    return std::make_unique<FilterOf>(std::move(*copy));
  }

 private:
  F filter_;
};

struct Made {
  std::unique_ptr<AnyFilter> filter;
  std::string error;
};

// One type with one set of parameters.
struct Variant {
  std::string name;
  bool usual = false;  // of UsualParams, not of CornerParams
  std::function<Made(std::span<const uint64_t>)> build;
  std::function<Made(uint64_t keys)> create;  // null where all keys are needed at once
};

struct Subject {
  std::string name;
  FilterInfo info;
  std::vector<Variant> (*variants)();  // the first has the defaults
};

template <class F>
Made MadeOf(Result<F> filter) {
  if (!filter) return {nullptr, filter.error()};
  return {std::make_unique<FilterOf<F>>(std::move(*filter)), ""};
}

template <class F>
std::vector<Variant> VariantsOf() {
  std::vector<Variant> variants;
  const auto add = [&](const test::ParamsCase<F>& params_case, bool usual) {
    const auto params = params_case.params;
    Variant variant{params_case.name, usual, nullptr, nullptr};
    variant.build = [params](std::span<const uint64_t> hashes) {
      return MadeOf(F::Build(hashes, params));
    };
    if constexpr (DynamicFilter<F>) {
      variant.create = [params](uint64_t keys) { return MadeOf(F::Create(keys, params)); };
    }
    // Values at the ends of knobs may exclude each other.
    if (usual || variant.build(TestHashes(0, 1000)).filter) variants.push_back(variant);
  };
  for (const auto& params_case : test::UsualParams<F>(7)) add(params_case, true);
  for (const auto& params_case : test::CornerParams<F>(7)) add(params_case, false);
  return variants;
}

const std::vector<Subject>& Subjects() {
  static const std::vector<Subject> subjects = [] {
    std::vector<Subject> all;
    Catalogue::ForEach([&]<class F>() {
      all.push_back({std::string(F::kInfo.name), F::kInfo, VariantsOf<F>});
    });
    return all;
  }();
  return subjects;
}

class SizesTest : public ::testing::TestWithParam<size_t> {
 protected:
  const Subject& subject() const { return Subjects()[GetParam()]; }
  // What lies elsewhere than in tables cannot be asked for its size.
  bool UsesTables() const {
    const ScopedPages count(std::nullopt);
    return subject().variants().front().build(TestHashes(0, 1000)).filter &&
           ScopedPages::tables() != 0;
  }
};
INSTANTIATE_TEST_SUITE_P(Filters, SizesTest, ::testing::Range(size_t{0}, Subjects().size()),
                         [](const auto& index) { return Subjects()[index.param].name; });

// The number that follows `word` in `text`.
std::optional<uint64_t> NumberAfter(const std::string& text, std::string_view word) {
  const size_t at = text.find(word);
  if (at == std::string::npos || std::isdigit(text[at + word.size()]) == 0) return std::nullopt;
  return std::strtoull(text.c_str() + at + word.size(), nullptr, 10);
}

// What a filter for so many keys asks for first: its table, or where it needs all keys at once what
// its build needs for them.
struct Need {
  uint64_t amount = 0;
  bool in_bytes = false;          // what `amount` and `limit` count
  std::optional<uint64_t> limit;  // where it is refused as too large; 0 if it is no number
  std::string error;
};

Need Ask(const Variant& variant, uint64_t keys) {
  const ScopedTestTables scope(TestTables::kRefused);
  const Made made = variant.create
                        ? variant.create(keys)
                        : variant.build({static_cast<const uint64_t*>(nullptr), keys});
  Need need;
  need.error = made.error;
  need.amount = NumberAfter(need.error, "needs ").value_or(0);
  need.in_bytes = need.error.find(" bytes") != std::string::npos;
  if (need.error.starts_with("too large: ")) {
    need.limit = NumberAfter(need.error, "limit ").value_or(0);
  }
  return need;
}

// A table is asked for in whole lines with one more as slack, a refusal is without.
constexpr uint64_t kSlackBytes = 2 * kCacheLineBytes;

TEST_P(SizesTest, DoNotDecreaseWithTheKeysUntilTheyAreRefused) {
  if (!UsesTables()) GTEST_SKIP() << "its memory is not in tables";
  std::set<uint64_t> numbers;
  for (int log2 = 0; log2 <= 45; ++log2) {
    const uint64_t n = uint64_t{1} << log2;
    numbers.insert({n, n + 1, n + n / 2, 2 * n - 1});
  }
  for (const Variant& variant : subject().variants()) {
    Need last;
    for (const uint64_t n : numbers) {
      SCOPED_TRACE(fmt::format("{} n={}", variant.name, n));
      const Need need = Ask(variant, n);
      ASSERT_NE(need.amount, 0u) << need.error;
      ASSERT_FALSE(last.limit && !need.limit) << "fewer are refused: " << last.error;
      if (need.limit) {
        ASSERT_GT(need.amount, *need.limit) << need.error;
      }
      const bool same_kind = last.limit.has_value() == need.limit.has_value();
      if (need.in_bytes == last.in_bytes && (same_kind || variant.create)) {
        ASSERT_GE(need.amount + (same_kind ? 0 : kSlackBytes), last.amount) << need.error;
      }
      last = need;
    }
    // A table that holds whatever comes in so many bits is of one size.
    if (variant.usual && !subject().info.is_baseline && last.amount != Ask(variant, 1).amount) {
      EXPECT_TRUE(last.limit) << variant.name;
    }
  }
}

// The refusal of the first number of keys that is not accepted.
TEST_P(SizesTest, WhatIsRefusedNeedsMoreThanTheLimit) {
  if (!UsesTables()) GTEST_SKIP() << "its memory is not in tables";
  for (const Variant& variant : subject().variants()) {
    uint64_t accepted = 1;
    uint64_t refused = uint64_t{1} << 60;
    if (!Ask(variant, refused).limit) continue;
    ASSERT_FALSE(Ask(variant, accepted).limit) << variant.name;
    while (refused - accepted > 1) {
      const uint64_t middle = accepted + (refused - accepted) / 2;
      (Ask(variant, middle).limit ? refused : accepted) = middle;
    }
    const Need last = Ask(variant, accepted);
    const Need first = Ask(variant, refused);
    SCOPED_TRACE(fmt::format("{} n={} {}", variant.name, refused, first.error));
    EXPECT_GT(first.amount, *first.limit);
    // What grows is asked for its first layer, and no table is made of the layer that is too much.
    if (*first.limit == 0 || !variant.create || subject().info.grows) continue;
    EXPECT_TRUE(first.in_bytes);
    EXPECT_LE(last.amount, *first.limit + kSlackBytes);
    // One key more needs the next size, which is twice as much where tables are powers of two, times
    // the size of a bucket.
    if (first.amount % (uint64_t{1} << 24) != 0) {
      EXPECT_LE(first.amount, last.amount + last.amount / 100);
    }
    EXPECT_LE(first.amount, 2 * last.amount);
  }
}

// Which of `parts` equal parts of a table have a byte that is not zero. Looks at the pages that are
// in memory and leaves the others so.
std::vector<bool> WrittenParts(std::span<const std::byte> table, size_t parts) {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t pages = (table.size() + page_bytes - 1) / page_bytes;
  std::vector<unsigned char> in_memory(pages);
  // The call reads nothing but takes no pointer to const.
  EXPECT_EQ(mincore(const_cast<std::byte*>(table.data()), table.size(), in_memory.data()), 0);
  std::vector<bool> written(parts);
  for (size_t page = 0; page < pages; ++page) {
    if ((in_memory[page] & 1) == 0) continue;
    const size_t end = std::min(table.size(), (page + 1) * page_bytes);
    for (size_t i = page * page_bytes; i < end; ++i) {
      if (table[i] == std::byte{0}) continue;
      written[static_cast<size_t>(static_cast<unsigned __int128>(i) * parts / table.size())] = true;
    }
  }
  return written;
}

void ExpectTargetsAgree(const AnyFilter& filter, std::span<const uint64_t> hashes,
                        std::span<const uint64_t> present) {
  std::vector<uint64_t> expected((hashes.size() + 63) / 64);
  for (size_t i = 0; i < hashes.size(); ++i) {
    expected[i / 64] |= uint64_t{filter.MayContain(hashes[i])} << (i % 64);
  }
  for (size_t kernel = 0; kernel < filter.kernels(); ++kernel) {
    SCOPED_TRACE(filter.target(kernel));
    std::vector<uint64_t> bits(expected.size());
    filter.Bits(kernel, hashes, bits.data());
    EXPECT_EQ(bits, expected);
    for (const uint64_t count : filter.Counts(kernel, present)) EXPECT_EQ(count, present.size());
  }
}

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// As one and a half times 2^32 bits, as many bytes, and all that a filter goes up to.
class SparseTablesTest : public SizesTest {
 protected:
  static constexpr size_t kKeys = 1000;
  static constexpr size_t kParts = 64;

  void Check(uint64_t max_bytes) {
    const Variant variant = subject().variants().front();
    if (!variant.create) GTEST_SKIP() << "needs all keys at once";
    if (!UsesTables()) GTEST_SKIP() << "its memory is not in tables";
    // The most keys whose table is no larger.
    uint64_t keys = 0;
    for (uint64_t step = uint64_t{1} << 45; step != 0; step /= 2) {
      const Need need = Ask(variant, keys + step);
      if (!need.limit && need.amount <= max_bytes) keys += step;
    }
    const Need next = Ask(variant, keys + 1);
    if (next.limit && max_bytes != UINT64_MAX && Ask(variant, keys).amount < max_bytes / 3) {
      GTEST_SKIP() << next.error;
    }
    SCOPED_TRACE(fmt::format("made for {} keys", keys));
    const ScopedTestTables scope(TestTables::kSparse);
    const Made made = variant.create(keys);
    if (made.error.starts_with("out of memory")) {
      GTEST_SKIP() << "no address space: " << made.error;
    }
    ASSERT_TRUE(made.filter) << made.error;
    const std::vector<uint64_t> present = TestHashes(0, kKeys);
    for (const uint64_t hash : present) ASSERT_TRUE(made.filter->Insert(hash));
    ExpectWrittenEverywhere(made.filter->Table());
    ExpectTargetsAgree(*made.filter, MixedHashes(2 * kKeys, kKeys), present);
  }

  // All keys miss a 64th of the table with a chance of (63/64)^1000 = 1.4e-7, nine of them never.
  // An eighth of a table may be for what does not fit elsewhere. A filter with a hash of 32 bits
  // reaches 2^32 bits, and says so.
  void ExpectWrittenEverywhere(std::span<const std::byte> table) const {
    size_t reached = kParts;
    if (subject().info.hash_bits <= 32) {
      const double share = 0x1p29 / static_cast<double>(table.size());
      reached = static_cast<size_t>(kParts * std::min(1.0, share));
    }
    const std::vector<bool> written = WrittenParts(table, kParts);
    EXPECT_GE(std::count(written.begin(), written.begin() + reached, true), reached - reached / 8);
  }
};
INSTANTIATE_TEST_SUITE_P(Filters, SparseTablesTest, ::testing::Range(size_t{0}, Subjects().size()),
                         [](const auto& index) { return Subjects()[index.param].name; });

TEST_P(SparseTablesTest, Beyond2To32BitsAreUsedEverywhere) { Check(768 * kMiB); }

TEST_P(SparseTablesTest, Beyond4GiBAreUsedEverywhere) { Check(6 * kGiB); }

TEST_P(SparseTablesTest, UpToTheLimitAreUsedEverywhere) { Check(UINT64_MAX); }

// What this process may still take, by /proc/meminfo and its limits.
uint64_t AvailableBytes() {
  uint64_t available = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) {
      available = std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) * 1024;
    }
  }
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      available = std::min<uint64_t>(available, limit.rlim_cur);
    }
  }
  return available;
}

// Tables of which every byte exists: written to a wire of that size, read from it, and asked.
class WholeTablesTest : public SizesTest {
 protected:
  void Check(uint64_t bytes) {
    constexpr size_t kKeys = 1000;
    if (std::getenv("FILTERBENCH_LARGE_TABLES") == nullptr) {
      GTEST_SKIP() << "takes long; FILTERBENCH_LARGE_TABLES=1 asks for it";
    }
    const Variant variant = subject().variants().front();
    if (!variant.create || !UsesTables()) GTEST_SKIP() << "takes no keys later, or has no table";
    // The wire, what it is read into, and the table if its pages are no small ones.
    const uint64_t needed = 3 * bytes + kGiB;
    if (AvailableBytes() < needed) {
      GTEST_SKIP() << "needs " << needed << " bytes of memory, has " << AvailableBytes();
    }
    uint64_t keys = 0;
    for (uint64_t step = uint64_t{1} << 40; step != 0; step /= 2) {
      const Need need = Ask(variant, keys + step);
      if (!need.limit && need.amount < bytes) keys += step;
    }
    const Need more = Ask(variant, keys + 1);
    if (more.limit) GTEST_SKIP() << more.error;
    const Made made = variant.create(keys + 1);
    ASSERT_TRUE(made.filter) << made.error;
    ASSERT_GE(made.filter->Table().size() + kSlackBytes, bytes);
    const std::vector<uint64_t> present = TestHashes(0, kKeys);
    for (const uint64_t hash : present) ASSERT_TRUE(made.filter->Insert(hash));
    uint64_t wire_bytes = 0;
    const std::unique_ptr<AnyFilter> copy = made.filter->Copy(&wire_bytes);
    ASSERT_TRUE(copy);
    EXPECT_GE(wire_bytes, made.filter->Table().size());
    EXPECT_LE(wire_bytes, made.filter->Table().size() + 1024);
    EXPECT_TRUE(test::EqualBytes(copy->Table(), made.filter->Table()));
    ExpectTargetsAgree(*copy, MixedHashes(2 * kKeys, kKeys), present);
  }
};
INSTANTIATE_TEST_SUITE_P(Filters, WholeTablesTest, ::testing::Range(size_t{0}, Subjects().size()),
                         [](const auto& index) { return Subjects()[index.param].name; });

TEST_P(WholeTablesTest, Beyond2To32BitsAreWrittenAndRead) { Check(513 * kMiB); }

TEST_P(WholeTablesTest, Beyond4GiBAreWrittenAndRead) { Check(4 * kGiB + 5 * kMiB); }

// Built, asked, added to, written and read back with every table between guards, at its beginning
// and at its end; keys that begin behind one guard and end before another. Whoever reads or writes
// outside crashes here.
class GuardedTablesTest : public SizesTest {
 protected:
  void Check(TestTables tables) {
    constexpr size_t kMaxSpan = 2 * 64 + 5;
    for (const Variant& variant : subject().variants()) {
      for (const size_t n : {0, 1, 50, 2000}) {
        SCOPED_TRACE(fmt::format("{} n={}", variant.name, n));
        const ScopedTestTables scope(tables);
        GuardedArray<uint64_t> keys(n);
        const std::vector<uint64_t> present = TestHashes(0, n);
        std::copy(present.begin(), present.end(), keys.data());
        const Made made = variant.build({keys.data(), n});
        // Corners may refuse few keys.
        if (!made.filter) {
          EXPECT_FALSE(variant.usual) << made.error;
          continue;
        }
        for (const uint64_t hash : TestHashes(n, 20)) made.filter->Insert(hash);
        const std::unique_ptr<AnyFilter> copy = made.filter->Copy();
        ASSERT_TRUE(copy);
        const size_t page_words = static_cast<size_t>(sysconf(_SC_PAGESIZE)) / sizeof(uint64_t);
        GuardedArray<uint64_t> page(page_words);
        const std::vector<uint64_t> mixed = MixedHashes(page_words, n);
        std::copy(mixed.begin(), mixed.end(), page.data());
        for (size_t kernel = 0; kernel < made.filter->kernels(); ++kernel) {
          SCOPED_TRACE(made.filter->target(kernel));
          for (size_t length = 1; length <= kMaxSpan; length += length < 20 ? 1 : 19) {
            ExpectAnswers(*made.filter, *copy, kernel, {page.data(), length});
            ExpectAnswers(*made.filter, *copy, kernel, {page.end() - length, length});
          }
        }
      }
    }
  }

 private:
  static void ExpectAnswers(const AnyFilter& filter, const AnyFilter& copy, size_t kernel,
                            std::span<const uint64_t> hashes) {
    uint64_t expected = 0;
    for (const uint64_t hash : hashes) expected += copy.MayContain(hash) ? 1 : 0;
    for (const uint64_t count : filter.Counts(kernel, hashes)) EXPECT_EQ(count, expected);
    for (const uint64_t count : copy.Counts(kernel, hashes)) EXPECT_EQ(count, expected);
  }
};
INSTANTIATE_TEST_SUITE_P(Filters, GuardedTablesTest, ::testing::Range(size_t{0}, Subjects().size()),
                         [](const auto& index) { return Subjects()[index.param].name; });

TEST_P(GuardedTablesTest, NothingIsTouchedBeforeATable) { Check(TestTables::kGuardBefore); }

TEST_P(GuardedTablesTest, NothingIsTouchedBehindATablesSlack) { Check(TestTables::kGuardBehind); }

// Case B10: threads ask one filter at once, the first of them making the list of kernels; no lookup
// writes, and ThreadSanitizer sees what two of them touch.
TEST_P(SizesTest, ThreadsAskOneFilter) {
  constexpr size_t kKeys = 5000;
  const std::vector<uint64_t> hashes = MixedHashes(3000, kKeys);
  for (const Variant& variant : subject().variants()) {
    if (!variant.usual) continue;
    SCOPED_TRACE(variant.name);
    const Made made = variant.build(TestHashes(0, kKeys));
    ASSERT_TRUE(made.filter) << made.error;
    uint64_t expected = 0;
    for (const uint64_t hash : hashes) expected += made.filter->MayContain(hash) ? 1 : 0;
    constexpr size_t kThreads = 4;
    std::vector<std::set<uint64_t>> answers(kThreads);
    {
      std::vector<std::jthread> threads;
      for (size_t t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          std::vector<uint64_t> bits((hashes.size() + 63) / 64);
          for (size_t kernel = 0; kernel < made.filter->kernels(); ++kernel) {
            made.filter->Bits(kernel, hashes, bits.data());
            uint64_t yes = 0;
            for (const uint64_t word : bits) yes += std::popcount(word);
            answers[t].insert(yes);
            for (const uint64_t count : made.filter->Counts(kernel, hashes)) {
              answers[t].insert(count);
            }
          }
        });
      }
    }
    for (const auto& of_thread : answers) EXPECT_EQ(of_thread, std::set<uint64_t>{expected});
  }
}

}  // namespace
}  // namespace filterbench
