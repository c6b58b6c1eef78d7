#include "harness/record/summary.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "harness/record/workload_record.h"

namespace filterbench {
namespace {

using nlohmann::json;

// What the samples of one point have in common.
struct Group {
  std::string id;
  Point point;
  std::vector<const Sample*> samples;  // by round
  SampleStatus status = SampleStatus::kOk;
  std::string reason;
  std::vector<double> ns_per_op;      // all passes
  NestedValues nested_ns_per_op;      // the same
  std::optional<double> median_ns;    // only if the status is ok
  std::optional<uint64_t> size_bytes;
  std::optional<double> bits_per_key;
};

std::vector<Group> GroupByPoint(std::span<const Sample> samples) {
  std::vector<Group> groups;
  std::unordered_map<std::string, size_t> index;
  for (const Sample& sample : samples) {
    const std::string id = PointId(sample.point);
    const auto [found, is_new] = index.emplace(id, groups.size());
    if (is_new) {
      groups.emplace_back();
      groups.back().id = id;
      groups.back().point = sample.point;
    }
    groups[found->second].samples.push_back(&sample);
  }
  for (Group& group : groups) {
    std::stable_sort(group.samples.begin(), group.samples.end(),
                     [](const Sample* a, const Sample* b) { return a->round < b->round; });
    std::vector<const FilterFacts*> filters;
    for (const Sample* sample : group.samples) {
      if (sample->status > group.status) {
        group.status = sample->status;
        group.reason = sample->reason;
      }
      group.ns_per_op.insert(group.ns_per_op.end(), sample->ns_per_op.begin(),
                             sample->ns_per_op.end());
      if (sample->filter) filters.push_back(&*sample->filter);
    }
    group.nested_ns_per_op = NestTimes(group.samples);
    if (group.status == SampleStatus::kOk) group.median_ns = Median(group.ns_per_op);
    if (filters.empty()) continue;
    // Some structures come out in another size for another seed. A size that one of them really
    // had: the lower middle.
    const auto middle = filters.begin() + static_cast<ptrdiff_t>((filters.size() - 1) / 2);
    std::nth_element(filters.begin(), middle, filters.end(),
                     [](const FilterFacts* a, const FilterFacts* b) {
                       return a->size_bytes < b->size_bytes;
                     });
    group.size_bytes = (*middle)->size_bytes;
    group.bits_per_key = (*middle)->bits_per_key;
  }
  return groups;
}

// --- The machine's floor ---

struct Floor {
  double ns_per_op = 0;
  std::vector<std::string> from;  // point ids
};

// Groups by the bytes of their tables, of each size the fastest.
using BySize = std::map<uint64_t, const Group*>;

// Linear in the logarithm of the size between the two sizes around `size_bytes`; outside of all
// sizes the nearest one, up to a factor of `reach`.
std::optional<Floor> Interpolate(const BySize& floors, uint64_t size_bytes, double reach) {
  if (floors.empty()) return std::nullopt;
  const auto only = [](const Group& group) { return Floor{*group.median_ns, {group.id}}; };
  const auto above = floors.lower_bound(size_bytes);
  const double size = static_cast<double>(size_bytes);
  if (above != floors.end() && above->first == size_bytes) return only(*above->second);
  if (above == floors.end()) {
    const auto& [largest, group] = *floors.rbegin();
    if (size > static_cast<double>(largest) * reach) return std::nullopt;
    return only(*group);
  }
  if (above == floors.begin()) {
    if (size * reach < static_cast<double>(above->first)) return std::nullopt;
    return only(*above->second);
  }
  const auto below = std::prev(above);
  const double low = static_cast<double>(below->first);
  const double weight = std::log(size / low) / std::log(static_cast<double>(above->first) / low);
  return Floor{std::lerp(*below->second->median_ns, *above->second->median_ns, weight),
               {below->second->id, above->second->id}};
}

// The points of touch_lines that may be floors: few among many, so they are found once.
std::vector<const Group*> FindFloors(const std::vector<Group>& groups) {
  std::vector<const Group*> floors;
  for (const Group& group : groups) {
    if (group.point.filter != "touch_lines" || !group.median_ns || !group.size_bytes) continue;
    const auto lines = group.point.params.find("lines");
    if (lines != group.point.params.end() && *lines == 1) floors.push_back(&group);
  }
  return floors;
}

// The floor of a point: what one random cache line costs in a table of its size. Every target of
// touch_lines and every value of its other parameters is a way to get there; the fastest counts.
// The first of these sets of touch_lines points decides that has sizes on both sides, or one within
// a tenth; if none has, the first with one within a factor of two:
//   1. of the same key set, share of negatives and key count
//   2. of any key count: the size of the table is what costs
//   3. of the share of negatives that is nearest: its lookups touch the same lines
//   4. of any key set, if the stream holds hashes: it is the same then
// Always of the same mode, way of hashing, pages and number of threads.
Result<Floor> FindFloor(const Group& group, const std::vector<const Group*>& floors) {
  if (group.point.mode == Mode::kWorkload) return Error{"a workload has no floor"};
  if (!IsLookup(group.point.mode)) return Error{"building has no floor"};
  if (!group.median_ns) return Error{"the point has no time"};
  if (!group.size_bytes || *group.size_bytes == 0) return Error{"the point has no table"};

  const double share = group.point.negative_share.value_or(0);
  const auto distance = [&](const Group& floor) {
    return std::abs(floor.point.negative_share.value_or(0) - share);
  };
  std::vector<const Group*> all;
  for (const Group* floor : floors) {
    if (floor->point.mode == group.point.mode && floor->point.hashing == group.point.hashing &&
        floor->point.pages == group.point.pages && floor->point.threads == group.point.threads) {
      all.push_back(floor);
    }
  }
  if (all.empty()) {
    std::string reason =
        fmt::format("the run has no touch_lines with lines = 1 in mode {} and hashing {}",
                    kModeNames[static_cast<size_t>(group.point.mode)],
                    kHashingNames[static_cast<size_t>(group.point.hashing)]);
    if (group.point.pages) {
      reason += fmt::format(" on {} pages", kPagesNames[static_cast<size_t>(*group.point.pages)]);
    }
    if (group.point.threads) reason += fmt::format(" by {} threads", *group.point.threads);
    return Error{std::move(reason)};
  }

  enum { kSameAll, kAnyKeys, kNearestShare, kAnyKeySet, kSets };
  BySize sets[kSets];
  for (int set = 0; set < kSets; ++set) {
    if (set == kAnyKeySet && group.point.hashing != Hashing::kPrehashed) continue;
    std::vector<const Group*> members;
    for (const Group* floor : all) {
      if (set < kAnyKeySet && !(floor->point.key_set == group.point.key_set)) continue;
      if (set < kNearestShare && distance(*floor) != 0) continue;
      if (set < kAnyKeys && floor->point.keys != group.point.keys) continue;
      members.push_back(floor);
    }
    double nearest = 1;
    for (const Group* floor : members) nearest = std::min(nearest, distance(*floor));
    for (const Group* floor : members) {
      if (distance(*floor) > nearest) continue;
      const Group*& best = sets[set][*floor->size_bytes];
      if (best == nullptr || *floor->median_ns < *best->median_ns) best = floor;
    }
  }
  for (double reach : {1.1, 2.0}) {
    for (const BySize& set : sets) {
      if (auto floor = Interpolate(set, *group.size_bytes, reach)) return *floor;
    }
  }
  return Error{fmt::format("no touch_lines table is within a factor of two of {} bytes",
                           *group.size_bytes)};
}

// --- Entries ---

// Counts of all rounds added up; theory as the mean over the lookups.
json PooledFpr(const Group& group) {
  uint64_t false_positives = 0;
  uint64_t queries = 0;
  double expected_false_positives = 0;
  bool has_theory = true;
  for (const Sample* sample : group.samples) {
    if (!sample->fpr) continue;
    false_positives += sample->fpr->false_positives;
    queries += sample->fpr->queries;
    has_theory &= sample->fpr->expected.has_value();
    expected_false_positives +=
        sample->fpr->expected.value_or(0) * static_cast<double>(sample->fpr->queries);
  }
  if (queries == 0) return nullptr;
  const Interval interval = BinomialInterval(false_positives, queries);
  const double all = static_cast<double>(queries);
  json fpr = {{"expected", nullptr},
              {"measured", static_cast<double>(false_positives) / all},
              {"low", interval.low},
              {"high", interval.high},
              {"false_positives", false_positives},
              {"queries", queries}};
  if (has_theory) {
    fpr["expected"] = std::min(1.0, expected_false_positives / all);
  } else {
    fpr["expected_reason"] = "the filter has no closed form";
  }
  return fpr;
}

json TimeToJson(const Group& group) {
  if (!group.median_ns) return nullptr;
  const Interval interval = *NestedMedianInterval(group.nested_ns_per_op);
  return {{"median", *group.median_ns},
          {"low", interval.low},
          {"high", interval.high},
          {"confidence", interval.confidence},
          {"min", *std::min_element(group.ns_per_op.begin(), group.ns_per_op.end())}};
}

// Adds `counters`, the median of each over the samples that have it, where any was asked for. Names
// that share a reason for having none share its text.
void PutCounters(const Group& group, json& entry) {
  std::map<std::string, std::vector<double>> values;
  std::map<std::string, std::string> reasons;
  for (const Sample* sample : group.samples) {
    for (const auto& [name, counter] : sample->counters.items()) {
      std::vector<double>& known = values[name];
      if (counter["per_op"].is_null()) {
        reasons.emplace(name, counter["reason"]);
      } else {
        known.push_back(counter["per_op"]);
      }
    }
  }
  if (values.empty() || group.status != SampleStatus::kOk) return;
  std::map<std::string, std::string> names_by_reason;
  for (const auto& [name, known] : values) {
    const std::optional<double> median = Median(known);
    entry["counters"][name] = median ? json(*median) : json();
    if (median) continue;
    std::string& names = names_by_reason[reasons[name]];
    names += (names.empty() ? "" : ", ") + name;
  }
  std::string text;
  for (const auto& [reason, names] : names_by_reason) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", names, reason);
  }
  if (!text.empty()) entry["counters_reason"] = text;
}

// Seeds that the builds tried. A build that failed tried all that it may, however many that are.
void PutBuildAttempts(const Group& group, json& entry) {
  std::vector<double> attempts;
  uint64_t failed = 0;
  for (const Sample* sample : group.samples) {
    if (sample->filter) {
      attempts.push_back(static_cast<double>(sample->filter->build_attempts));
    } else {
      failed += sample->status == SampleStatus::kBuildFailed ? 1 : 0;
    }
  }
  if (attempts.empty() && failed == 0) return;
  json& facts = entry["build_attempts"];
  facts = {{"builds", attempts.size()}, {"failed_builds", failed}};
  if (attempts.empty()) {
    for (const char* field : {"median", "mean", "max"}) facts[field] = nullptr;
    facts["reason"] = "no build succeeded";
    return;
  }
  facts["median"] = *Median(attempts);
  facts["mean"] = std::accumulate(attempts.begin(), attempts.end(), 0.0) /
                  static_cast<double>(attempts.size());
  facts["max"] = *std::max_element(attempts.begin(), attempts.end());
}

// What the filter took of the memory: of one build, that whose size stands in the entry.
void PutMemory(const Group& group, json& entry) {
  std::vector<const FilterFacts*> filters;
  for (const Sample* sample : group.samples) {
    if (sample->filter) filters.push_back(&*sample->filter);
  }
  const auto put = [&](const std::string& field, const auto& value, const std::string& reason) {
    if (value) {
      entry[field] = *value;
    } else {
      entry[field] = nullptr;
      entry[field + "_reason"] = reason;
    }
  };
  if (filters.empty()) {
    for (const char* field :
         {"allocated_bytes", "peak_build_bytes_per_key", "huge_page_bytes", "slots_per_key"}) {
      put(field, std::optional<uint64_t>(), "no filter was built");
    }
    return;
  }
  // The lower middle, as in GroupByPoint.
  const auto middle = filters.begin() + static_cast<ptrdiff_t>((filters.size() - 1) / 2);
  std::nth_element(filters.begin(), middle, filters.end(),
                   [](const FilterFacts* a, const FilterFacts* b) {
                     return a->size_bytes < b->size_bytes;
                   });
  const FilterFacts& filter = **middle;
  put("allocated_bytes", std::optional(filter.allocated_bytes), "");
  const double keys = static_cast<double>(filter.keys_held.value_or(group.point.keys));
  std::optional<double> peak;
  if (filter.peak_build_bytes && keys > 0) {
    peak = static_cast<double>(*filter.peak_build_bytes) / keys;
  }
  put("peak_build_bytes_per_key", peak,
      filter.peak_build_bytes ? "there are no keys" : "the filter does not say");
  // Equal hashes have one slot.
  const double distinct = static_cast<double>(filter.distinct_keys);
  const auto slots = filter.extra.find("slots");
  const bool has_slots = slots != filter.extra.end();
  std::optional<double> slots_per_key;
  if (has_slots && distinct > 0) slots_per_key = slots->second / distinct;
  put("slots_per_key", slots_per_key,
      has_slots ? "there are no keys" : "the filter does not count slots");
  const KnownBytes huge = filter.pages ? filter.pages->huge_page_bytes
                                       : KnownBytes{std::nullopt, "not recorded"};
  put("huge_page_bytes", huge.bytes, huge.reason);
}

// What the workload came to, over all samples that counted it.
void PutWorkload(const Group& group, json& entry) {
  std::vector<json> workloads;
  for (const Sample* sample : group.samples) {
    if (!sample->workload.is_null()) workloads.push_back(sample->workload);
  }
  if (!workloads.empty()) entry["workload"] = PoolWorkloads(workloads);
}

// What the times of all repetitions tell about themselves. `asked_width` is null where none was.
void AddRepeatability(const Group& group, const json& asked_width, json& entry) {
  if (!group.median_ns) return;
  if (asked_width.is_number()) {
    const Stability stability = *Judge(group.nested_ns_per_op, asked_width.get<double>());
    entry["stability"] = {{"asked_width", stability.asked_width},
                          {"width", stability.width},
                          {"stable", stability.stable}};
  }
  entry["variance_shares"] = nullptr;
  if (const Result<VarianceShares> shares = ShareVariance(group.nested_ns_per_op)) {
    entry["variance_shares"] = {
        {"process", shares->process}, {"build", shares->build}, {"pass", shares->pass}};
  } else {
    entry["variance_shares_reason"] = shares.error();
  }
  entry["clusters"] = nullptr;
  if (const Result<Clusters> clusters = FindClusters(group.nested_ns_per_op)) {
    entry["clusters"] = {
        {"centers_ns", clusters->centers},
        {"shares", clusters->shares},
        {"explained_by", kLevelNames[static_cast<size_t>(clusters->explained_by)]}};
  } else {
    entry["clusters_reason"] = clusters.error();
  }
}

// The medians over the points; null where no point has shares.
json MedianVarianceShares(const json& points) {
  std::map<std::string, std::vector<double>> by_level;
  for (const json& entry : points) {
    const auto shares = entry.find("variance_shares");
    if (shares == entry.end() || shares->is_null()) continue;
    for (const auto& [level, share] : shares->items()) {
      by_level[level].push_back(share.get<double>());
    }
  }
  if (by_level.empty()) return nullptr;
  json medians = {{"points", by_level.begin()->second.size()}};
  for (const auto& [level, shares] : by_level) medians[level] = *Median(shares);
  return medians;
}

json EntryToJson(const Group& group, const std::vector<const Group*>& floors,
                 const json& asked_width) {
  std::set<uint32_t> rounds;
  std::vector<double> build_ns_per_key;
  json filter_digests = json::array();
  json answers_digests = json::array();
  json keys_held = json::array();
  for (const Sample* sample : group.samples) {
    rounds.insert(sample->round);
    if (!sample->filter) continue;
    filter_digests.push_back(sample->filter->filter_digest);
    answers_digests.push_back(sample->filter->answers_digest);
    if (sample->filter->keys_held) keys_held.push_back(*sample->filter->keys_held);
    if (sample->filter->build_ns_per_key) {
      build_ns_per_key.push_back(*sample->filter->build_ns_per_key);
    }
  }
  const auto or_null = [](const auto& value) { return value ? json(*value) : json(); };
  json entry = {{"point_id", group.id},
                {"point", PointToJson(group.point)},
                {"status", kSampleStatusNames[static_cast<size_t>(group.status)]},
                {"reason", group.reason.empty() ? json() : json(group.reason)},
                {"rounds", rounds.size()},
                {"passes", group.ns_per_op.size()},
                {"ns_per_op", TimeToJson(group)},
                {"floor", nullptr},
                {"floor_reason", nullptr},
                {"size_bytes", or_null(group.size_bytes)},
                {"bits_per_key", or_null(group.bits_per_key)},
                {"build_ns_per_key", or_null(Median(build_ns_per_key))},
                {"fpr", PooledFpr(group)},
                {"filter_digest", std::move(filter_digests)},
                {"answers_digest", std::move(answers_digests)}};
  AddRepeatability(group, asked_width, entry);
  if (group.point.fill) entry["keys_held"] = std::move(keys_held);
  PutCounters(group, entry);
  PutMemory(group, entry);
  if (group.point.mode == Mode::kWorkload) {
    PutWorkload(group, entry);
  } else {
    PutBuildAttempts(group, entry);
  }
  if (group.point.threads && group.median_ns) {
    entry["operations_per_second"] = 1e9 / *group.median_ns;
  }
  if (const Result<Floor> floor = FindFloor(group, floors)) {
    entry["floor"] = {{"ns_per_op", floor->ns_per_op},
                      {"ratio", *group.median_ns / floor->ns_per_op},
                      {"from", floor->from}};
  } else {
    entry["floor_reason"] = floor.error();
  }
  for (const char* field : {"bits_per_key", "build_ns_per_key"}) {
    if (!group.size_bytes || !entry[field].is_null()) continue;
    entry[std::string(field) + "_reason"] =
        group.bits_per_key ? "the application does not say" : "there are no keys";
  }
  return entry;
}

// --- CSV ---

std::string CsvCell(const json& value) {
  std::string text;
  if (value.is_string()) {
    text = value.get<std::string>();
  } else if (value.is_array()) {
    for (const json& part : value) text += (text.empty() ? "" : ";") + CsvCell(part);
  } else if (!value.is_null()) {
    text = value.dump();
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

using Row = std::map<std::string, std::string>;

// Leaves by their path. A null is no leaf: it may stand for an object.
void Flatten(const json& value, const std::string& path, Row& row) {
  if (value.is_null()) return;
  if (!value.is_object()) {
    // Objects in a list have no cell.
    if (!value.is_array() || value.empty() || !value.front().is_object()) row[path] = CsvCell(value);
    return;
  }
  for (const auto& [key, child] : value.items()) {
    Flatten(child, path.empty() ? key : path + "." + key, row);
  }
}

// The order of columns; "x*" stands for all that begin with "x". Those of a file whether a point
// has them or not, but for the parameters; others follow by name.
constexpr std::string_view kColumns[] = {"point_id",
                                         "filter",
                                         "preset",
                                         "params.*",
                                         "keys",
                                         "key_set.kind",
                                         "key_set.*",
                                         "mode",
                                         "fill",
                                         "negative_share",
                                         "hashing",
                                         "target",
                                         "pages",
                                         "threads",
                                         "workload.name*",
                                         "status",
                                         "reason",
                                         "rounds",
                                         "passes",
                                         "ns_per_op.median",
                                         "ns_per_op.low",
                                         "ns_per_op.high",
                                         "ns_per_op.confidence",
                                         "ns_per_op.min",
                                         "stability.asked_width",
                                         "stability.width",
                                         "stability.stable",
                                         "variance_shares.process",
                                         "variance_shares.build",
                                         "variance_shares.pass",
                                         "variance_shares_reason",
                                         "clusters.centers_ns",
                                         "clusters.shares",
                                         "clusters.explained_by",
                                         "clusters_reason",
                                         "counters*",
                                         "floor.ns_per_op",
                                         "floor.ratio",
                                         "floor.from",
                                         "floor_reason",
                                         "size_bytes",
                                         "bits_per_key",
                                         "build_ns_per_key",
                                         "keys_held",
                                         "allocated_bytes",
                                         "peak_build_bytes_per_key",
                                         "huge_page_bytes",
                                         "slots_per_key",
                                         "build_attempts.builds",
                                         "build_attempts.failed_builds",
                                         "build_attempts.median",
                                         "build_attempts.mean",
                                         "build_attempts.max",
                                         "operations_per_second",
                                         "fpr.expected",
                                         "fpr.measured",
                                         "fpr.low",
                                         "fpr.high",
                                         "fpr.false_positives",
                                         "fpr.queries",
                                         "filter_digest",
                                         "answers_digest"};

std::vector<std::string> OrderColumns(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    for (const auto& [name, cell] : row) names.insert(name);
  }
  std::vector<std::string> columns;
  for (std::string_view column : kColumns) {
    if (!column.ends_with('*')) {
      columns.emplace_back(column);
      names.erase(std::string(column));
      continue;
    }
    column.remove_suffix(1);
    for (auto name = names.lower_bound(std::string(column));
         name != names.end() && name->starts_with(column);) {
      columns.push_back(*name);
      name = names.erase(name);
    }
  }
  columns.insert(columns.end(), names.begin(), names.end());
  return columns;
}

}  // namespace

NestedValues NestTimes(std::span<const Sample* const> samples) {
  std::map<uint32_t, std::map<uint32_t, std::vector<double>>> processes;
  for (const Sample* sample : samples) {
    std::vector<double>& build =
        processes[sample->process.value_or(sample->round)][sample->round];
    build.insert(build.end(), sample->ns_per_op.begin(), sample->ns_per_op.end());
  }
  NestedValues nested;
  for (auto& [process, builds] : processes) {
    nested.emplace_back();
    for (auto& [round, passes] : builds) nested.back().push_back(std::move(passes));
  }
  return nested;
}

json Summarise(const json& manifest, std::span<const Sample> samples) {
  const std::vector<Group> groups = GroupByPoint(samples);
  const json& spec = manifest.at("spec");
  const json asked_width = spec.value(json::json_pointer("/measure/width"), json());
  json points = json::array();
  const std::vector<const Group*> floors = FindFloors(groups);
  for (const Group& group : groups) points.push_back(EntryToJson(group, floors, asked_width));
  json summary = {{"schema", "filterbench/summary/1"},
                  {"run", manifest.at("run")},
                  {"machine", manifest.at("machine")},
                  {"spec", spec.at("name")}};
  if (json shares = MedianVarianceShares(points); !shares.is_null()) {
    summary["variance_shares"] = std::move(shares);
  }
  summary["points"] = std::move(points);
  return summary;
}

std::string SummaryCsv(const json& summary) {
  std::vector<Row> rows;
  for (const json& entry : summary.at("points")) {
    Row& row = rows.emplace_back();
    Flatten(entry.at("point"), "", row);
    for (const auto& [field, value] : entry.items()) {
      if (field != "point") Flatten(value, field, row);
    }
  }
  const std::vector<std::string> columns = OrderColumns(rows);
  std::string csv;
  const auto append = [&](const auto& cell_of) {
    for (size_t i = 0; i < columns.size(); ++i) csv += (i == 0 ? "" : ",") + cell_of(columns[i]);
    csv += '\n';
  };
  append([](const std::string& column) { return CsvCell(column); });
  for (const Row& row : rows) {
    append([&](const std::string& column) {
      const auto cell = row.find(column);
      return cell == row.end() ? std::string() : cell->second;
    });
  }
  return csv;
}

}  // namespace filterbench
