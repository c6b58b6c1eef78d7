#ifndef FILTERBENCH_FILTERS_CONFORMANCE_CASES_H_
#define FILTERBENCH_FILTERS_CONFORMANCE_CASES_H_

// Faults that others met (docs/cases.md), as far as they can concern every filter and are not met
// by the tests of the contract.

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "filters/conformance/tested.h"
#include "filters/conformance/wire.h"
#include "filters/filter.h"
#include "filters/test_support.h"

namespace filterbench {
namespace {

// Sanitizers reserve terabytes of addresses and keep memory that was freed: neither a limit nor a
// peak says anything about the filter then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || \
    __has_feature(thread_sanitizer)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif
#else
constexpr bool kMemoryIsOurs = true;
#endif

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Of /proc/self/status, in bytes; 0 where it is not told.
inline uint64_t ProcStatusBytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

// `work` in a process of its own; what is wrong, as it says so, or how it ended.
template <class Work>
std::string InAChild(const Work& work) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::string wrong;
    try {
      wrong = work();
    } catch (const std::exception& e) {
      wrong = std::string("an exception: ") + e.what();
    }
    const ssize_t written = write(ends[1], wrong.data(), std::min<size_t>(wrong.size(), 4000));
    _exit(written < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string wrong;
  char buffer[512];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) wrong.append(buffer, n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) wrong += fmt::format(" (ended with status {:#x})", status);
  return wrong;
}

// No more addresses than now and `bytes` more.
inline void LimitAddressesTo(uint64_t bytes) {
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  // Free memory of the heap, that the words of an error have room.
  void* spare = std::malloc(size_t{64} << 10);
  limit.rlim_cur = std::min<rlim_t>(ProcStatusBytes("VmSize") + bytes, limit.rlim_max);
  setrlimit(RLIMIT_AS, &limit);
  std::free(spare);
}

template <class F>
class CasesTest : public ::testing::Test {};
TYPED_TEST_SUITE(CasesTest, test::TestedFilters, test::FilterNames);

// Cases A2, A10: bytes never fall as keys are added, at powers of two and beside them, rates are in
// [0, 1].
TYPED_TEST(CasesTest, SizesNeverFallAsKeysAreAdded) {
  for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
    uint64_t last = 0;
    for (const uint64_t n : {0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 100, 1023, 1024, 1025, 1100, 1900,
                             4095, 4096, 4097, 7000, 16383, 16384, 16385, 18000}) {
      SCOPED_TRACE(fmt::format("{} n={}", name, n));
      const Result<TypeParam> filter = TypeParam::Build(TestHashes(0, n), params);
      ASSERT_TRUE(filter) << filter.error();
      EXPECT_GE(filter->SizeInBytes(), last);
      last = filter->SizeInBytes();
      if (const auto fpr = filter->ExpectedFpr()) {
        EXPECT_GE(fpr->mean, 0);
        EXPECT_LE(fpr->mean, 1);
      }
    }
  }
}

// Case B1: keys one by one, in pieces and by threads leave the bytes of a build, around the borders
// of every batch; filters that are not filled in pieces hold the same keys both ways.
TYPED_TEST(CasesTest, SingleInsertsPiecesAndBuildsLeaveTheSame) {
  if constexpr (DynamicFilter<TypeParam>) {
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      for (const size_t n : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 51, 63, 64, 65, 127, 128,
                             129, 199, 255, 256, 257, 511, 512, 513, 775, 1023, 1025, 3079}) {
        SCOPED_TRACE(fmt::format("{} n={}", name, n));
        const std::vector<uint64_t> hashes = TestHashes(0, n);
        const std::span<const uint64_t> all(hashes);
        const Result<TypeParam> built = TypeParam::Build(hashes, params);
        ASSERT_TRUE(built) << built.error();
        Result<TypeParam> single = TypeParam::Create(n, params);
        ASSERT_TRUE(single) << single.error();
        std::vector<uint64_t> accepted;
        for (const uint64_t hash : hashes) {
          if (single->Insert(hash) == InsertStatus::kOk) accepted.push_back(hash);
        }
        EXPECT_EQ(test::CountDenied(*single, accepted), 0u);
        if constexpr (StreamingFilter<TypeParam>) {
          EXPECT_EQ(accepted.size(), n);
          EXPECT_EQ(single->Serialize(), built->Serialize());
          for (const unsigned threads : {1u, 2u, 3u}) {
            Result<TypeParam> pieces = TypeParam::Create(n, params);
            ASSERT_TRUE(pieces) << pieces.error();
            pieces->InsertAll(all.first(n / 3), threads);
            pieces->InsertAll(all.subspan(n / 3), threads);
            EXPECT_EQ(pieces->Serialize(), built->Serialize()) << threads << " threads";
          }
        }
      }
    }
  } else {
    GTEST_SKIP() << "has no Insert";
  }
}

