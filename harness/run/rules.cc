#include "harness/run/rules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "filters/hash.h"
#include "filters/theory/agreement.h"
#include "harness/process/isolated.h"
#include "harness/run/verify.h"

namespace filterbench {
namespace {

using nlohmann::json;

constexpr uint64_t kSeed = 7;

// Hash i is a bijection of i: from n on they are absent from a filter of the first n.
std::vector<uint64_t> Hashes(uint64_t first, size_t n) {
  std::vector<uint64_t> hashes(n);
  for (size_t i = 0; i < n; ++i) hashes[i] = Mix64((first + i + 1) * kGoldenGamma);
  return hashes;
}

// Thrown where a rule is broken: what() is the sentence.
class Broken : public std::exception {
 public:
  explicit Broken(std::string what) : what_(std::move(what)) {}
  const char* what() const noexcept override { return what_.c_str(); }

 private:
  std::string what_;
};

// Begins messages that say what is being done, for the case that they are the last.
constexpr char kDoing = '\x01';

// One filter under examination. Everything here runs in the process of the rule.
class Examiner {
 public:
  Examiner(const FilterType& type, const SendMessage& send) : type_(type), send_(send) {}

  const FilterType& type() const { return type_; }
  json Defaults() const { return *type_.CompleteParams(json::object()); }

  // Nothing where the filter says that it cannot be built; `reason` then says why.
  std::unique_ptr<BuiltFilter> TryBuild(std::span<const uint64_t> hashes, const json& params,
                                        uint64_t seed, std::string& reason) const {
    send_(fmt::format("{}with {} keys, seed {:#x} and {}", kDoing, hashes.size(), seed,
                      params.dump()));
    auto built = type_.Build({.words = hashes}, params, seed);
    if (built) return std::move(*built);
    reason = built.error();
    return nullptr;
  }
  std::unique_ptr<BuiltFilter> Build(std::span<const uint64_t> hashes,
                                     std::string_view what) const {
    std::string reason;
    auto built = TryBuild(hashes, Defaults(), kSeed, reason);
    if (built == nullptr) throw Broken(fmt::format("{}: not built: {}", what, reason));
    return built;
  }

  bool Answer(const BuiltFilter& filter, uint64_t hash) const {
    return filter.Count({.words = {&hash, 1}}, Mode::kLookupSingle, "scalar") != 0;
  }

  void ExpectHolds(const BuiltFilter& filter, std::span<const uint64_t> hashes,
                   std::string_view what) const {
    if (type_.info().is_baseline) return;
    size_t denied = 0;
    std::optional<size_t> first;
    for (size_t i = 0; i < hashes.size(); ++i) {
      if (Answer(filter, hashes[i])) continue;
      ++denied;
      if (!first) first = i;
    }
    if (denied != 0) {
      throw Broken(fmt::format("{}: {} of {} keys are denied, the first is number {} (hash {:#x})",
                               what, denied, hashes.size(), *first, hashes[*first]));
    }
  }

