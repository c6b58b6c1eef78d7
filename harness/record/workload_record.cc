#include "harness/record/workload_record.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "harness/statistics.h"

namespace filterbench {
namespace {

using nlohmann::json;

constexpr double kConfidence = 0.95;

double Scaled(const Metric& metric, double by_chance) {
  return (static_cast<double>(metric.certain) + by_chance) / static_cast<double>(metric.per);
}

void PutNoInterval(json& facts, const char* reason) {
  for (const char* field : {"low", "high", "confidence"}) facts[field] = nullptr;
  facts["interval_reason"] = reason;
}

// Of a ratio: what follows from its counts.
json RatioToJson(const Metric& metric) {
  json facts = {{"certain", metric.certain},
                {"by_chance", metric.by_chance},
                {"trials", metric.trials},
                {"per", metric.per}};
  if (metric.per == 0) {
    facts["value"] = nullptr;
    facts["value_reason"] = "it is a ratio to nothing";
    facts["expected"] = nullptr;
    facts["expected_reason"] = "it is a ratio to nothing";
    PutNoInterval(facts, "it is a ratio to nothing");
    return facts;
  }
  facts["value"] = Scaled(metric, static_cast<double>(metric.by_chance));
  if (metric.expected_by_chance) {
    facts["expected_by_chance"] = *metric.expected_by_chance;
    facts["expected"] = Scaled(metric, *metric.expected_by_chance);
  } else {
    facts["expected"] = nullptr;
    facts["expected_reason"] = metric.trials == 0 ? "there is no chance in it"
                                                  : "the filters have no closed form";
  }
  if (metric.trials == 0) {
    PutNoInterval(facts, "there is no chance in it to count");
  } else {
    const Interval interval = BinomialInterval(metric.by_chance, metric.trials, kConfidence);
    const double trials = static_cast<double>(metric.trials);
    facts["low"] = Scaled(metric, interval.low * trials);
    facts["high"] = Scaled(metric, interval.high * trials);
    facts["confidence"] = kConfidence;
  }
  return facts;
}

// The median over rounds, or a ratio without chance, with what the values of the rounds tell.
void PutIntervalOfRounds(std::span<const double> values, json& facts) {
  const std::optional<Interval> interval = MedianInterval(values, kConfidence);
  if (values.size() < 2 || !interval) {
    return PutNoInterval(facts, "one round says nothing of others");
  }
  facts["low"] = interval->low;
  facts["high"] = interval->high;
  facts["confidence"] = interval->confidence;
  facts.erase("interval_reason");
}

bool IsRatio(const json& metric) { return metric.contains("per"); }

json PoolMetric(std::span<const json* const> metrics) {
  std::vector<double> values;
  for (const json* metric : metrics) {
    if (!metric->at("value").is_null()) values.push_back(metric->at("value"));
  }
  if (!IsRatio(*metrics.front())) {
    json facts = {{"value", *Median(values)}};
    PutIntervalOfRounds(values, facts);
    return facts;
  }
  Metric sum{.name = "", .expected_by_chance = 0.0, .quantity = std::nullopt};
  for (const json* metric : metrics) {
    sum.certain += metric->at("certain").get<uint64_t>();
    sum.by_chance += metric->at("by_chance").get<uint64_t>();
    sum.trials += metric->at("trials").get<uint64_t>();
    sum.per += metric->at("per").get<uint64_t>();
    const auto expected = metric->find("expected_by_chance");
    if (expected == metric->end()) {
      sum.expected_by_chance.reset();
    } else if (sum.expected_by_chance) {
      *sum.expected_by_chance += expected->get<double>();
    }
  }
  json facts = RatioToJson(sum);
  if (sum.trials == 0 && sum.per != 0) PutIntervalOfRounds(values, facts);
  return facts;
}

// Sums field by field where all rounds have the same parts; else nothing, since a part is then
// another one in each.
std::optional<json> PoolParts(std::span<const json> workloads) {
  json sum = workloads.front().at("parts");
  const auto is_name = [](const std::string& field) {
    return field == "level" || field == "run";
  };
  for (const json& workload : workloads.subspan(1)) {
    const json& parts = workload.at("parts");
    if (parts.size() != sum.size()) return std::nullopt;
    for (size_t i = 0; i < parts.size(); ++i) {
      for (auto& [field, value] : sum[i].items()) {
        const auto found = parts[i].find(field);
        if (found == parts[i].end()) return std::nullopt;
        if (is_name(field) || value.is_string()) {
          if (*found != value) return std::nullopt;
        } else {
          value = value.get<uint64_t>() + found->get<uint64_t>();
        }
      }
    }
  }
  return sum;
}

}  // namespace

json WorkloadToJson(const WorkloadReport& report) {
  json metrics = json::object();
  for (const Metric& metric : report.metrics) {
    metrics[metric.name] =
        metric.quantity ? json{{"value", *metric.quantity}} : RatioToJson(metric);
  }
  json facts = json::object();
  for (const auto& [name, text] : report.facts) facts[name] = text;
  json counters = json::object();
  for (const auto& [name, count] : report.counters) counters[name] = count;
  json phases = json::object();
  for (const auto& [name, ns] : report.phases_ns) phases[name] = ns;
  return {{"metrics", std::move(metrics)},
          {"counters", std::move(counters)},
          {"parts", report.parts},
          {"phases_ns", std::move(phases)},
          {"facts", std::move(facts)}};
}

json PoolWorkloads(std::span<const json> workloads) {
  json pooled = {{"rounds", workloads.size()},
                 {"metrics", json::object()},
                 {"counters", json::object()},
                 {"phases_ns", json::object()},
                 {"facts", json::object()}};
  std::map<std::string, std::vector<const json*>> metrics;
  std::map<std::string, std::vector<double>> phases;
  for (const json& workload : workloads) {
    for (const auto& [name, metric] : workload.at("metrics").items()) {
      metrics[name].push_back(&metric);
    }
    for (const auto& [name, count] : workload.at("counters").items()) {
      json& sum = pooled["counters"][name];
      sum = (sum.is_null() ? 0 : sum.get<uint64_t>()) + count.get<uint64_t>();
    }
    for (const auto& [name, ns] : workload.at("phases_ns").items()) phases[name].push_back(ns);
    for (const auto& [name, text] : workload.at("facts").items()) {
      json& fact = pooled["facts"][name];
      if (fact.is_null()) {
        fact = text;
      } else if (fact != text) {
        fact = "differs between rounds";
      }
    }
  }
  for (const auto& [name, of_rounds] : metrics) pooled["metrics"][name] = PoolMetric(of_rounds);
  for (const auto& [name, ns] : phases) pooled["phases_ns"][name] = *Median(ns);
  if (std::optional<json> parts = PoolParts(workloads)) {
    pooled["parts"] = std::move(*parts);
  } else {
    pooled["parts"] = nullptr;
    pooled["parts_reason"] = "the parts differ between rounds";
  }
  return pooled;
}

std::string WorkloadProblem(const json& workload) {
  for (const auto& [name, facts] : workload.at("metrics").items()) {
    if (!IsRatio(facts)) continue;
    Metric metric{.name = name,
                  .certain = facts.at("certain"),
                  .by_chance = facts.at("by_chance"),
                  .trials = facts.at("trials"),
                  .per = facts.at("per"),
                  .expected_by_chance = std::nullopt,
                  .quantity = std::nullopt};
    const std::string path = fmt::format("workload.metrics.{}", name);
    if (metric.by_chance > metric.trials) return path + ".by_chance: exceeds trials";
    if (const auto expected = facts.find("expected_by_chance"); expected != facts.end()) {
      metric.expected_by_chance = expected->get<double>();
    }
    const json follows = RatioToJson(metric);
    for (const char* field : {"value", "low", "high", "expected"}) {
      const json& stated = facts.at(field);
      const json& right = follows.at(field);
      if (stated.is_null() && right.is_null()) continue;
      // Mathematical libraries differ in the last digits.
      if (stated.is_null() != right.is_null() ||
          std::abs(stated.get<double>() - right.get<double>()) >
              1e-5 * std::abs(right.get<double>())) {
        return fmt::format("{}.{}: is {}, but {} follows from the counts", path, field,
                           stated.dump(), right.dump());
      }
    }
  }
  return {};
}

}  // namespace filterbench