// Case B4: a key that is there already changes no byte, where copies are not counted.
TYPED_TEST(CasesTest, InsertingTwiceChangesNothing) {
  if constexpr (DynamicFilter<TypeParam> && !ErasableFilter<TypeParam>) {
    const Details details = TypeParam::Create(1, {})->GetDetails();
    if (std::ranges::any_of(details, [](const Detail& d) { return d.name == "stored"; })) {
      GTEST_SKIP() << "stores and counts copies";
    }
    for (const auto& [name, params] : UsualParams<TypeParam>(7)) {
      for (const size_t n : {1, 2, 15, 1000}) {
        SCOPED_TRACE(fmt::format("{} n={}", name, n));
        const std::vector<uint64_t> hashes = TestHashes(0, n);
        Result<TypeParam> filter = TypeParam::Create(n, params);
        ASSERT_TRUE(filter) << filter.error();
        for (const uint64_t hash : hashes) {
          ASSERT_EQ(filter->Insert(hash), InsertStatus::kOk);
          const std::vector<std::byte> before(filter->Table().begin(), filter->Table().end());
          ASSERT_EQ(filter->Insert(hash), InsertStatus::kOk);
          ASSERT_TRUE(test::EqualBytes(filter->Table(), before));
        }
        EXPECT_EQ(test::CountDenied(*filter, hashes), 0u);
      }
    }
  } else {
    GTEST_SKIP() << "has no Insert, or counts copies so that they can be erased";
  }
}

// Case B8: a filter behind a char, in a vector that grows, swapped, and read from a buffer at every
// offset in a cache line answers as before, on every target.
TYPED_TEST(CasesTest, LivesAnywhere) {
  struct Packed {
    char before;
    std::optional<TypeParam> filter;
  };
  const std::vector<uint64_t> hashes = test::MixedHashes(700, 300);
  const auto built = [](uint64_t seed, size_t n) {
    typename TypeParam::Params params;
    params.seed = seed;
    return *TypeParam::Build(TestHashes(0, n), params);
  };
  const auto answers = [&](const TypeParam& filter) {
    std::vector<uint64_t> bits((hashes.size() + 63) / 64);
    std::optional<std::vector<uint64_t>> first;
    for (const auto& kernel : TypeParam::Kernels()) {
      kernel.bits_batched(filter.view(), hashes.data(), hashes.size(), bits.data());
      if (!first) first = bits;
      EXPECT_EQ(bits, *first) << kernel.target;
    }
    return *first;
  };
  const std::vector<uint64_t> of_first = answers(built(1, 300));
  const std::vector<uint64_t> of_second = answers(built(2, 200));

  Packed packed[3] = {{'a', built(1, 300)}, {'b', built(2, 200)}, {'c', std::nullopt}};
  EXPECT_EQ(answers(*packed[0].filter), of_first);
  std::swap(*packed[0].filter, *packed[1].filter);
  EXPECT_EQ(answers(*packed[0].filter), of_second);
  EXPECT_EQ(answers(*packed[1].filter), of_first);
  std::vector<TypeParam> many;
  for (int i = 0; i < 9; ++i) {
    many.push_back(built(1 + i % 2, i % 2 == 0 ? 300 : 200));
    EXPECT_EQ(answers(many.front()), of_first);
  }
  EXPECT_EQ(answers(many[7]), of_second);

  const Wire wire = built(1, 300).Serialize();
  std::vector<std::byte> buffer(wire.size() + 64);
  for (size_t offset = 0; offset < 64; ++offset) {
    std::copy(wire.begin(), wire.end(), buffer.begin() + static_cast<std::ptrdiff_t>(offset));
    const auto read = TypeParam::Deserialize(std::span(buffer).subspan(offset, wire.size()));
    ASSERT_TRUE(read) << offset << ": " << read.error();
    ASSERT_EQ(answers(*read), of_first) << offset;
  }
}

// Case C9: with too few addresses left a build is refused in words that say so, or succeeds; it
// does not throw, and no key is lost.
TYPED_TEST(CasesTest, OutOfMemoryIsAnError) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "a sanitizer has the memory";
  // Half of them twice: what is set aside to tell repetitions from collisions needs memory too.
  std::vector<uint64_t> hashes = TestHashes(0, size_t{1} << 15);
  hashes.insert(hashes.end(), hashes.begin(), hashes.begin() + (1 << 14));
  // What is made once, such as the list of kernels, is there before.
  ASSERT_TRUE(TypeParam::Build(TestHashes(0, 100), {}));
  for (const uint64_t kib : {0, 16, 48, 100, 200, 300, 400, 600, 1000, 2000}) {
    SCOPED_TRACE(fmt::format("{} KiB", kib));
    EXPECT_EQ(InAChild([&]() -> std::string {
                malloc_trim(0);
                LimitAddressesTo(kib * 1024);
                const Result<TypeParam> filter = TypeParam::Build(hashes, {.seed = 7});
                if (!filter) {
                  return filter.error().find("memory") == std::string::npos ? filter.error() : "";
                }
                if (TypeParam::kInfo.is_baseline) return "";
                return test::CountDenied(*filter, hashes) == 0 ? "" : "keys are lost";
              }),
              "");
  }
}