 private:
  const FilterType& type_;
  const SendMessage& send_;
};

struct Rule {
  std::string text;
  std::function<bool(const FilterType&)> applies;
  std::function<void(const Examiner&)> check;
};

bool Always(const FilterType&) { return true; }
bool IsNoBaseline(const FilterType& type) { return !type.info().is_baseline; }

void HoldsItsKeys(const Examiner& examiner) {
  for (const size_t n : {0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 63, 64, 65, 1000, 100000}) {
    const std::vector<uint64_t> hashes = Hashes(0, n);
    const std::string what = fmt::format("{} keys", n);
    examiner.ExpectHolds(*examiner.Build(hashes, what), hashes, what);
  }
}

void HoldsExtremes(const Examiner& examiner) {
  const std::vector<uint64_t> hashes = {
      0, 1, UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63, UINT32_MAX, uint64_t{UINT32_MAX} << 32};
  examiner.ExpectHolds(*examiner.Build(hashes, "hashes at the ends of their range"), hashes,
                       "hashes at the ends of their range");
  std::vector<uint64_t> in_a_row(1000);
  for (size_t i = 0; i < in_a_row.size(); ++i) in_a_row[i] = i;
  std::string reason;
  const auto built = examiner.TryBuild(in_a_row, examiner.Defaults(), kSeed, reason);
  if (built != nullptr) examiner.ExpectHolds(*built, in_a_row, "hashes 0 to 999");
}

void HoldsDuplicates(const Examiner& examiner) {
  const auto check = [&](const std::vector<uint64_t>& hashes, std::string_view what) {
    std::string reason;
    const auto built = examiner.TryBuild(hashes, examiner.Defaults(), kSeed, reason);
    if (built == nullptr) {
      if (reason.empty()) throw Broken(fmt::format("{}: not built, without a reason", what));
      return;
    }
    examiner.ExpectHolds(*built, hashes, what);
  };
  check({5, 5}, "one key twice");
  check(std::vector<uint64_t>(256, Hashes(3, 1)[0]), "one key 256 times");
  std::vector<uint64_t> some = Hashes(0, 10000);
  for (size_t i = 0; i < 100; ++i) some.push_back(some[i * 99]);
  check(some, "10000 keys of which 100 come twice");
}

void IsEmptyWhenEmpty(const Examiner& examiner) {
  const auto built = examiner.Build({}, "no keys");
  std::vector<uint64_t> hashes = Hashes(0, 100000);
  hashes.insert(hashes.end(), {0, 1, UINT64_MAX});
  const uint64_t maybe = built->Count({.words = hashes}, Mode::kLookupSingle, "scalar");
  if (maybe != 0) {
    throw Broken(fmt::format("built from no keys it answers maybe to {} of {}", maybe,
                             hashes.size()));
  }
  constexpr uint64_t kMaxBytes = 1 << 16;
  if (built->SizeInBytes() > kMaxBytes) {
    throw Broken(fmt::format("built from no keys it takes {} bytes, more than {}",
                             built->SizeInBytes(), kMaxBytes));
  }
}

void IsDeterministic(const Examiner& examiner) {
  const std::vector<uint64_t> hashes = Hashes(0, 5000);
  const auto first = examiner.Build(hashes, "5000 keys");
  const auto second = examiner.Build(hashes, "5000 keys");
  if (first->SizeInBytes() != second->SizeInBytes()) {
    throw Broken(fmt::format("built twice alike it takes {} bytes and then {}",
                             first->SizeInBytes(), second->SizeInBytes()));
  }
  if (!std::ranges::equal(first->Table(), second->Table())) {
    throw Broken("built twice alike its tables differ");
  }
  const std::vector<uint64_t> asked = Hashes(0, 100000);
  for (const uint64_t hash : asked) {
    if (examiner.Answer(*first, hash) != examiner.Answer(*second, hash)) {
      throw Broken(fmt::format("built twice alike the answers to hash {:#x} differ", hash));
    }
  }
}

void AnswersDoNotDependOnTheirOrder(const Examiner& examiner) {
  const auto built = examiner.Build(Hashes(0, 2000), "2000 keys");
  const std::vector<uint64_t> asked = Hashes(1000, 20000);
  std::vector<bool> answers;
  for (const uint64_t hash : asked) answers.push_back(examiner.Answer(*built, hash));
  for (size_t i = asked.size(); i-- > 0;) {
    if (examiner.Answer(*built, asked[i]) != answers[i]) {
      throw Broken(fmt::format("asked again, the answer to hash {:#x} is another one", asked[i]));
    }
  }
}

// Every loop against the reference, for all lengths of spans in several places of an array.
void LoopsAgree(const Examiner& examiner) {
  constexpr size_t kMaxLength = 200;
  constexpr uint64_t kCanary = 0xdeadbeefcafef00d;
  for (const size_t n : {0, 1, 50, 20000}) {
    const auto built = examiner.Build(Hashes(0, n), fmt::format("{} keys", n));
    const std::vector<uint64_t> present = Hashes(0, n);
    std::vector<uint64_t> asked = Hashes(n, kMaxLength + 8);
    for (size_t i = 0; n != 0 && i < asked.size(); i += 2) asked[i] = present[i % n];
    std::vector<uint8_t> answers;
    for (const uint64_t hash : asked) answers.push_back(examiner.Answer(*built, hash) ? 1 : 0);
    for (const std::string_view target : examiner.type().targets()) {
      for (size_t place = 0; place < 8; ++place) {
        for (size_t length = 0; length <= kMaxLength; ++length) {
          const std::span<const uint64_t> span = std::span(asked).subspan(place, length);
          uint64_t expected = 0;
          std::vector<uint64_t> expected_bits((length + 63) / 64);
          for (size_t i = 0; i < length; ++i) {
            expected += answers[place + i];
            expected_bits[i / 64] |= uint64_t{answers[place + i]} << (i % 64);
          }
          const auto where = [&] {
            return fmt::format("{} keys, target {}, {} lookups at place {}", n, target, length,
                               place);
          };
          for (const Mode mode : {Mode::kLookupBatched, Mode::kLookupSingle, Mode::kLatency}) {
            const uint64_t count = built->Count({.words = span}, mode, target);
            if (count != expected) {
              throw Broken(
                  fmt::format("{}: mode {} counts {} positive answers, one at a time there "
                              "are {}",
                              where(), kModeNames[static_cast<size_t>(mode)], count, expected));
            }
          }
          std::vector<uint64_t> bits(expected_bits.size() + 1, kCanary);
          built->Bits(span, target, bits.data());
          if (bits.back() != kCanary) {
            throw Broken(where() + ": the answers as bits write behind their last word");
          }
          bits.pop_back();
          if (bits != expected_bits) {
            throw Broken(where() + ": the answers as bits are not those of one at a time");
          }
        }
      }
    }
  }
}

void LongLoopsAgree(const Examiner& examiner) {
  const auto built = examiner.Build(Hashes(0, 50000), "50000 keys");
  const std::vector<uint64_t> asked = Hashes(25000, 100000);
  uint64_t expected = 0;
  for (const uint64_t hash : asked) expected += examiner.Answer(*built, hash) ? 1 : 0;
  for (const std::string_view target : examiner.type().targets()) {
    for (const Mode mode : {Mode::kLookupBatched, Mode::kLookupSingle, Mode::kLatency}) {
      const uint64_t count = built->Count({.words = asked}, mode, target);
      if (count == expected) continue;
      throw Broken(fmt::format("of {} lookups target {} in mode {} counts {} positive answers, one "
                               "at a time there are {}",
                               asked.size(), target, kModeNames[static_cast<size_t>(mode)], count,
                               expected));
    }
  }
}

void KnobsHoldAtTheirEnds(const Examiner& examiner) {
  const std::vector<uint64_t> hashes = Hashes(0, 1000);
  for (const KnobInfo& knob : examiner.type().knobs()) {
    std::vector<json> values = {knob.low, knob.high};
    if (!knob.choices.empty()) values.assign(knob.choices.begin(), knob.choices.end());
    for (const json& value : values) {
      const std::string what = fmt::format("{} = {}", knob.name, value.dump());
      const Result<json> params = examiner.type().CompleteParams({{knob.name, value}});
      if (!params) continue;  // contradicts the others
      std::string reason;
      const auto built = examiner.TryBuild(hashes, *params, kSeed, reason);
      if (built != nullptr) {
        examiner.ExpectHolds(*built, hashes, what);
      } else if (reason.empty()) {
        throw Broken(what + ": not built, without a reason");
      }
    }
  }
}

void HoldsWithAnySeed(const Examiner& examiner) {
  const std::vector<uint64_t> hashes = Hashes(0, 3000);
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, UINT64_MAX}) {
    std::string reason;
    const std::string what = fmt::format("seed {:#x}", seed);
    const auto built = examiner.TryBuild(hashes, examiner.Defaults(), seed, reason);
    if (built == nullptr) throw Broken(fmt::format("{}: not built: {}", what, reason));
    examiner.ExpectHolds(*built, hashes, what);
  }
}

