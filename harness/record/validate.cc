#include "harness/record/validate.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/record/document.h"
#include "harness/record/file.h"
#include "harness/record/samples_file.h"
#include "harness/record/summary.h"

namespace filterbench {
namespace {

using nlohmann::json;
using std::filesystem::path;

Result<json> ReadDocument(const path& file, std::string_view schema) {
  const Result<std::string> text = ReadWholeFile(file);
  if (!text) return Error{text.error()};
  Result<json> document = ParseStrictJson(*text);
  if (!document) return Error{fmt::format("{}: {}", file.string(), document.error())};
  if (auto error = ValidateDocument(schema, *document)) {
    return Error{fmt::format("{}: {}", file.string(), error->message)};
  }
  return document;
}

struct Counts {
  std::set<uint32_t> rounds;
  uint64_t passes = 0;
};

}  // namespace

std::optional<Error> WhyIncomplete(const json& manifest, std::span<const Sample> samples) {
  struct Seen {
    std::set<uint32_t> rounds;
    bool failed = false;  // then no later process measures it
  };
  std::map<std::string, Seen> seen;
  for (const Sample& sample : samples) {
    Seen& of_point = seen[PointId(sample.point)];
    of_point.rounds.insert(sample.round);
    of_point.failed |= sample.status != SampleStatus::kOk;
  }
  const json& spec = manifest["spec"];
  if (!spec.contains("points") || !spec.contains("measure")) {
    return Error{"spec: does not say what the sweep is"};
  }
  // A run older than processes counted its rounds alone.
  const uint64_t rounds = spec["measure"].value("rounds", uint64_t{1}) *
                          spec["measure"].value("processes", uint64_t{1});
  for (const json& point_json : spec["points"]) {
    const Result<Point> point = PointFromJson(point_json);
    if (!point) return Error{"spec.points: " + point.error()};
    const std::string id = PointId(*point);
    const Seen& of_point = seen[id];
    if (of_point.failed) continue;
    for (uint32_t round = 0; round < rounds; ++round) {
      if (of_point.rounds.contains(round)) continue;
      return Error{fmt::format("the sweep is not finished: point {} ({}, {} keys) has no sample of "
                               "round {}",
                               id, point->filter, point->keys, round)};
    }
  }
  return std::nullopt;
}

std::optional<Error> ValidateRun(const path& run_directory) {
  const Result<json> manifest = ReadDocument(run_directory / "manifest.json", "manifest");
  if (!manifest) return Error{manifest.error()};

  const path samples_path = run_directory / "samples.jsonl";
  const Result<SamplesFile> file = ReadSamples(run_directory);
  if (!file) return Error{file.error()};
  const auto at_line = [&](size_t line, const std::string& problem) {
    return Error{fmt::format("{}:{}: {}", samples_path.string(), line, problem)};
  };
  if (file->samples.empty()) return at_line(1, "there is no sample");
  if (file->torn_bytes > 0) return at_line(file->samples.size() + 1, "the last line is cut off");
  std::map<std::string, Counts> measured;
  std::set<uint64_t> sequences;
  for (size_t i = 0; i < file->samples.size(); ++i) {
    const Sample& sample = file->samples[i];
    if (!sequences.insert(sample.sequence).second) {
      return at_line(i + 1, fmt::format("sequence: {} occurs twice", sample.sequence));
    }
    Counts& counts = measured[PointId(sample.point)];
    if (!counts.rounds.insert(sample.round).second) {
      return at_line(i + 1, fmt::format("round: the point has two samples of round {}",
                                        sample.round));
    }
    counts.passes += sample.ns_per_op.size();
  }

  const path summary_path = run_directory / "summary.json";
  const Result<json> summary = ReadDocument(summary_path, "summary");
  if (!summary) return Error{summary.error()};
  const auto in_summary = [&](const std::string& problem) {
    return Error{fmt::format("{}: {}", summary_path.string(), problem)};
  };
  for (const char* field : {"run", "machine"}) {
    if ((*summary)[field] != (*manifest)[field]) {
      return in_summary(fmt::format("{}: is {}, manifest.json has {}", field,
                                    (*summary)[field].dump(), (*manifest)[field].dump()));
    }
  }
  const json& points = (*summary)["points"];
  for (size_t i = 0; i < points.size(); ++i) {
    const auto found = measured.find(points[i]["point_id"].get<std::string>());
    if (found == measured.end()) {
      return in_summary(fmt::format("points[{}].point_id: has no sample or occurs twice", i));
    }
    const std::pair<const char*, uint64_t> counts[] = {{"rounds", found->second.rounds.size()},
                                                       {"passes", found->second.passes}};
    for (const auto& [field, count] : counts) {
      if (points[i][field] != count) {
        return in_summary(fmt::format("points[{}].{}: is {}, there are {}", i, field,
                                      points[i][field].dump(), count));
      }
    }
    measured.erase(found);
  }
  if (!measured.empty()) {
    return in_summary(fmt::format("points: the point {} is missing", measured.begin()->first));
  }

  const path csv_path = run_directory / "summary.csv";
  const Result<std::string> csv = ReadWholeFile(csv_path);
  if (!csv) return Error{csv.error()};
  if (*csv != SummaryCsv(*summary)) {
    return Error{csv_path.string() + ": is not what follows from summary.json"};
  }

  const Result<json> theory = ReadDocument(run_directory / "theory.json", "theory");
  if (!theory) return Error{theory.error()};
  return std::nullopt;
}

}  // namespace filterbench
