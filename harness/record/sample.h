#ifndef FILTERBENCH_HARNESS_RECORD_SAMPLE_H_
#define FILTERBENCH_HARNESS_RECORD_SAMPLE_H_

// A sample: what came of measuring one point once, on one filter built with one seed. One line of
// samples.jsonl (results/README.md, results/schema/sample.json).

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/fpr.h"
#include "filters/result.h"
#include "harness/spec/point.h"

namespace filterbench {

enum class SampleStatus {
  kOk,
  kSkipped,       // not tried
  kInvalid,       // the timed loop cannot have done the work that it claims
  kOutOfMemory,
  kBuildFailed,
  kTimedOut,      // the filter did not return within the time that it was given
  kCrashed,       // the process in which the filter was measured died
  kWrongAnswers,  // a false negative, kernels that differ, an FPR that theory rules out
};
// From good to bad: the worst status of its samples is the status of a point.
inline constexpr std::string_view kSampleStatusNames[] = {
    "ok",           "skipped",   "invalid", "out_of_memory",
    "build_failed", "timed_out", "crashed", "wrong_answers"};

// A number of bytes, or why it is not known.
struct KnownBytes {
  std::optional<uint64_t> bytes;
  std::string reason;  // empty if and only if known

  bool operator==(const KnownBytes&) const = default;
};

// The pages that a filter's table lies on.
struct TablePages {
  KnownBytes page_bytes;             // of its mapping
  KnownBytes huge_page_bytes_asked;  // of its memory: what is marked for huge pages
  KnownBytes huge_page_bytes;        // and what lies on them

  bool operator==(const TablePages&) const = default;
};

// Facts about the filter that was measured.
struct FilterFacts {
  uint64_t size_bytes = 0;
  uint64_t allocated_bytes = 0;
  std::optional<uint64_t> peak_build_bytes;
  std::optional<double> bits_per_key;  // of size_bytes; nothing without keys
  uint64_t distinct_keys = 0;
  // Keys that it holds where it was filled key by key (Point::fill): those before the first that it
  // refused.
  std::optional<uint64_t> keys_held;
  uint64_t build_attempts = 1;
  std::optional<double> build_ns_per_key;  // of the one untimed build; nothing without keys
  std::map<std::string, double> extra;     // the filter's Details
  std::string filter_digest;               // XXH3-64, 16 hex digits
  std::string answers_digest;              // XXH3-64, 16 hex digits
  int hash_bits = 64;
  std::optional<TablePages> pages;  // nothing in older records

  bool operator==(const FilterFacts&) const = default;
};

// The false-positive rate (FPR) of the filter that was measured. The rate and its interval follow
// from the counts and are added where the sample is written.
struct MeasuredFpr {
  std::optional<double> expected;              // theory of this instance
  std::optional<double> expected_instance_sd;  // see FprEstimate
  uint64_t false_positives = 0;
  uint64_t queries = 0;

  bool operator==(const MeasuredFpr&) const = default;
};

// What several threads did, one value per pass.
struct ThreadFacts {
  std::vector<int> cpus;  // one per thread
  // From the common start until the first thread, and the last, was done with all its iterations.
  std::vector<double> fastest_seconds;
  std::vector<double> slowest_seconds;

  bool operator==(const ThreadFacts&) const = default;
};

struct Sample {
  uint64_t sequence = 0;  // position in the run, from 0
  std::string time_utc;   // see FormatUtc
  Point point;
  // Which process of the run measured it, from 0. Nothing in older records: each round then counts
  // as a process of its own.
  std::optional<uint32_t> process;
  uint32_t round = 0;  // which build of the filter, from 0, over all processes
  uint64_t seed = 0;   // of that build
  SampleStatus status = SampleStatus::kOk;
  std::string reason;  // empty if and only if ok

  std::vector<double> ns_per_op;  // one per pass; empty if and only if not ok
  // Nothing where there was no timed loop; the last three also in mode build. Of all threads.
  std::optional<uint64_t> operations_per_pass;
  std::optional<uint64_t> iterations_per_pass;
  std::optional<uint64_t> stream_lookups;
  std::optional<uint64_t> positives;  // per iteration
  std::optional<uint64_t> positives_expected;

  std::optional<FilterFacts> filter;  // nothing where no filter was built
  std::optional<MeasuredFpr> fpr;     // nothing for baselines and where it was not measured
  nlohmann::json health;              // HealthProbe::End(); null where nothing was timed
  nlohmann::json counters;            // PerfCounters::PerOperation(); null where nothing was counted
  std::optional<ThreadFacts> threads;  // where the point has threads and they were timed
  nlohmann::json workload;            // WorkloadToJson(); null where no workload was counted

  bool operator==(const Sample&) const = default;
};

nlohmann::json SampleToJson(const Sample& sample);

// Strict: the schema is obeyed, the point's identity is the one that the line states, and what was
// added on writing agrees with the counts. The error starts with the field.
Result<Sample> SampleFromJson(const nlohmann::json& json);

// "2026-11-30T15:20:01.123Z".
std::string FormatUtc(std::chrono::system_clock::time_point time);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_SAMPLE_H_
