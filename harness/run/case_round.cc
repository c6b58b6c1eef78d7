#include "harness/run/case_round.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "filters/pages.h"
#include "harness/machine/clock_step.h"
#include "harness/machine/core_clock.h"
#include "harness/machine/health.h"
#include "harness/machine/perf_counters.h"
#include "harness/machine/system_files.h"
#include "harness/machine/table_pages.h"
#include "harness/run/measure.h"
#include "harness/run/seeds.h"
#include "harness/run/threads.h"
#include "harness/run/verify.h"
#include "workloads/keys.h"
#include "workloads/lookups.h"

namespace filterbench {
namespace {

using Clock = std::chrono::steady_clock;

// Time that counts, in one or more pieces; counters are on during the same.
class Stopwatch {
 public:
  explicit Stopwatch(PerfCounters* counters = nullptr) : counters_(counters) {}

  void Start() {
    if (counters_ != nullptr) counters_->Resume();
    start_ = Clock::now();
  }
  void Stop() {
    seconds_ += std::chrono::duration<double>(Clock::now() - start_).count();
    if (counters_ != nullptr) counters_->Pause();
  }
  double seconds() const { return seconds_; }

 private:
  PerfCounters* counters_;
  Clock::time_point start_;
  double seconds_ = 0;
};

// Keys of some indices in the form that a hashing asks for, with their memory.
class OwnedStream {
 public:
  template <class IndexOf>
  OwnedStream(const KeySet& key_set, Hashing hashing, uint64_t hash_seed, uint64_t size,
              IndexOf index_of)
      : hashing_(hashing), hash_seed_(hash_seed) {
    if (hashing == Hashing::kXxh3Bytes) {
      for (uint64_t i = 0; i < size; ++i) key_set.AppendBytes(index_of(i), arena_);
      return;
    }
    words_.resize(size);
    for (uint64_t i = 0; i < size; ++i) {
      words_[i] = hashing == Hashing::kPrehashed ? key_set.Hash(index_of(i), hash_seed)
                                                 : key_set.U64(index_of(i));
    }
  }

  KeyStream stream() const {
    return {.hashing = hashing_, .words = words_, .bytes = arena_.keys(), .hash_seed = hash_seed_};
  }

 private:
  Hashing hashing_;
  uint64_t hash_seed_;
  std::vector<uint64_t> words_;
  ByteKeyArena arena_;
};

// One case in one round: the filter, its verification, and its samples.
class CaseRound {
 public:
  // `alive` is called between steps of Prepare, so that whoever waits for one knows which it is.
  CaseRound(const Case& work, const MeasureSpec& measure, uint64_t round,
            std::function<void()> alive)
      : work_(work),
        key_set_(work.key_set),
        measure_(measure),
        seeds_(measure.seed, round),
        alive_(std::move(alive)) {
    base_.round = static_cast<uint32_t>(round);
    base_.seed = seeds_.filter;
  }

  // Builds and verifies. What is wrong is remembered: samples then carry it.
  void Prepare() {
    try {
      const PresentKeys keys(*this);
      alive_();
      // What follows from the parameters alone (the best k) is found here and not in the timed
      // build.
      (void)work_.type->Build({.hashing = work_.build_hashing}, work_.params, seeds_.filter);
      alive_();
      Stopwatch build_time;
      std::optional<ScopedPages> pages(work_.pages);
      Result<std::unique_ptr<BuiltFilter>> built = keys.Build(build_time, held_);
      const bool has_tables = ScopedPages::tables() != 0;
      pages.reset();
      alive_();
      if (!built) return Fail(StatusOf(built.error()), built.error());
      if (work_.pages && !has_tables) {
        return Fail(SampleStatus::kSkipped,
                    fmt::format("{} has no table of its own or takes its memory elsewhere: its "
                                "pages cannot be chosen",
                                work_.type->info().name));
      }
      filter_ = std::move(*built);
      NoteFacts(build_time.seconds());

      const uint64_t queries = std::min(measure_.fpr_queries, key_set_.size() - held_);
      const OwnedStream absent(key_set_, work_.build_hashing, seeds_.hash, queries,
                               [&](uint64_t i) { return held_ + i; });
      alive_();
      std::set<std::string_view> targets;
      for (const Point& point : work_.points) targets.insert(point.target);
      const Verification verification = Verify({.type = work_.type,
                                                .filter = filter_.get(),
                                                .present =
                                                    [&](const auto& use) {
                                                      keys.ForEachPiece(held_, use);
                                                    },
                                                .absent = absent.stream(),
                                                .targets = {targets.begin(), targets.end()}});
      base_.fpr = verification.fpr;
      base_.filter->answers_digest = verification.answers_digest;
      if (!verification.problem.empty()) {
        Fail(SampleStatus::kWrongAnswers, verification.problem);
      }
    } catch (const std::bad_alloc&) {
      Fail(SampleStatus::kOutOfMemory, "out of memory while preparing the keys");
    }
  }

