#ifndef FILTERBENCH_HARNESS_RECORD_TESTING_H_
#define FILTERBENCH_HARNESS_RECORD_TESTING_H_

// Records made up for tests.

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "harness/record/sample.h"

namespace filterbench::record_testing {

inline Point MakePoint(std::string filter = "blocked_bloom", uint64_t keys = 1000000,
                       double bits_per_key = 10) {
  return {.filter = std::move(filter),
          .params = {{"bits_per_key", bits_per_key}, {"k", 6}},
          .keys = keys,
          .key_set = {},
          .mode = Mode::kLookupBatched,
          .negative_share = 0.5,
          .hashing = Hashing::kPrehashed,
          .target = "avx2"};
}

inline nlohmann::json MakeHealth() {
  return {{"involuntary_switches", 0},
          {"voluntary_switches", 0},
          {"migrations", nullptr},
          {"migrations_reason", "not readable"},
          {"minor_faults", 0},
          {"major_faults", 0},
          {"steal_ticks", 0},
          {"huge_page_bytes", 0},
          {"frequency_mhz", nullptr},
          {"frequency_mhz_reason", "no cpufreq"},
          {"cpu", 1}};
}

inline Sample MakeSample(uint64_t sequence = 0, Point point = MakePoint(), uint32_t round = 0) {
  Sample sample;
  sample.sequence = sequence;
  sample.time_utc = "2026-11-30T15:20:01.123Z";
  const double keys = static_cast<double>(point.keys);
  sample.point = std::move(point);
  sample.round = round;
  sample.seed = 0xfedcba9876543210;  // above 2^63
  sample.ns_per_op = {1.25, 1.5, 1.375};
  sample.operations_per_pass = 1234567;
  sample.iterations_per_pass = 16;
  sample.stream_lookups = 262144;
  sample.positives = 131200;
  sample.positives_expected = 131200;
  FilterFacts filter;
  filter.bits_per_key = sample.point.params.value("bits_per_key", 10.0);
  filter.size_bytes = static_cast<uint64_t>(*filter.bits_per_key * keys / 8);
  filter.allocated_bytes = filter.size_bytes + 64;
  filter.distinct_keys = sample.point.keys;
  filter.build_ns_per_key = 3.125;
  filter.extra = {{"load", 0.95}};
  filter.filter_digest = "0123456789abcdef";
  filter.answers_digest = "fedcba9876543210";
  sample.filter = filter;
  sample.fpr = MeasuredFpr{0.0096, 1e-5, 9660, 1000000};
  sample.health = MakeHealth();
  return sample;
}

inline Sample MakeFailure(SampleStatus status, std::string reason, uint64_t sequence = 0,
                          Point point = MakePoint(), uint32_t round = 0) {
  Sample sample;
  sample.sequence = sequence;
  sample.time_utc = "2026-11-30T15:20:02.000Z";
  sample.point = std::move(point);
  sample.round = round;
  sample.status = status;
  sample.reason = std::move(reason);
  return sample;
}

inline nlohmann::json MakeManifest(const std::string& run, const std::string& machine) {
  const nlohmann::json environment = {
      {"cpu",
       {{"brand", "A CPU"}, {"family", 25}, {"model", 1}, {"stepping", 1}, {"microcode", "0x1"}}},
      {"topology", {{"packages", 1}, {"cores", 2}, {"hardware_threads", 2}, {"numa_nodes", 1}}},
      {"caches",
       {{{"level", 1}, {"type", "data"}, {"size_bytes", 32768}, {"line_bytes", 64},
         {"shared_by", 1}}}},
      {"memory", {{"total_bytes", 1 << 30}, {"available_bytes", 1 << 29}}},
      {"kernel", "6.1"},
      {"hypervisor", nullptr},
      {"hypervisor_reason", "not readable"},
      {"mitigations", {{"meltdown", "Not affected"}}},
      {"frequency",
       {{"governor", nullptr},
        {"governor_reason", "no cpufreq"},
        {"boost", nullptr},
        {"boost_reason", "no cpufreq"},
        {"mhz", 2445.4}}},
      {"pages",
       {{"page_bytes", 4096}, {"transparent_huge_pages", "madvise"}, {"huge_pages_total", 0}}},
      {"aslr", 2},
      {"allowed_cpus", {0, 1}},
      {"cgroup_cpu_quota", nullptr},
      {"cgroup_cpu_quota_reason", "unlimited"},
      {"load_average", {0.5, 0.25, 0.125}},
      {"clock", {{"source", "tsc"}, {"resolution_ns", 1}}}};
  return {{"schema", "filterbench/manifest/1"},
          {"run", run},
          {"machine", machine},
          {"time_utc", "2026-11-30T15:20:01.000Z"},
          {"spec", {{"name", "quick"}}},
          {"spec_hash", "89abcdef01234567"},
          {"seed", 1},
          {"provenance",
           {{"git_commit", "0123456789abcdef0123456789abcdef01234567"},
            {"git_dirty", false},
            {"compiler", "GCC 12.2.0"},
            {"flags", "-O3"},
            {"build_type", "Release"},
            {"libraries", {{"highway", "1.0.3"}}},
            {"binary_xxh3", "0123456789abcdef"}}},
          {"targets",
           {{"compiled", {"avx2"}}, {"supported", {"avx2", "scalar"}}, {"best", "avx2"}}},
          {"environment", environment}};
}

}  // namespace filterbench::record_testing

#endif  // FILTERBENCH_HARNESS_RECORD_TESTING_H_