// Case C9: a build holds no more than the peak that it reports. What it may hold besides is the
// rounding of its tables to huge pages, of which a build has four at most.
TYPED_TEST(CasesTest, ReportsThePeakOfItsMemory) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "a sanitizer has the memory";
  constexpr size_t kKeys = size_t{1} << 20;
  const std::string told = InAChild([&]() -> std::string {
    const std::vector<uint64_t> hashes = TestHashes(0, kKeys);
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew (proc(5))
    const uint64_t before = ProcStatusBytes("VmRSS");
    if (before == 0 || ProcStatusBytes("VmHWM") > before + kMiB) return "skip";
    const Result<TypeParam> filter = TypeParam::Build(hashes, {.seed = 7});
    if (!filter) return filter.error();
    const uint64_t peak = ProcStatusBytes("VmHWM") - before;
    const uint64_t reported = filter->report().peak_bytes;
    return peak <= reported + 6 * kMiB
               ? ""
               : fmt::format("held {} bytes and reported {}", peak, reported);
  });
  if (told == "skip") GTEST_SKIP() << "this kernel does not reset peaks";
  EXPECT_EQ(told, "");
}

// Case E1: every small number of keys comes back byte for byte, with the same answers.
TYPED_TEST(CasesTest, EverySmallSizeComesBack) {
  const std::vector<uint64_t> hashes = test::MixedHashes(500, 200);
  for (size_t n = 0; n <= 200; ++n) {
    const Result<TypeParam> filter = TypeParam::Build(TestHashes(0, n), {.seed = n});
    ASSERT_TRUE(filter) << n << ": " << filter.error();
    const Wire wire = filter->Serialize();
    // Nothing behind it may be read.
    test::GuardedArray<std::byte> guarded(wire.size());
    std::copy(wire.begin(), wire.end(), guarded.data());
    const Result<TypeParam> read =
        TypeParam::Deserialize(std::span<const std::byte>(guarded.data(), guarded.size()));
    ASSERT_TRUE(read) << n << ": " << read.error();
    ASSERT_EQ(read->Serialize(), wire) << n;
    for (const uint64_t hash : hashes) {
      ASSERT_EQ(read->MayContain(hash), filter->MayContain(hash)) << n;
    }
  }
}

// Case E2: whatever a field of the wire says under a right checksum, nothing is allocated for it
// before it was checked against the length of the input: not even with 16 MiB of addresses left is
// memory what lacks.
TYPED_TEST(CasesTest, HostileFieldsAllocateNothing) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "a sanitizer has the memory";
  const Result<TypeParam> filter = TypeParam::Build(TestHashes(0, 997), {.seed = 7});
  ASSERT_TRUE(filter) << filter.error();
  const Wire wire = filter->Serialize();
  EXPECT_EQ(InAChild([&]() -> std::string {
              malloc_trim(0);
              LimitAddressesTo(16 * kMiB);
              const auto wrong = [](const Wire& hostile) {
                const Result<TypeParam> read = TypeParam::Deserialize(hostile);
                return !read && read.error().find("memory") != std::string::npos;
              };
              for (size_t at = 0; at < kHeaderBytes; ++at) {
                for (const int flip : {0x01, 0x10, 0x80, 0xff}) {
                  Wire hostile = wire;
                  hostile[at] ^= static_cast<std::byte>(flip);
                  if (wrong(hostile)) return fmt::format("header byte {}", at);
                }
              }
              const size_t fields_end = std::min<size_t>(wire.size(), kHeaderBytes + 256);
              for (size_t at = kHeaderBytes; at + 8 <= fields_end; at += 8) {
                for (int bit = 16; bit < 64; ++bit) {
                  for (const uint64_t below : {0, 1}) {
                    Wire hostile = wire;
                    StoreU64((uint64_t{1} << bit) - below, hostile, at);
                    FixChecksum(hostile);
                    if (wrong(hostile)) return fmt::format("at {}: 2^{} - {}", at, bit, below);
                  }
                }
              }
              return "";
            }),
            "");
}

// Case E2: under a right checksum too, a table that holds keys is not read as one without: it would
// claim to have no false positives.
TYPED_TEST(CasesTest, NoKeysWithATableOfKeysIsRefused) {
  constexpr uint64_t kKeys = 997;
  const Result<TypeParam> filter = TypeParam::Build(TestHashes(0, kKeys), {.seed = 7});
  ASSERT_TRUE(filter) << filter.error();
  if (TypeParam::kInfo.is_baseline) GTEST_SKIP() << "a baseline has no FPR";
  const Wire wire = filter->Serialize();
  for (size_t at = kHeaderBytes; at + 8 <= std::min<size_t>(wire.size(), kHeaderBytes + 256);
       at += 8) {
    if (LoadU64(wire, at) != kKeys) continue;
    Wire hostile = wire;
    StoreU64(0, hostile, at);
    FixChecksum(hostile);
    const Result<TypeParam> read = TypeParam::Deserialize(hostile);
    if (read) {
      EXPECT_GT(read->ExpectedFpr()->mean, 0) << "the field at " << at;
    }
  }
}

}  // namespace
}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CONFORMANCE_CASES_H_
