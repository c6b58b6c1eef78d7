// What a case in a round does about pages and threads, and about inserting.

#include "harness/run/case_round.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/table.h"
#include "harness/machine/cpu_affinity.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kKeys = 400'000;  // at 10 bits per key a table below 2 MiB

const FilterType& TypeOf(const std::string& name) {
  const Result<const FilterType*> type = FindFilterType(name);
  EXPECT_TRUE(type) << type.error();
  return **type;
}

MeasureSpec QuickMeasure() {
  MeasureSpec measure;
  measure.passes = 2;
  measure.pass_seconds = 0.0005;
  measure.stream_lookups = 8192;
  measure.fpr_queries = 20'000;
  return measure;
}

struct Asked {
  std::vector<Mode> modes = {Mode::kLookupBatched};
  std::optional<Pages> pages;
  std::optional<uint64_t> threads;
  Hashing hashing = Hashing::kPrehashed;
  uint64_t keys = kKeys;
  std::optional<double> fill;
};

Case CaseOf(const FilterType& type, const Asked& asked) {
  const Result<KeySet> key_set = KeySet::Open({}, KeySeed(1));
  EXPECT_TRUE(key_set) << key_set.error();
  const Result<nlohmann::json> params = type.CompleteParams(nlohmann::json::object());
  EXPECT_TRUE(params) << params.error();
  Case work{.type = &type, .params = *params, .keys = asked.keys, .key_set = *key_set,
            .fill = asked.fill, .pages = asked.pages, .thread_cpus = AllowedCpus()};
  for (const Mode mode : asked.modes) {
    work.points.push_back({.filter = std::string(type.info().name),
                           .params = *params,
                           .keys = asked.keys,
                           .mode = mode,
                           .fill = asked.fill,
                           .negative_share = IsLookup(mode) ? std::optional(0.5) : std::nullopt,
                           .hashing = asked.hashing,
                           .target = std::string(type.targets().front()),
                           .pages = asked.pages,
                           .threads = MayHaveThreads(mode) ? asked.threads : std::nullopt});
  }
  return work;
}

std::vector<Sample> SamplesOf(const Case& work) {
  std::vector<Sample> samples;
  MeasureCaseRound(work, QuickMeasure(), 0, work.points,
                   {.record = [&](Sample sample) {
                     sample.time_utc = "2026-11-30T15:20:01.123Z";
                     // What is recorded must be what the schema allows.
                     const Result<Sample> read = SampleFromJson(SampleToJson(sample));
                     EXPECT_TRUE(read) << read.error();
                     samples.push_back(std::move(sample));
                   }});
  EXPECT_EQ(samples.size(), work.points.size());
  return samples;
}

TEST(CaseRoundPages, AnswersAndBytesAreTheSameOnAllPages) {
  const std::vector<Mode> modes = {Mode::kBuild, Mode::kLookupBatched};
  const std::vector<Sample> plain = SamplesOf(CaseOf(TypeOf("blocked_bloom"), {.modes = modes}));
  for (const Pages pages : {Pages::kSmall, Pages::kTransparent}) {
    const auto samples =
        SamplesOf(CaseOf(TypeOf("blocked_bloom"), {.modes = modes, .pages = pages}));
    for (size_t i = 0; i < samples.size(); ++i) {
      const Sample& sample = samples[i];
      EXPECT_EQ(sample.status, SampleStatus::kOk) << sample.reason;
      ASSERT_TRUE(sample.filter && sample.filter->pages);
      EXPECT_EQ(sample.filter->filter_digest, plain[i].filter->filter_digest);
      EXPECT_EQ(sample.filter->answers_digest, plain[i].filter->answers_digest);
      const KnownBytes& asked = sample.filter->pages->huge_page_bytes_asked;
      const KnownBytes& obtained = sample.filter->pages->huge_page_bytes;
      if (!asked.bytes) GTEST_SKIP() << asked.reason;
      EXPECT_EQ(*asked.bytes, pages == Pages::kSmall ? 0 : uint64_t{2} << 20);
      ASSERT_TRUE(obtained.bytes) << obtained.reason;
      EXPECT_LE(*obtained.bytes, *asked.bytes);
    }
  }
}