  Sample Measure(const Point& point) {
    Sample sample = base_;
    sample.point = point;
    if (sample.status != SampleStatus::kOk) return sample;
    if (IsLookup(point.mode)) {
      if (std::string reason = WhyNoSuchStream(*point.negative_share); !reason.empty()) {
        sample.status = SampleStatus::kSkipped;
        sample.reason = std::move(reason);
        return sample;
      }
    }
    try {
      if (point.mode == Mode::kInsert) {
        MeasureInsert(sample);
      } else if (!IsLookup(point.mode)) {
        MeasureBuild(sample);
      } else if (point.threads) {
        MeasureThreadedLookups(sample);
      } else {
        MeasureLookups(sample);
      }
    } catch (const std::bad_alloc&) {
      sample.status = SampleStatus::kOutOfMemory;
      sample.reason = "out of memory while preparing the stream";
      sample.ns_per_op.clear();
    }
    return sample;
  }

 private:
  // The keys that the filter is built from: all in memory, or made piece by piece.
  class PresentKeys {
   public:
    explicit PresentKeys(const CaseRound& round) : round_(round) {
      if (!round.work_.streams_keys()) all_.emplace(Piece(0, round.work_.given_keys()));
    }

    // `time` runs during the build alone, not while keys are made; `held` is the number of keys,
    // from the first on, that the filter then holds.
    Result<std::unique_ptr<BuiltFilter>> Build(Stopwatch& time, uint64_t& held) const {
      const Case& work = round_.work_;
      held = work.given_keys();
      if (work.fill) {
        auto filter = work.type->Create(work.keys, work.params, round_.seeds_.filter);
        if (!filter) return filter;
        time.Start();
        held = (*filter)->InsertUntilFull(all_->stream().words);
        time.Stop();
        return filter;
      }
      time.Start();
      if (all_) {
        auto built = work.type->Build(all_->stream(), work.params, round_.seeds_.filter);
        time.Stop();
        return built;
      }
      auto filter = work.type->Create(work.keys, work.params, round_.seeds_.filter);
      time.Stop();
      if (!filter) return filter;
      ForEachPiece(held, [&](const KeyStream& keys) {
        time.Start();
        (*filter)->InsertAll(keys.words, 1);
        time.Stop();
      });
      return filter;
    }

    // Where a case has a fill: the first `first` keys untimed, then those up to `end` in `time`.
    // Whether all of them were accepted; if the filter could not be made, `problem` says why.
    bool InsertInTwo(uint64_t first, uint64_t end, Stopwatch& time, std::string& problem) const {
      const auto filter =
          round_.work_.type->Create(round_.work_.keys, round_.work_.params, round_.seeds_.filter);
      if (!filter) {
        problem = filter.error();
        return false;
      }
      const std::span<const uint64_t> keys = std::span(all_->stream().words).first(end);
      uint64_t held = (*filter)->InsertUntilFull(keys.first(first));
      time.Start();
      held += (*filter)->InsertUntilFull(keys.subspan(first));
      time.Stop();
      return held == end;
    }

    // The first `count` keys.
    template <class Use>
    void ForEachPiece(uint64_t count, const Use& use) const {
      if (all_) return use(FirstOf(all_->stream(), count));
      constexpr uint64_t kPieceKeys = uint64_t{1} << 22;
      for (uint64_t first = 0; first < count; first += kPieceKeys) {
        use(Piece(first, std::min(kPieceKeys, count - first)).stream());
      }
    }

   private:
    static KeyStream FirstOf(KeyStream keys, uint64_t count) {
      keys.words = keys.words.first(std::min<size_t>(count, keys.words.size()));
      keys.bytes.size = std::min<size_t>(count, keys.bytes.size);
      return keys;
    }