constexpr size_t kRateKeys = 100000;
constexpr uint64_t kRateQueries = 1000000;

uint64_t FalsePositives(const BuiltFilter& filter, uint64_t first_absent) {
  return filter.Count({.words = Hashes(first_absent, kRateQueries)}, Mode::kLookupSingle, "scalar");
}

void RateIsThatOfTheory(const Examiner& examiner) {
  const auto built = examiner.Build(Hashes(0, kRateKeys), "100000 keys");
  const uint64_t found = FalsePositives(*built, kRateKeys);
  if (found == kRateQueries) throw Broken("it answers maybe to every absent key");
  const std::optional<FprEstimate> expected = built->ExpectedFpr();
  if (expected && !theory::FprAgrees(found, kRateQueries, *expected, kFprFalseAlarm)) {
    throw Broken(fmt::format("{} of {} absent keys are false positives, it states a rate of {:.6g}",
                             found, kRateQueries, expected->mean));
  }
}

// No filter of n keys is smaller than n log2(1 / FPR) bits (Carter et al. 1978), up to the
// parameters that a lookup needs.
void SizeIsPossible(const Examiner& examiner) {
  const auto built = examiner.Build(Hashes(0, kRateKeys), "100000 keys");
  if (built->Table().size() > built->SizeInBytes()) {
    throw Broken(fmt::format("its table has {} bytes, it states a size of {}",
                             built->Table().size(), built->SizeInBytes()));
  }
  const uint64_t found = FalsePositives(*built, kRateKeys);
  // The highest rate that would show so few false positives with a probability of 1e-9.
  double rate = 1;
  for (double low = 0, high = 1; high - low > 1e-9;) {
    rate = (low + high) / 2;
    (theory::BinomialLowerTail(found, kRateQueries, rate) < kFprFalseAlarm ? high : low) = rate;
  }
  const double least_bytes =
      static_cast<double>(kRateKeys) * theory::InformationBoundBitsPerKey(rate) / 8;
  if (static_cast<double>(built->SizeInBytes()) < least_bytes) {
    throw Broken(fmt::format("it states {} bytes for {} keys; with {} false positives of {} no "
                             "filter takes less than {:.0f}",
                             built->SizeInBytes(), kRateKeys, found, kRateQueries, least_bytes));
  }
}