// Case F13: no row on other pages than asked for, and no abort.
TEST(CaseRoundPages, WithoutReservedPagesAPointIsSkippedWithTheCommand) {
  {
    const ScopedPages scope(Pages::kHugetlb);
    if (AlignedTable::Allocate(kKeys * 10 / 8)) GTEST_SKIP() << "huge pages are reserved here";
  }
  const auto samples = SamplesOf(
      CaseOf(TypeOf("blocked_bloom"),
             {.modes = {Mode::kBuild, Mode::kLookupBatched}, .pages = Pages::kHugetlb}));
  for (const Sample& sample : samples) {
    EXPECT_EQ(sample.status, SampleStatus::kSkipped);
    EXPECT_THAT(sample.reason, StartsWith("no huge pages reserved: "));
  }
}

// A filter that takes its memory by itself must not stand in a record as one on chosen pages.
TEST(CaseRoundPages, WhatHasNoTableOfOursIsSkipped) {
  for (const Sample& sample :
       SamplesOf(CaseOf(TypeOf("hash_only"), {.pages = Pages::kSmall}))) {
    EXPECT_EQ(sample.status, SampleStatus::kSkipped);
    EXPECT_THAT(sample.reason, HasSubstr("pages cannot be chosen"));
  }
}

TEST(CaseRoundThreads, EachAsksItsOwnStreamOfTheOneFilter) {
  if (AllowedCpus().size() < 2) GTEST_SKIP() << "there is one CPU";
  const std::vector<int> before = AllowedCpus();
  for (const Hashing hashing : {Hashing::kPrehashed, Hashing::kXxh3U64}) {
    const std::vector<Mode> modes = {Mode::kLookupBatched, Mode::kLookupSingle};
    const Case work = CaseOf(TypeOf("blocked_bloom"),
                             {.modes = modes, .threads = 2, .hashing = hashing});
    const auto alone =
        SamplesOf(CaseOf(TypeOf("blocked_bloom"), {.modes = modes, .hashing = hashing}));
    const auto samples = SamplesOf(work);
    for (size_t i = 0; i < samples.size(); ++i) {
      const Sample& sample = samples[i];
      ASSERT_EQ(sample.status, SampleStatus::kOk) << sample.reason;
      EXPECT_EQ(sample.stream_lookups, 2 * *alone[i].stream_lookups);
      EXPECT_EQ(sample.positives, sample.positives_expected);
      // The same share of negatives: 4,096 of each stream, of which 41 are false positives, give or
      // take 6 (one standard deviation).
      EXPECT_NEAR(static_cast<double>(*sample.positives),
                  2 * static_cast<double>(*alone[i].positives), 100);
      EXPECT_EQ(*sample.operations_per_pass,
                *sample.iterations_per_pass * *sample.stream_lookups);
      ASSERT_TRUE(sample.threads);
      EXPECT_EQ(sample.threads->cpus, std::vector<int>(before.begin(), before.begin() + 2));
      ASSERT_EQ(sample.threads->slowest_seconds.size(), sample.ns_per_op.size());
      for (size_t pass = 0; pass < sample.ns_per_op.size(); ++pass) {
        EXPECT_DOUBLE_EQ(sample.ns_per_op[pass] *
                             static_cast<double>(*sample.operations_per_pass),
                         sample.threads->slowest_seconds[pass] * 1e9);
      }
      EXPECT_TRUE(sample.health.at("cpu").is_null());
    }
  }
  EXPECT_EQ(AllowedCpus(), before);
}

// A filter that does all as another one.
class Wrapped : public BuiltFilter {
 public:
  explicit Wrapped(std::unique_ptr<BuiltFilter> honest) : honest_(std::move(honest)) {}

  uint64_t SizeInBytes() const override { return honest_->SizeInBytes(); }
  uint64_t AllocatedBytes() const override { return honest_->AllocatedBytes(); }
  std::span<const std::byte> Table() const override { return honest_->Table(); }
  const BuildReport& Report() const override { return honest_->Report(); }
  Details GetDetails() const override { return honest_->GetDetails(); }
  std::optional<FprEstimate> ExpectedFpr() const override { return honest_->ExpectedFpr(); }
  std::vector<std::byte> Serialize() const override { return honest_->Serialize(); }
  uint64_t InsertUntilFull(std::span<const uint64_t> hashes) override {
    return honest_->InsertUntilFull(hashes);
  }
  std::unique_ptr<TargetLookups> On(std::string_view target) const override {
    return honest_->On(target);
  }
  bool Erase(uint64_t hash) override { return honest_->Erase(hash); }
  void InsertAll(std::span<const uint64_t> hashes, unsigned threads) override {
    honest_->InsertAll(hashes, threads);
  }
  uint64_t Count(const KeyStream& stream, Mode mode, std::string_view target) const override {
    return honest_->Count(stream, mode, target);
  }
  void Bits(std::span<const uint64_t> words, std::string_view target,
            uint64_t* bits) const override {
    honest_->Bits(words, target, bits);
  }