    OwnedStream Piece(uint64_t first, uint64_t size) const {
      return OwnedStream(round_.key_set_, round_.work_.build_hashing, round_.seeds_.hash, size,
                         [first](uint64_t i) { return first + i; });
    }

    const CaseRound& round_;
    std::optional<OwnedStream> all_;
  };

  // Of a build that came to nothing.
  static SampleStatus StatusOf(std::string_view build_error) {
    if (build_error.starts_with(kNoHugePages)) return SampleStatus::kSkipped;
    if (build_error.starts_with("out of memory")) return SampleStatus::kOutOfMemory;
    return SampleStatus::kBuildFailed;
  }

  void Fail(SampleStatus status, std::string reason) {
    base_.status = status;
    base_.reason = std::move(reason);
  }

  void NoteFacts(double build_seconds) {
    FilterFacts facts;
    const BuildReport& report = filter_->Report();
    const double n = static_cast<double>(held_);
    facts.size_bytes = filter_->SizeInBytes();
    facts.allocated_bytes = filter_->AllocatedBytes();
    if (report.peak_bytes != 0) facts.peak_build_bytes = report.peak_bytes;
    // A report is about a build at once; keys that were inserted are those of the key set, all
    // distinct.
    facts.distinct_keys = work_.fill ? held_ : report.distinct_keys;
    facts.build_attempts = report.attempts;
    if (work_.fill) facts.keys_held = held_;
    if (held_ != 0) {
      facts.bits_per_key = static_cast<double>(facts.size_bytes) * 8 / n;
      facts.build_ns_per_key = build_seconds * 1e9 / n;
    }
    for (const Detail& detail : filter_->GetDetails()) {
      facts.extra.emplace(detail.name, detail.value);
    }
    const std::span<const std::byte> table = filter_->Table();
    facts.filter_digest = fmt::format("{:016x}", XXH3_64bits(table.data(), table.size()));
    facts.hash_bits = work_.type->info().hash_bits;
    const auto known = [](const Fact<uint64_t>& fact) {
      return fact.known() ? KnownBytes{fact.value(), ""} : KnownBytes{std::nullopt, fact.reason()};
    };
    const PagesOfTable pages = ReadPagesOfTable(table, SystemFiles("/"));
    facts.pages = {.page_bytes = known(pages.page_bytes),
                   .huge_page_bytes_asked = known(pages.huge_page_bytes_asked),
                   .huge_page_bytes = known(pages.huge_page_bytes)};
    base_.filter = std::move(facts);
  }

  // Building at once, or key by key.
  void MeasureBuild(Sample& sample) {
    if (held_ == 0) {
      sample.status = SampleStatus::kSkipped;
      sample.reason = "no keys: there is no time per key";
      return;
    }
    const PresentKeys keys(*this);
    uint64_t failed = 0;
    std::string last_error = "it held another number of keys";
    HealthProbe health;
    health.Begin();
    const ScopedPages pages(work_.pages);
    const Measured measured = MeasureTimed(Options(sample.point), [&] {
      Stopwatch time(&counters_);
      uint64_t held = 0;
      const auto built = keys.Build(time, held);
      if (!built) last_error = built.error();
      if (!built || held != held_) ++failed;
      return time.seconds();
    });
    sample.health = health.End();
    if (failed != 0) {
      sample.status = StatusOf(last_error);
      sample.reason = fmt::format("{} of the timed builds failed: {}", failed, last_error);
      return;
    }
    NoteTimes(measured, held_, sample);
  }

