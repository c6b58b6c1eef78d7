#include "harness/run/verify.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "filters/theory/agreement.h"

namespace filterbench {
namespace {

constexpr size_t kComparedKeys = size_t{1} << 20;
constexpr size_t kDigestKeys = size_t{1} << 17;
// Not a multiple of any vector length or sub-batch: comparisons cross their seams.
constexpr size_t kCompareChunk = 4096 + 37;

std::string Hex(uint64_t digest) { return fmt::format("{:016x}", digest); }

// First index where the answers as bits of a target and those of the scalar reference differ, or
// the begin of the first chunk that the target miscounts.
std::optional<size_t> FirstDifference(const BuiltFilter& filter, std::span<const uint64_t> words,
                                      std::string_view target) {
  std::vector<uint64_t> expected(kCompareChunk / 64 + 1);
  std::vector<uint64_t> actual(kCompareChunk / 64 + 1);
  for (size_t i = 0; i < words.size(); i += kCompareChunk) {
    const auto chunk = words.subspan(i, std::min(kCompareChunk, words.size() - i));
    filter.Bits(chunk, "scalar", expected.data());
    filter.Bits(chunk, target, actual.data());
    uint64_t count = 0;
    for (size_t w = 0; w < (chunk.size() + 63) / 64; ++w) {
      if (expected[w] != actual[w]) {
        return i + w * 64 + static_cast<size_t>(std::countr_zero(expected[w] ^ actual[w]));
      }
      count += static_cast<uint64_t>(std::popcount(expected[w]));
    }
    if (filter.Count({.words = chunk}, Mode::kLookupBatched, target) != count) return i;
  }
  return std::nullopt;
}

// Every length up to some vectors and words of answers: the first of them at which a target's count
// is not that of the reference.
std::optional<size_t> FirstLengthMiscounted(const BuiltFilter& filter,
                                            std::span<const uint64_t> words,
                                            std::string_view target) {
  constexpr size_t kMaxLength = 130;
  uint64_t expected = 0;
  for (size_t length = 1; length <= std::min(kMaxLength, words.size()); ++length) {
    expected +=
        filter.Count({.words = words.subspan(length - 1, 1)}, Mode::kLookupSingle, "scalar");
    if (filter.Count({.words = words.first(length)}, Mode::kLookupBatched, target) != expected) {
      return length;
    }
  }
  return std::nullopt;
}

// What is wrong, or nothing. `kind` says whose words they are.
std::string CompareKernels(const VerifyInput& input, std::span<const uint64_t> words,
                           std::string_view kind) {
  for (const std::string_view target : input.targets) {
    if (target == "scalar") continue;
    if (const auto index = FirstDifference(*input.filter, words, target)) {
      return fmt::format("the {} kernel and the scalar reference differ from {} key {} on", target,
                         kind, *index);
    }
    if (const auto length = FirstLengthMiscounted(*input.filter, words, target)) {
      return fmt::format(
          "the {} kernel counts other answers than the scalar reference gives to the "
          "first {} {} keys",
          target, *length, kind);
    }
  }
  return {};
}

}  // namespace

Verification Verify(const VerifyInput& input) {
  Verification verification;
  const bool bytes = input.absent.hashing == Hashing::kXxh3Bytes;
  const std::string_view best = input.type->targets().front();

  if (!bytes) {
    const auto first = input.absent.words.first(std::min(kDigestKeys, input.absent.words.size()));
    std::vector<uint64_t> bits((first.size() + 63) / 64);
    input.filter->Bits(first, "scalar", bits.data());
    verification.answers_digest = Hex(XXH3_64bits(bits.data(), bits.size() * sizeof(uint64_t)));
  } else {
    // Byte strings go one at a time through the filter's own hashing: there is nothing to compare.
    const uint64_t positives =
        input.filter->Count(input.absent, Mode::kLookupSingle, "scalar");
    verification.answers_digest = Hex(XXH3_64bits(&positives, sizeof(positives)));
  }
  const auto compare = [&](const KeyStream& keys, uint64_t already, std::string_view kind) {
    if (bytes || already >= kComparedKeys || !verification.problem.empty()) return;
    const size_t count = std::min<size_t>(kComparedKeys - already, keys.words.size());
    verification.problem = CompareKernels(input, keys.words.first(count), kind);
  };
  compare(input.absent, 0, "absent");
  uint64_t present = 0;
  uint64_t found = 0;
  input.present([&](const KeyStream& keys) {
    compare(keys, present, "present");
    present += keys.size();
    if (!input.type->info().is_baseline) {
      found += input.filter->Count(keys, Mode::kLookupBatched, best);
    }
  });
  if (!verification.problem.empty() || input.type->info().is_baseline) return verification;
  if (found != present) {
    verification.problem =
        fmt::format("{} false negatives among {} keys", present - found, present);
    return verification;
  }

  const uint64_t queries = input.absent.size();
  if (queries == 0) return verification;
  const uint64_t false_positives = input.filter->Count(input.absent, Mode::kLookupBatched, best);
  verification.fpr.emplace();
  verification.fpr->false_positives = false_positives;
  verification.fpr->queries = queries;
  if (const std::optional<FprEstimate> expected = input.filter->ExpectedFpr()) {
    verification.fpr->expected = expected->mean;
    verification.fpr->expected_instance_sd = expected->instance_sd;
    if (!theory::FprAgrees(false_positives, queries, *expected, kFprFalseAlarm)) {
      verification.problem =
          fmt::format("FPR: {} false positives among {} absent keys, theory says {:.6g}",
                      false_positives, queries, expected->mean);
    }
  }
  return verification;
}

}  // namespace filterbench