 private:
  std::unique_ptr<BuiltFilter> honest_;
};

// blocked_bloom with its filters wrapped.
class WrappedType final : public FilterType {
 public:
  using Wrap = std::function<std::unique_ptr<BuiltFilter>(std::unique_ptr<BuiltFilter>)>;
  explicit WrappedType(Wrap wrap) : wrap_(std::move(wrap)) {}

  const FilterInfo& info() const override { return honest_.info(); }
  std::vector<KnobInfo> knobs() const override { return honest_.knobs(); }
  std::vector<std::string_view> targets() const override { return honest_.targets(); }
  bool batched_by_reference(std::string_view target) const override {
    return honest_.batched_by_reference(target);
  }
  bool hashes_keys() const override { return false; }
  bool can_insert() const override { return true; }
  bool can_erase() const override { return false; }
  bool can_stream() const override { return false; }
  std::optional<double> TheoryFpr(double bits_per_key) const override {
    return honest_.TheoryFpr(bits_per_key);
  }
  Result<nlohmann::json> CompleteParams(const nlohmann::json& params) const override {
    return honest_.CompleteParams(params);
  }
  std::string Contradiction(const nlohmann::json&) const override { return {}; }
  Result<std::unique_ptr<BuiltFilter>> Build(const KeyStream& keys, const nlohmann::json& params,
                                             uint64_t seed) const override {
    auto built = honest_.Build(keys, params, seed);
    if (!built) return built;
    return wrap_(std::move(*built));
  }
  Result<std::unique_ptr<BuiltFilter>> Deserialize(
      std::span<const std::byte> bytes) const override {
    return honest_.Deserialize(bytes);
  }
  Result<std::unique_ptr<BuiltFilter>> Create(uint64_t keys, const nlohmann::json& params,
                                              uint64_t seed) const override {
    auto made = honest_.Create(keys, params, seed);
    if (!made) return made;
    return wrap_(std::move(*made));
  }

 private:
  const FilterType& honest_ = TypeOf("blocked_bloom");
  Wrap wrap_;
};

// A correct filter whose count is one too high in every thread but the one that made it, and but for
// the stream that one of the others asks: threads of the same stream would all hear the truth.
class LiesToThreads final : public Wrapped {
 public:
  using Wrapped::Wrapped;

  uint64_t Count(const KeyStream& stream, Mode mode, std::string_view target) const override {
    const uint64_t count = Wrapped::Count(stream, mode, target);
    if (std::this_thread::get_id() == maker_) return count;
    uint64_t nobody = 0;
    favourite_.compare_exchange_strong(nobody, stream.words.front());
    return count + (favourite_ == stream.words.front() ? 0 : 1);
  }

 private:
  std::thread::id maker_ = std::this_thread::get_id();
  mutable std::atomic<uint64_t> favourite_ = 0;
};

TEST(CaseRoundThreads, AFilterThatCountsOtherwiseInOneThreadIsInvalid) {
  if (AllowedCpus().size() < 2) GTEST_SKIP() << "there is one CPU";
  const WrappedType liar([](std::unique_ptr<BuiltFilter> honest) {
    return std::make_unique<LiesToThreads>(std::move(honest));
  });
  EXPECT_EQ(SamplesOf(CaseOf(liar, {}))[0].status, SampleStatus::kOk);
  const Sample sample = SamplesOf(CaseOf(liar, {.threads = 2}))[0];
  EXPECT_EQ(sample.status, SampleStatus::kInvalid);
  EXPECT_THAT(sample.reason, HasSubstr("of 2 counted"));
  EXPECT_TRUE(sample.ns_per_op.empty());
  EXPECT_FALSE(sample.threads);
}

TEST(CaseRoundThreads, ACpuThatIsGoneSkipsThePoint) {
  Case work = CaseOf(TypeOf("blocked_bloom"), {.threads = 2});
  work.thread_cpus = {AllowedCpus().front(), 16383};
  const Sample sample = SamplesOf(work)[0];
  EXPECT_EQ(sample.status, SampleStatus::kSkipped);
  EXPECT_THAT(sample.reason, HasSubstr("CPU 16383 does not exist"));
}