  // The last keys before a fill, on a filter that was given those before them.
  void MeasureInsert(Sample& sample) {
    const uint64_t given = work_.given_keys();
    const uint64_t first = given - work_.stretch_keys();
    if (held_ <= first) {
      sample.status = SampleStatus::kSkipped;
      sample.reason = given == 0 ? "no keys: there is no time per key"
                                 : fmt::format("it accepted {} keys and refused the next one: none "
                                               "of those from {} to {} can be timed",
                                               held_, first, given);
      return;
    }
    // The first key that is refused ends a filter, and is no insertion: those before it are timed.
    const uint64_t accepted = held_ - first;
    const PresentKeys keys(*this);
    uint64_t failed = 0;
    std::string last_error = "it held another number of keys";
    double shortest_seconds = std::numeric_limits<double>::infinity();
    MeasureOptions options = Options(sample.point);
    // A pass lasts as long as others do with the keys that are inserted untimed, which are most of
    // its work.
    options.pass_seconds = ShortestPassSeconds(
        measure_.pass_seconds * static_cast<double>(accepted) / static_cast<double>(held_),
        ClockStepNs());
    HealthProbe health;
    health.Begin();
    const ScopedPages pages(work_.pages);
    const Measured measured = MeasureTimed(options, [&] {
      Stopwatch time(&counters_);
      if (!keys.InsertInTwo(first, held_, time, last_error)) ++failed;
      shortest_seconds = std::min(shortest_seconds, time.seconds());
      return time.seconds();
    });
    sample.health = health.End();
    if (failed != 0) {
      sample.status = StatusOf(last_error);
      sample.reason = fmt::format("{} of the timed filters failed: {}", failed, last_error);
      return;
    }
    NoteTimes(measured, accepted, sample);
    if (sample.status != SampleStatus::kOk) return;
    std::string reason = WhyPiecesTooShort(shortest_seconds, ClockStepNs());
    if (!reason.empty()) {
      sample.status = SampleStatus::kInvalid;
      sample.reason = std::move(reason);
      sample.ns_per_op.clear();
    }
  }

  void MeasureLookups(Sample& sample) {
    const Point& point = sample.point;
    const Stream& stream = StreamOf(*point.negative_share, point.hashing);
    const KeyStream keys = stream.keys.stream();
    HealthProbe health;
    health.Begin();
    const Measured measured = MeasureLoop(Options(point), stream.expected_positives, [&] {
      return filter_->Count(keys, point.mode, point.target);
    });
    sample.health = health.End();
    sample.stream_lookups = keys.size();
    sample.positives = measured.last_result;
    sample.positives_expected = stream.expected_positives;
    if (measured.mismatches != 0) {
      sample.status = SampleStatus::kInvalid;
      sample.reason = fmt::format("the timed loop counted {} positive answers, expected {}",
                                  measured.last_result, stream.expected_positives);
      return;
    }
    NoteTimes(measured, keys.size(), sample);
  }

  // Threads over the one filter, each with a stream of its own, of which a thread that is measured
  // alone has the first.
  void MeasureThreadedLookups(Sample& sample) {
    const Point& point = sample.point;
    std::vector<KeyStream> streams;
    std::vector<uint64_t> expected;
    uint64_t lookups = 0;
    for (uint64_t thread = 0; thread < *point.threads; ++thread) {
      const Stream& stream = StreamOf(*point.negative_share, point.hashing, thread);
      streams.push_back(stream.keys.stream());
      expected.push_back(stream.expected_positives);
      lookups += streams.back().size();
    }
    const std::span<const int> cpus =
        std::span(work_.thread_cpus).first(static_cast<size_t>(*point.threads));
    HealthProbe health;
    health.Begin();
    const MeasuredThreads measured =
        MeasureThreads(Options(point), cpus, expected, [&](size_t thread) {
          return filter_->Count(streams[thread], point.mode, point.target);
        });
    if (!measured.problem.empty() && measured.slowest.mismatches == 0) {
      sample.status = SampleStatus::kSkipped;  // nothing was asked
      sample.reason = measured.problem;
      return;
    }
    sample.health = health.End();
    PutThreadHealth(measured.usage, sample.health);
    sample.stream_lookups = lookups;
    sample.positives = measured.slowest.last_result;
    sample.positives_expected = std::accumulate(expected.begin(), expected.end(), uint64_t{0});
    if (!measured.problem.empty()) {
      sample.status = SampleStatus::kInvalid;
      sample.reason = measured.problem;
      return;
    }
    sample.threads = ThreadFacts{.cpus = {cpus.begin(), cpus.end()},
                                 .fastest_seconds = measured.fastest_seconds,
                                 .slowest_seconds = measured.slowest.seconds};
    NoteTimes(measured.slowest, lookups, sample);
  }

