// Plug-ins that break one rule each, for the tests of what the harness makes of them.

#include <algorithm>
#include <bit>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>
#include <vector>

#include "filters/plugin/plugin.h"

namespace {

enum class Bug {
  kNone,
  kCrashesInBuild,
  kCrashesInLookups,
  kExits,
  kNeverReturns,
  kHangsInLookups,
  kDeniesAKey,
  kMiscountsLongSpans,
  kStatesNoRate,
  kBatchDiffers,
  kAnotherEachTime,
  kRemembersLookups,
  kSmallerThanPossible,
  kStatesAnotherRate,
  kRefusesEarly,
  kForgetsOthers,
  kMaybeWhenEmpty,
  kNoReason,
  kPrints,
};

// One bit per key in 128 bits per key: right unless a bug says otherwise.
template <Bug kBug>
class OneBit {
 public:
  static constexpr filterbench_knob kKnobs[] = {{"unused", "changes nothing", 0, 10, 5, 1}};

  OneBit(uint64_t keys, const double*, uint64_t)
      : made_for_(keys), words_(std::bit_ceil(std::max<uint64_t>(keys, 1)) * 2) {}
  OneBit(const uint64_t* hashes, size_t n, const double* values, uint64_t seed)
      : OneBit(n, values, seed) {
    if (kBug == Bug::kNoReason && n == 1000) throw std::runtime_error("");
    if (kBug == Bug::kCrashesInBuild && n > 100) std::raise(SIGSEGV);
    if (kBug == Bug::kExits && n > 100) _exit(0);
    if (kBug == Bug::kNeverReturns && n > 100) {
      for (;;) pause();
    }
    if (kBug == Bug::kPrints) std::puts("built");
    made_for_ = UINT64_MAX;
    for (size_t i = 0; i < n; ++i) {
      if (kBug == Bug::kDeniesAKey && n > 100 && i == n / 2) continue;
      Insert(hashes[i]);
    }
    static size_t builds = 0;
    if (kBug == Bug::kAnotherEachTime) words_[++builds % words_.size()] = UINT64_MAX;
  }

  bool Insert(uint64_t hash) {
    if (kBug == Bug::kRefusesEarly && count_ >= made_for_ / 2) return false;
    ++count_;
    words_[WordOf(hash)] |= Bit(hash);
    return true;
  }
  bool Erase(uint64_t hash)
    requires(kBug == Bug::kForgetsOthers)
  {
    words_[WordOf(hash)] = 0;
    return true;
  }
  bool MayContain(uint64_t hash) const {
    if (kBug == Bug::kCrashesInLookups && count_ > 100) std::raise(SIGABRT);
    if (kBug == Bug::kHangsInLookups && count_ > 100) {
      for (;;) pause();
    }
    if (kBug == Bug::kMaybeWhenEmpty && count_ == 0) return true;
    static size_t lookups = 0;
    if (kBug == Bug::kRemembersLookups && ++lookups % 1009 == 0) return true;
    return (words_[WordOf(hash)] & Bit(hash)) != 0;
  }
  uint64_t CountBatched(const uint64_t* hashes, size_t n) const {
    uint64_t count = 0;
    for (size_t i = 0; i < n; ++i) count += MayContain(hashes[i]) ? 1 : 0;
    if (kBug == Bug::kMiscountsLongSpans && n > 1000) return count / 2;
    if (kBug == Bug::kBatchDiffers && n % 8 == 7 && count > 0) --count;
    return count;
  }
  uint64_t SizeInBytes() const {
    return kBug == Bug::kSmallerThanPossible ? 100 : words_.size() * 8;
  }
  double ExpectedFpr() const {
    const double bits = static_cast<double>(words_.size()) * 64;
    const double rate = -std::expm1(static_cast<double>(count_) * std::log1p(-1 / bits));
    if (kBug == Bug::kStatesNoRate) return std::nan("");
    return kBug == Bug::kStatesAnotherRate ? rate * 1.5 : rate;
  }

 private:
  size_t WordOf(uint64_t hash) const {
    return static_cast<size_t>((hash >> 32) * words_.size() >> 32);
  }
  static uint64_t Bit(uint64_t hash) { return uint64_t{1} << (hash & 63); }

  uint64_t made_for_;
  uint64_t count_ = 0;
  std::vector<uint64_t> words_;
};

template <Bug kBug>
filterbench::Plugin<OneBit<kBug>> With(const char* name) {
  return {name, "One bit per key, with a bug"};
}

filterbench::Plugin<OneBit<Bug::kNone>> WithBitsThatOverrun(const char* name) {
  auto filter = With<Bug::kNone>(name);
  filter.bits_batched = [](const void* of, const uint64_t* hashes, size_t n, uint64_t* bits) {
    for (size_t i = 0; i <= n / 64; ++i) bits[i] = 0;
    for (size_t i = 0; i < n; ++i) {
      const auto* one_bit = static_cast<const OneBit<Bug::kNone>*>(of);
      bits[i / 64] |= uint64_t{one_bit->MayContain(hashes[i])} << (i % 64);
    }
  };
  return filter;
}

// Where the variable is set, this library dies while it is loaded.
const bool g_loaded = [] {
  if (std::getenv("FILTERBENCH_TEST_PLUGIN_DIES") != nullptr) std::raise(SIGSEGV);
  return true;
}();

}  // namespace

FILTERBENCH_PLUGIN(With<Bug::kNone>("flawless"), With<Bug::kCrashesInBuild>("crashes_in_build"),
                   With<Bug::kCrashesInLookups>("crashes_in_lookups"), With<Bug::kExits>("exits"),
                   With<Bug::kNeverReturns>("never_returns"),
                   With<Bug::kHangsInLookups>("hangs_in_lookups"),
                   With<Bug::kDeniesAKey>("denies_a_key"),
                   With<Bug::kMiscountsLongSpans>("miscounts_long_spans"),
                   With<Bug::kStatesNoRate>("states_no_rate"),
                   With<Bug::kBatchDiffers>("batch_differs"),
                   With<Bug::kAnotherEachTime>("another_each_time"),
                   With<Bug::kRemembersLookups>("remembers_lookups"),
                   With<Bug::kSmallerThanPossible>("smaller_than_possible"),
                   With<Bug::kStatesAnotherRate>("states_another_rate"),
                   With<Bug::kRefusesEarly>("refuses_early"),
                   With<Bug::kForgetsOthers>("forgets_others"),
                   With<Bug::kMaybeWhenEmpty>("maybe_when_empty"),
                   With<Bug::kNoReason>("no_reason"), With<Bug::kPrints>("prints"),
                   WithBitsThatOverrun("bits_overrun"))