// --- Inserting ---

std::vector<Sample> InsertSamplesOf(const FilterType& type, uint64_t keys, double fill) {
  return SamplesOf(CaseOf(type, {.modes = {Mode::kInsert, Mode::kOverfill, Mode::kLookupBatched},
                                 .keys = keys,
                                 .fill = fill}));
}

// Case F2: every pass fills a filter of its own up to the load that the record states.
TEST(CaseRoundInsert, TheLastKeysBeforeAFillOfTheFilterThatTheOtherModesAreAbout) {
  for (const double fill : {0.02, 0.5, 1.0}) {
    const auto samples = InsertSamplesOf(TypeOf("cuckoo"), kKeys, fill);
    const uint64_t given = static_cast<uint64_t>(std::llround(kKeys * fill));
    for (const Sample& sample : samples) {
      ASSERT_EQ(sample.status, SampleStatus::kOk) << sample.reason;
      EXPECT_EQ(sample.filter->keys_held, given);
      EXPECT_EQ(sample.filter->filter_digest, samples[0].filter->filter_digest);
      EXPECT_EQ(sample.filter->answers_digest, samples[0].filter->answers_digest);
      EXPECT_EQ(sample.fpr->false_positives, samples[0].fpr->false_positives);
    }
    EXPECT_EQ(*samples[0].operations_per_pass,
              *samples[0].iterations_per_pass * std::min(given, kKeys / 20));
    EXPECT_EQ(samples[0].ns_per_op.size(), QuickMeasure().passes);
    EXPECT_FALSE(samples[0].stream_lookups || samples[0].positives);
  }
}

// Every filter that takes single keys has a curve over its load: what it holds, and a rate of false
// positives that theory does not rule out there (harness/run/verify.h).
TEST(CaseRoundInsert, EveryFilterThatTakesSingleKeysIsRightAtEveryLoad) {
  constexpr uint64_t kFew = 20'000;
  size_t filters = 0;
  for (const auto& type : FilterTypes()) {
    if (!type->can_insert()) continue;
    ++filters;
    double rate = 0;
    for (const double fill : {0.1, 0.5, 0.95, 1.0}) {
      SCOPED_TRACE(fmt::format("{} {}", type->info().name, fill));
      for (const Sample& sample : InsertSamplesOf(*type, kFew, fill)) {
        const bool is_too_fast = sample.point.mode == Mode::kInsert &&
                                 sample.status == SampleStatus::kInvalid &&
                                 sample.reason.find("steps of the clock") != std::string::npos;
        EXPECT_TRUE(sample.status == SampleStatus::kOk || is_too_fast) << sample.reason;
        ASSERT_TRUE(sample.filter && sample.fpr && sample.fpr->expected);
        EXPECT_EQ(sample.filter->keys_held, static_cast<uint64_t>(std::llround(kFew * fill)));
        EXPECT_GE(*sample.fpr->expected, rate) << "fewer false positives with more keys";
      }
      rate = *SamplesOf(CaseOf(*type, {.keys = kFew, .fill = fill}))[0].fpr->expected;
    }
    EXPECT_GT(rate, 0);
  }
  EXPECT_GE(filters, 13u);
}

// What InsertUntilFull was given, call by call, since the filter was made.
using Calls = std::vector<uint64_t>;

// Holds `capacity` keys, and takes some microseconds for each of the first `slow` ones and one for
// each of the others.
class Bucket final : public Wrapped {
 public:
  Bucket(std::unique_ptr<BuiltFilter> honest, uint64_t capacity, uint64_t slow, Calls* calls)
      : Wrapped(std::move(honest)), capacity_(capacity), slow_(slow), calls_(calls) {
    calls_->clear();
  }

  uint64_t InsertUntilFull(std::span<const uint64_t> hashes) override {
    calls_->push_back(hashes.size());
    const uint64_t accepted = std::min<uint64_t>(hashes.size(), capacity_ - held_);
    for (uint64_t i = 0; i < accepted; ++i) {
      const auto end = std::chrono::steady_clock::now() +
                       std::chrono::microseconds(held_ + i < slow_ ? kSlowMicroseconds : 1);
      while (std::chrono::steady_clock::now() < end) {
      }
    }
    held_ += accepted;
    return Wrapped::InsertUntilFull(hashes.first(accepted));
  }