  // `operations` per iteration, of all threads.
  void NoteTimes(const Measured& measured, uint64_t operations, Sample& sample) {
    sample.iterations_per_pass = measured.iterations;
    sample.operations_per_pass = measured.iterations * operations;
    if (!sample.point.threads) {
      sample.counters =
          counters_.PerOperation(*sample.operations_per_pass * measured.seconds.size());
    }
    if (std::string reason = WhyTooShort(measured.seconds, ClockStepNs()); !reason.empty()) {
      sample.status = SampleStatus::kInvalid;
      sample.reason = std::move(reason);
      sample.threads.reset();
      return;
    }
    const double per_pass = static_cast<double>(measured.iterations * operations);
    for (const double seconds : measured.seconds) {
      sample.ns_per_op.push_back(seconds * 1e9 / per_pass);
    }
    const std::optional<double> cycles_per_ns = CoreCyclesPerNanosecond();
    // Of one thread: several answer as many lookups in the time of one.
    const double fastest = *std::min_element(sample.ns_per_op.begin(), sample.ns_per_op.end()) *
                           static_cast<double>(sample.point.threads.value_or(1));
    if (cycles_per_ns && !work_.type->info().is_baseline && fastest * *cycles_per_ns < 1) {
      sample.status = SampleStatus::kInvalid;
      sample.reason = fmt::format("{:.3g} ns per operation is below one clock cycle", fastest);
      sample.ns_per_op.clear();
      sample.threads.reset();
    }
  }

  MeasureOptions Options(const Point& point) {
    return {.name = PointId(point),
            .passes = measure_.passes,
            .pass_seconds = ShortestPassSeconds(measure_.pass_seconds, ClockStepNs()),
            .counters = point.threads ? nullptr : &counters_};
  }

  // Why the keys allow no such share of absent ones; empty if they do.
  std::string WhyNoSuchStream(double negative_share) const {
    if (held_ == 0 && negative_share < 1) return "no keys: all lookups are of absent ones";
    if (key_set_.size() == held_ && negative_share > 0) {
      return "every key of the set is in the filter: there is no absent one to look up";
    }
    return {};
  }

  struct Stream {
    OwnedStream keys;
    uint64_t expected_positives;
  };

  // Points of a case share their streams: a share, a hashing and a thread make one.
  const Stream& StreamOf(double negative_share, Hashing hashing, uint64_t thread = 0) {
    auto& slot = streams_[{negative_share, hashing, thread}];
    if (slot == nullptr) {
      const uint64_t lookups = measure_.stream_lookups != 0 ? measure_.stream_lookups
                                                            : DefaultStreamLookups(held_);
      const LookupIndices lookup =
          MakeLookups(held_, key_set_.size(), lookups, negative_share,
                      thread == 0 ? seeds_.lookups : Mix64(seeds_.lookups + thread));
      OwnedStream keys(key_set_, hashing, seeds_.hash, lookup.indices.size(),
                       [&](uint64_t i) { return lookup.indices[i]; });
      const uint64_t expected =
          filter_->Count(keys.stream(), Mode::kLookupSingle, "scalar");
      slot = std::make_unique<Stream>(Stream{std::move(keys), expected});
    }
    return *slot;
  }

  const Case& work_;
  const KeySet& key_set_;
  const MeasureSpec& measure_;
  const Seeds seeds_;
  const std::function<void()> alive_;
  uint64_t held_ = 0;  // keys of the filter: those with an index below it
  Sample base_;        // what all samples of this case and round share
  std::unique_ptr<BuiltFilter> filter_;
  // Of the thread that measures, and of those that a build starts. Threads that look up together are
  // not counted: they wait for each other first.
  PerfCounters counters_;
  std::map<std::tuple<double, Hashing, uint64_t>, std::unique_ptr<Stream>> streams_;
};

}  // namespace

Sample UnmeasuredSample(const Point& point, uint64_t seed, uint64_t round, SampleStatus status,
                        std::string reason) {
  Sample sample;
  sample.point = point;
  sample.round = static_cast<uint32_t>(round);
  sample.seed = Seeds(seed, round).filter;
  sample.status = status;
  sample.reason = std::move(reason);
  return sample;
}

void MeasureCaseRound(const Case& work, const MeasureSpec& measure, uint64_t round,
                      std::span<const Point> points, const CaseRoundEvents& events) {
  CaseRound case_round(work, measure, round, events.alive);
  case_round.Prepare();
  events.prepared();
  for (const Point& point : points) events.record(case_round.Measure(point));
}

}  // namespace filterbench
