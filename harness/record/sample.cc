#include "harness/record/sample.h"

#include <cmath>
#include <concepts>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "harness/record/document.h"
#include "harness/record/workload_record.h"
#include "harness/statistics.h"

namespace filterbench {
namespace {

using nlohmann::json;

template <class T>
json OrNull(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

constexpr std::pair<const char*, KnownBytes TablePages::*> kPageFields[] = {
    {"page_bytes", &TablePages::page_bytes},
    {"huge_page_bytes_asked", &TablePages::huge_page_bytes_asked},
    {"huge_page_bytes", &TablePages::huge_page_bytes}};

json FilterToJson(const FilterFacts& filter) {
  json facts = {{"size_bytes", filter.size_bytes},
                {"allocated_bytes", filter.allocated_bytes},
                {"peak_build_bytes", OrNull(filter.peak_build_bytes)},
                {"bits_per_key", OrNull(filter.bits_per_key)},
                {"distinct_keys", filter.distinct_keys},
                {"build_attempts", filter.build_attempts},
                {"build_ns_per_key", OrNull(filter.build_ns_per_key)},
                {"extra", json::object()},
                {"filter_digest", filter.filter_digest},
                {"answers_digest", filter.answers_digest},
                {"hash_bits", filter.hash_bits}};
  for (const auto& [name, value] : filter.extra) facts["extra"][name] = value;
  if (filter.keys_held) facts["keys_held"] = *filter.keys_held;
  if (!filter.peak_build_bytes) facts["peak_build_bytes_reason"] = "the filter does not say";
  if (!filter.bits_per_key) facts["bits_per_key_reason"] = "there are no keys";
  if (!filter.build_ns_per_key) {
    facts["build_ns_per_key_reason"] =
        filter.bits_per_key ? "the application does not say" : "there are no keys";
  }
  if (filter.pages) {
    for (const auto& [field, member] : kPageFields) {
      const KnownBytes& known = (*filter.pages).*member;
      facts[field] = OrNull(known.bytes);
      if (!known.bytes) facts[std::string(field) + "_reason"] = known.reason;
    }
  }
  return facts;
}

json FprToJson(const MeasuredFpr& fpr) {
  const Interval interval = BinomialInterval(fpr.false_positives, fpr.queries);
  json facts = {{"expected", OrNull(fpr.expected)},
                {"expected_instance_sd", OrNull(fpr.expected_instance_sd)},
                {"false_positives", fpr.false_positives},
                {"queries", fpr.queries},
                {"measured", nullptr},
                {"low", interval.low},
                {"high", interval.high}};
  // The schema refuses 0 queries.
  if (fpr.queries > 0) {
    facts["measured"] =
        static_cast<double>(fpr.false_positives) / static_cast<double>(fpr.queries);
  }
  if (!fpr.expected) facts["expected_reason"] = "the filter has no closed form";
  return facts;
}

// A field of a document that has obeyed its schema. What JSON Schema calls an integer may still be
// too large, or written as 1.0.
class Reader {
 public:
  Reader(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  template <class T>
  void Read(const char* field, std::optional<T>& value) {
    if (object_[field].is_null()) {
      value.reset();
    } else {
      Read(field, value.emplace());
    }
  }
  void Read(const char* field, std::string& value) { object_[field].get_to(value); }
  void Read(const char* field, double& value) { object_[field].get_to(value); }
  template <std::integral T>
  void Read(const char* field, T& value) {
    const json& number = object_[field];
    const bool fits = number.is_number_unsigned() ? std::in_range<T>(number.get<uint64_t>())
                                                  : number.is_number_integer() &&
                                                        std::in_range<T>(number.get<int64_t>());
    if (!fits) {
      Fail(field, fmt::format("must be a whole number that fits into {} bits, is {}",
                              8 * sizeof(T), number.dump()));
      return;
    }
    value = number.get<T>();
  }
  void Fail(const char* field, const std::string& problem) {
    if (!error_) error_ = Error{fmt::format("{}{}: {}", path_, field, problem)};
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const json& object_;
  std::string path_;
  std::optional<Error> error_;
};

Result<FilterFacts> FilterFromJson(const json& facts) {
  FilterFacts filter;
  Reader reader(facts, "filter.");
  reader.Read("size_bytes", filter.size_bytes);
  reader.Read("allocated_bytes", filter.allocated_bytes);
  reader.Read("peak_build_bytes", filter.peak_build_bytes);
  reader.Read("bits_per_key", filter.bits_per_key);
  reader.Read("distinct_keys", filter.distinct_keys);
  if (facts.contains("keys_held")) reader.Read("keys_held", filter.keys_held);
  reader.Read("build_attempts", filter.build_attempts);
  reader.Read("build_ns_per_key", filter.build_ns_per_key);
  for (const auto& [name, value] : facts["extra"].items()) {
    filter.extra.emplace(name, value.get<double>());
  }
  reader.Read("filter_digest", filter.filter_digest);
  reader.Read("answers_digest", filter.answers_digest);
  reader.Read("hash_bits", filter.hash_bits);
  if (facts.contains("page_bytes")) {
    filter.pages.emplace();
    for (const auto& [field, member] : kPageFields) {
      KnownBytes& known = (*filter.pages).*member;
      if (!facts.contains(field)) {
        reader.Fail(field, "is missing beside page_bytes");
        break;
      }
      reader.Read(field, known.bytes);
      if (!known.bytes) known.reason = facts.value(std::string(field) + "_reason", "");
    }
  }
  if (reader.error()) return *reader.error();
  return filter;
}

Result<MeasuredFpr> FprFromJson(const json& facts) {
  MeasuredFpr fpr;
  Reader reader(facts, "fpr.");
  reader.Read("expected", fpr.expected);
  reader.Read("expected_instance_sd", fpr.expected_instance_sd);
  reader.Read("false_positives", fpr.false_positives);
  reader.Read("queries", fpr.queries);
  if (!reader.error() && fpr.false_positives > fpr.queries) {
    reader.Fail("false_positives", "exceeds queries");
  }
  if (!reader.error()) {
    // Mathematical libraries differ in the last digits.
    const json expected = FprToJson(fpr);
    for (const char* field : {"measured", "low", "high"}) {
      const double stated = facts[field].get<double>();
      const double follows = expected[field].get<double>();
      if (std::abs(stated - follows) > 1e-5 * follows) {
        reader.Fail(field, fmt::format("is {}, but {} follows from the counts", stated, follows));
      }
    }
  }
  if (reader.error()) return *reader.error();
  return fpr;
}

}  // namespace

json SampleToJson(const Sample& sample) {
  json document = {{"schema", "filterbench/sample/1"},
                   {"sequence", sample.sequence},
                   {"time_utc", sample.time_utc},
                   {"point_id", PointId(sample.point)},
                   {"point", PointToJson(sample.point)},
                   {"round", sample.round},
                   {"seed", sample.seed},
                   {"status", kSampleStatusNames[static_cast<size_t>(sample.status)]},
                   {"reason", sample.reason.empty() ? json() : json(sample.reason)},
                   {"ns_per_op", sample.ns_per_op},
                   {"operations_per_pass", OrNull(sample.operations_per_pass)},
                   {"iterations_per_pass", OrNull(sample.iterations_per_pass)},
                   {"stream_lookups", OrNull(sample.stream_lookups)},
                   {"positives", OrNull(sample.positives)},
                   {"positives_expected", OrNull(sample.positives_expected)},
                   {"filter", sample.filter ? FilterToJson(*sample.filter) : json()},
                   {"fpr", sample.fpr ? FprToJson(*sample.fpr) : json()},
                   {"health", sample.health}};
  if (sample.process) document["process"] = *sample.process;
  if (!sample.counters.is_null()) document["counters"] = sample.counters;
  if (sample.threads) {
    document["threads"] = {{"cpus", sample.threads->cpus},
                           {"fastest_seconds", sample.threads->fastest_seconds},
                           {"slowest_seconds", sample.threads->slowest_seconds}};
  }
  if (!sample.workload.is_null()) document["workload"] = sample.workload;
  return document;
}

Result<Sample> SampleFromJson(const json& document) {
  if (auto error = ValidateDocument("sample", document)) return *error;
  Sample sample;
  Reader reader(document, "");
  reader.Read("sequence", sample.sequence);
  reader.Read("time_utc", sample.time_utc);
  if (document.contains("process")) reader.Read("process", sample.process);
  reader.Read("round", sample.round);
  reader.Read("seed", sample.seed);
  for (size_t i = 0; i < std::size(kSampleStatusNames); ++i) {
    if (document["status"] == kSampleStatusNames[i]) sample.status = static_cast<SampleStatus>(i);
  }
  if (!document["reason"].is_null()) reader.Read("reason", sample.reason);
  document["ns_per_op"].get_to(sample.ns_per_op);
  reader.Read("operations_per_pass", sample.operations_per_pass);
  reader.Read("iterations_per_pass", sample.iterations_per_pass);
  reader.Read("stream_lookups", sample.stream_lookups);
  reader.Read("positives", sample.positives);
  reader.Read("positives_expected", sample.positives_expected);
  sample.health = document["health"];
  sample.counters = document.value("counters", json());
  sample.workload = document.value("workload", json());
  if (reader.error()) return *reader.error();

  Result<Point> point = PointFromJson(document["point"]);
  if (!point) return Error{point.error()};
  sample.point = std::move(*point);
  if (const std::string id = PointId(sample.point); document["point_id"] != id) {
    return Error{fmt::format("point_id: is {}, but the point's is {}",
                             document["point_id"].get<std::string>(), id)};
  }
  if (!sample.workload.is_null()) {
    if (!sample.point.workload) return Error{"workload: the point has none"};
    if (std::string problem = WorkloadProblem(sample.workload); !problem.empty()) {
      return Error{std::move(problem)};
    }
  } else if (sample.point.workload && sample.status == SampleStatus::kOk) {
    return Error{"workload: is missing"};
  }
  if (!document["filter"].is_null()) {
    Result<FilterFacts> filter = FilterFromJson(document["filter"]);
    if (!filter) return Error{filter.error()};
    sample.filter = std::move(*filter);
  }
  if (const auto threads = document.find("threads"); threads != document.end()) {
    if (!sample.point.threads) return Error{"threads: the point has one"};
    ThreadFacts& facts = sample.threads.emplace();
    threads->at("cpus").get_to(facts.cpus);
    threads->at("fastest_seconds").get_to(facts.fastest_seconds);
    threads->at("slowest_seconds").get_to(facts.slowest_seconds);
    if (facts.cpus.size() != *sample.point.threads) {
      return Error{fmt::format("threads.cpus: has {} CPUs for {} threads", facts.cpus.size(),
                               *sample.point.threads)};
    }
  }
  if (!document["fpr"].is_null()) {
    Result<MeasuredFpr> fpr = FprFromJson(document["fpr"]);
    if (!fpr) return Error{fpr.error()};
    sample.fpr = *fpr;
  }
  return sample;
}

std::string FormatUtc(std::chrono::system_clock::time_point time) {
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(milliseconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)),
                     (milliseconds - seconds).count());
}

}  // namespace filterbench