std::unique_ptr<BuiltFilter> Create(const Examiner& examiner, uint64_t keys) {
  auto made = examiner.type().Create(keys, examiner.Defaults(), kSeed);
  if (!made) throw Broken(fmt::format("made for {} keys: {}", keys, made.error()));
  return std::move(*made);
}

void AcceptsWhatItWasMadeFor(const Examiner& examiner) {
  for (const size_t n : {1, 2, 7, 64, 1000, 50000}) {
    const auto filter = Create(examiner, n);
    const std::vector<uint64_t> hashes = Hashes(0, n);
    if (filter->Count({.words = hashes}, Mode::kLookupSingle, "scalar") != 0) {
      throw Broken(fmt::format("made for {} keys and empty, it answers maybe", n));
    }
    const uint64_t accepted = filter->InsertUntilFull(hashes);
    if (accepted < n) {
      throw Broken(fmt::format("made for {} keys it refuses key {}", n, accepted));
    }
    examiner.ExpectHolds(*filter, hashes, fmt::format("{} keys inserted one by one", n));
  }
}

void KeepsWhatItAcceptedWhenOverfilled(const Examiner& examiner) {
  const auto filter = Create(examiner, 1000);
  std::vector<uint64_t> accepted;
  for (const uint64_t hash : Hashes(0, 3000)) {
    if (filter->InsertUntilFull({&hash, 1}) == 1) accepted.push_back(hash);
  }
  examiner.ExpectHolds(*filter, accepted, "made for 1000 keys and given 3000");
}