  static constexpr uint64_t kSlowMicroseconds = 20;

 private:
  uint64_t capacity_;
  uint64_t slow_;
  Calls* calls_;
  uint64_t held_ = 0;
};

WrappedType BucketType(uint64_t capacity, uint64_t slow, Calls* calls) {
  return WrappedType([=](std::unique_ptr<BuiltFilter> honest) {
    return std::make_unique<Bucket>(std::move(honest), capacity, slow, calls);
  });
}

// All keys before the stretch take 19 ms, its own 50 take 50 us: a pass that had the time of those
// would have at least 380 us per key.
TEST(CaseRoundInsert, TheKeysBeforeAreNotTimed) {
  Calls calls;
  const WrappedType type = BucketType(1000, 950, &calls);
  const Sample sample = InsertSamplesOf(type, 1000, 1)[0];
  ASSERT_EQ(sample.status, SampleStatus::kOk) << sample.reason;
  EXPECT_EQ(*sample.operations_per_pass, *sample.iterations_per_pass * 50);
  const auto [least, most] = std::minmax_element(sample.ns_per_op.begin(), sample.ns_per_op.end());
  EXPECT_GE(*least, 1e3);
  EXPECT_LT(*least, 950 * Bucket::kSlowMicroseconds * 1e3 / 50);
}

// Cases B2, C7: a refusal is counted and the number of keys that is held is in the record.
TEST(CaseRoundInsert, WhatIsRefusedIsNotTimed) {
  Calls calls;
  const WrappedType type = BucketType(970, 0, &calls);
  const Sample sample =
      SamplesOf(CaseOf(type, {.modes = {Mode::kInsert}, .keys = 1000, .fill = 1}))[0];
  ASSERT_EQ(sample.status, SampleStatus::kOk) << sample.reason;
  EXPECT_EQ(*sample.operations_per_pass, *sample.iterations_per_pass * 20);
  EXPECT_EQ(sample.filter->keys_held, 970u);
  EXPECT_EQ(calls, (Calls{950, 20})) << "of the last filter";
}

// Case C7: a filter that is full is a row with a reason, and its other points are measured.
TEST(CaseRoundInsert, WhereNoKeyOfTheStretchIsAcceptedThePointSaysSo) {
  for (const uint64_t capacity : {950, 949, 400}) {
    Calls calls;
    const WrappedType type = BucketType(capacity, 0, &calls);
    const auto samples = InsertSamplesOf(type, 1000, 1);
    EXPECT_EQ(samples[0].status, SampleStatus::kSkipped);
    EXPECT_THAT(samples[0].reason, StartsWith("it accepted " + std::to_string(capacity)));
    EXPECT_TRUE(samples[0].ns_per_op.empty());
    EXPECT_EQ(samples[0].filter->keys_held, capacity);
    for (const size_t other : {1, 2}) {
      EXPECT_EQ(samples[other].status, SampleStatus::kOk) << samples[other].reason;
    }
  }
  const Sample none = InsertSamplesOf(TypeOf("cuckoo"), 0, 1)[0];
  EXPECT_EQ(none.status, SampleStatus::kSkipped);
  EXPECT_EQ(none.reason, "no keys: there is no time per key");
}

// One key of each filter is timed: too few for the clock, however often.
TEST(CaseRoundInsert, TooFewKeysForTheClockAreInvalid) {
  const Sample sample = InsertSamplesOf(TypeOf("blocked_bloom"), 20, 1)[0];
  EXPECT_EQ(sample.status, SampleStatus::kInvalid);
  EXPECT_TRUE(sample.ns_per_op.empty());
}

// Not the same from one filter to the next: then the timed keys are not those that were verified.
// Case C5: the row is a failed build, without a time.
TEST(CaseRoundInsert, AFilterThatHoldsAnotherNumberOfKeysFails) {
  Calls calls;
  uint64_t made = 0;
  const WrappedType type([&](std::unique_ptr<BuiltFilter> honest) {
    return std::make_unique<Bucket>(std::move(honest), made++ < 2 ? 1000 : 990, 0, &calls);
  });
  const Sample sample =
      SamplesOf(CaseOf(type, {.modes = {Mode::kInsert}, .keys = 1000, .fill = 1}))[0];
  EXPECT_EQ(sample.status, SampleStatus::kBuildFailed);
  EXPECT_THAT(sample.reason, HasSubstr("it held another number of keys"));
}

}  // namespace
}  // namespace filterbench
