#include "harness/record/workload_record.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/document.h"
#include "harness/statistics.h"

namespace filterbench {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Seven files, an FPR of about one percent.
WorkloadReport Reads(uint64_t false_maybes, uint64_t gets = 1000) {
  WorkloadReport report;
  report.metrics = {{.name = "block_reads_per_get",
                     .certain = 3,
                     .by_chance = false_maybes,
                     .trials = 7 * gets,
                     .per = gets,
                     .expected_by_chance = 0.01 * 7 * static_cast<double>(gets),
                     .quantity = std::nullopt},
                    Quantity("store_bytes", 1000 + static_cast<double>(false_maybes))};
  report.counters = {{"gets", gets}};
  report.parts = json::array({{{"level", 0}, {"run", 0}, {"candidates", 7 * gets}}});
  report.phases_ns = {{"filter", static_cast<double>(false_maybes)}};
  report.facts = {{"reads", "direct"}};
  return report;
}

TEST(WorkloadRecord, ARatioHasTheBinomialIntervalOfItsTrials) {
  const json record = WorkloadToJson(Reads(70));
  const json& reads = record["metrics"]["block_reads_per_get"];
  EXPECT_DOUBLE_EQ(reads["value"], 0.073);
  EXPECT_DOUBLE_EQ(reads["expected"], 0.073);
  const Interval interval = BinomialInterval(70, 7000);
  EXPECT_DOUBLE_EQ(reads["low"], 0.003 + 7 * interval.low);
  EXPECT_DOUBLE_EQ(reads["high"], 0.003 + 7 * interval.high);
  EXPECT_EQ(record["metrics"]["store_bytes"], json({{"value", 1070.0}}));
  EXPECT_FALSE(ValidateDocument("workload", record));
  EXPECT_EQ(WorkloadProblem(record), "");
}

TEST(WorkloadRecord, UnknownIsNullWithAReason) {
  WorkloadReport report;
  report.metrics = {{.name = "a_per_b",
                     .expected_by_chance = std::nullopt,
                     .quantity = std::nullopt},
                    {.name = "c_per_d",
                     .certain = 1,
                     .per = 4,
                     .expected_by_chance = std::nullopt,
                     .quantity = std::nullopt}};
  const json record = WorkloadToJson(report);
  EXPECT_FALSE(ValidateDocument("workload", record));
  EXPECT_EQ(WorkloadProblem(record), "");
  EXPECT_TRUE(record["metrics"]["a_per_b"]["value"].is_null());
  EXPECT_EQ(record["metrics"]["c_per_d"]["value"], 0.25);
  EXPECT_TRUE(record["metrics"]["c_per_d"]["low"].is_null());
  EXPECT_TRUE(record["metrics"]["c_per_d"]["expected"].is_null());
}

TEST(WorkloadRecord, RoundsAreAddedUp) {
  const std::vector<json> rounds = {WorkloadToJson(Reads(60)), WorkloadToJson(Reads(80)),
                                    WorkloadToJson(Reads(100, 3000))};
  const json pooled = PoolWorkloads(rounds);
  EXPECT_FALSE(ValidateDocument("workload", pooled));
  EXPECT_EQ(WorkloadProblem(pooled), "");
  const json& reads = pooled["metrics"]["block_reads_per_get"];
  EXPECT_EQ(reads["by_chance"], 240);
  EXPECT_DOUBLE_EQ(reads["value"], 249.0 / 5000);
  EXPECT_DOUBLE_EQ(reads["expected"], (9 + 350.0) / 5000);
  const Interval interval = BinomialInterval(240, 35000);
  EXPECT_DOUBLE_EQ(reads["low"], (9 + interval.low * 35000) / 5000);
  EXPECT_EQ(pooled["rounds"], 3);
  EXPECT_EQ(pooled["counters"]["gets"], 5000);
  EXPECT_EQ(pooled["parts"], json::parse(R"([{"level": 0, "run": 0, "candidates": 35000}])"));
  EXPECT_EQ(pooled["phases_ns"]["filter"], 80);
  EXPECT_EQ(pooled["metrics"]["store_bytes"]["value"], 1080);
  EXPECT_EQ(pooled["metrics"]["store_bytes"]["low"], 1060);
}

TEST(WorkloadRecord, PartsAndFactsThatDifferAreNotAddedUp) {
  std::vector<json> rounds = {WorkloadToJson(Reads(60)), WorkloadToJson(Reads(80))};
  rounds[1]["parts"][0]["level"] = 1;
  rounds[1]["facts"]["reads"] = "cached";
  json pooled = PoolWorkloads(rounds);
  EXPECT_TRUE(pooled["parts"].is_null());
  EXPECT_EQ(pooled["facts"]["reads"], "differs between rounds");
  EXPECT_FALSE(ValidateDocument("workload", pooled));
  rounds[1]["parts"] = json::array();
  EXPECT_TRUE(PoolWorkloads(rounds)["parts"].is_null());
}

TEST(WorkloadRecord, ARoundWithoutClosedFormLeavesNoneForAll) {
  WorkloadReport without = Reads(60);
  without.metrics[0].expected_by_chance.reset();
  const std::vector<json> rounds = {WorkloadToJson(Reads(60)), WorkloadToJson(without)};
  const json pooled = PoolWorkloads(rounds);
  EXPECT_TRUE(pooled["metrics"]["block_reads_per_get"]["expected"].is_null());
  EXPECT_FALSE(ValidateDocument("workload", pooled));
}

TEST(WorkloadRecord, ValuesThatDoNotFollowAreFound) {
  const json right = WorkloadToJson(Reads(70));
  for (const char* field : {"value", "low", "high", "expected"}) {
    json wrong = right;
    wrong["metrics"]["block_reads_per_get"][field] = 0.5;
    EXPECT_THAT(WorkloadProblem(wrong), HasSubstr(field));
  }
  json wrong = right;
  wrong["metrics"]["block_reads_per_get"]["by_chance"] = 7001;
  EXPECT_THAT(WorkloadProblem(wrong), HasSubstr("exceeds trials"));
}

}  // namespace
}  // namespace filterbench