void ForgetsOnlyWhatItErases(const Examiner& examiner) {
  constexpr size_t kKeys = 20000;
  const auto filter = Create(examiner, kKeys);
  const std::vector<uint64_t> hashes = Hashes(0, kKeys);
  const uint64_t accepted = filter->InsertUntilFull(hashes);
  const std::span<const uint64_t> all = std::span(hashes).first(accepted);
  const size_t half = all.size() / 2;
  for (size_t i = 0; i < half; ++i) {
    if (!filter->Erase(all[i]))
      throw Broken(fmt::format("key {} was inserted and is not found", i));
  }
  examiner.ExpectHolds(*filter, all.subspan(half), "after half of the keys were erased");
  const uint64_t left = filter->Count({.words = all.first(half)}, Mode::kLookupSingle, "scalar");
  if (left > half / 2)
    throw Broken(fmt::format("{} of {} erased keys are still there", left, half));
}

const std::vector<Rule>& Rules() {
  static const std::vector<Rule> rules = {
      {"A filter holds every key that it is built from, however many.", Always, HoldsItsKeys},
      {"Hashes at the ends of their range, or in a row, are keys like others.", Always,
       HoldsExtremes},
      {"Keys that come twice are held, or refused with a reason.", Always, HoldsDuplicates},
      {"Built from no keys it denies all, in at most 64 KiB.", IsNoBaseline, IsEmptyWhenEmpty},
      {"Built twice alike it is the same filter.", Always, IsDeterministic},
      {"A lookup leaves no trace.", Always, AnswersDoNotDependOnTheirOrder},
      {"All loops answer like one lookup at a time, for any number and place of hashes.", Always,
       LoopsAgree},
      {"So do loops over a hundred thousand hashes.", Always, LongLoopsAgree},
      {"At the ends of every parameter it is built and holds its keys, or says why not.", Always,
       KnobsHoldAtTheirEnds},
      {"It holds its keys with any seed.", Always, HoldsWithAnySeed},
      {"Its rate of false positives is the one that it states, and below 1.", IsNoBaseline,
       RateIsThatOfTheory},
      {"Its size is one that a filter of its rate can have.", IsNoBaseline, SizeIsPossible},
      {"Made for a number of keys it accepts that many, one by one.",
       [](const FilterType& type) { return type.can_insert(); }, AcceptsWhatItWasMadeFor},
      {"Beyond that it may refuse, but keeps what it accepted.",
       [](const FilterType& type) { return type.can_insert(); }, KeepsWhatItAcceptedWhenOverfilled},
      {"Erasing forgets the erased keys and no others.",
       [](const FilterType& type) { return type.can_erase(); }, ForgetsOnlyWhatItErases},
  };
  return rules;
}

}  // namespace

std::vector<RuleOutcome> CheckRules(const FilterType& type, double silence_limit_seconds) {
  std::vector<RuleOutcome> outcomes;
  for (const Rule& rule : Rules()) {
    if (!rule.applies(type)) continue;
    RuleOutcome& outcome = outcomes.emplace_back(RuleOutcome{rule.text, ""});
    std::string doing;
    const IsolatedResult result = RunIsolated(
        {.silence_limit_seconds = silence_limit_seconds},
        [&](const SendMessage& send) {
          try {
            rule.check(Examiner(type, send));
          } catch (const Broken& broken) {
            send(broken.what());
          }
        },
        [&](std::string_view message) {
          if (message.starts_with(kDoing)) {
            doing = message.substr(1);
          } else {
            outcome.broken = message;
          }
        });
    if (result.end != IsolatedEnd::kDone) {
      outcome.broken = fmt::format("{}it {}", doing.empty() ? "" : doing + " ", result.reason);
    }
  }
  return outcomes;
}

}  // namespace filterbench
