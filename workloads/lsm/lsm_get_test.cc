#include "workloads/lsm/lsm_get.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/bloom/blocked.h"
#include "filters/bloom/classic.h"
#include "filters/limits/always_maybe.h"
#include "filters/theory/agreement.h"
#include "workloads/lsm/block_reads.h"
#include "workloads/lsm/store_workload_testing.h"

namespace filterbench::lsm {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

json Files(json knobs = json::object()) {
  knobs["operations"] = 3000;
  if (!knobs.contains("reads")) knobs["reads"] = "cached";
  return knobs;
}

// A tree of three levels: level 1 takes 4 * 40 keys, level 2 three times as many.
json Leveled(json knobs = json::object()) {
  knobs["shape"] = "leveled";
  knobs["memtable_keys"] = 40;
  knobs["size_ratio"] = 3;
  return Files(knobs);
}

double MeasuredFprOf(const WorkloadReport& report) {
  return static_cast<double>(report.fpr.false_positives) /
         static_cast<double>(report.fpr.queries);
}

void ExpectLawsOfCounters(const WorkloadReport& report) {
  const auto expect = [](const auto& of, const std::string& where) {
    const auto at = [&](const char* name) { return of.at(name).template get<uint64_t>(); };
    EXPECT_EQ(at("candidates"), at("range_skips") + at("not_consulted") + at("probes")) << where;
    EXPECT_EQ(at("probes"), at("filter_negatives") + at("maybe_true") + at("maybe_false"))
        << where;
    EXPECT_EQ(at("block_reads"), at("not_consulted") + at("maybe_true") + at("maybe_false"))
        << where;
  };
  expect(json(report.counters), "all");
  std::map<std::string, uint64_t> sums;
  for (const json& part : report.parts) {
    expect(part, part.dump());
    for (const auto& [name, value] : part.items()) sums[name] += value.get<uint64_t>();
  }
  for (const auto& [name, value] : report.counters) {
    if (name == "gets" || name == "memtable_hits") continue;
    EXPECT_EQ(sums[name], value) << name;
  }
}

// The measured FPR is a likely one: a false alarm has a chance of 1e-9.
void ExpectFprOfTheory(const WorkloadReport& report) {
  ASSERT_TRUE(report.fpr.expected && report.fpr.expected_instance_sd);
  EXPECT_TRUE(theory::FprAgrees(
      report.fpr.false_positives, report.fpr.queries,
      {.mean = *report.fpr.expected, .instance_sd = *report.fpr.expected_instance_sd}, 1e-9))
      << report.fpr.false_positives << " of " << report.fpr.queries << ", expected "
      << *report.fpr.expected;
}

class LsmGetByFiles : public ::testing::TestWithParam<uint32_t> {};

// Of n files, a key outside of the range of a file does not ask it: those are fewer candidates.
TEST_P(LsmGetByFiles, AbsentKeysReadCandidatesTimesFpr) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 6}});
  Ready ready(MakeLsmGet(), Files({{"files", GetParam()}}), filters);
  const WorkloadReport report = ready.Report(1.0);
  ExpectLawsOfCounters(report);
  const uint64_t gets = report.counters.at("gets");
  EXPECT_EQ(gets, 3000u);
  EXPECT_EQ(report.counters.at("candidates"), gets * GetParam());
  EXPECT_EQ(report.counters.at("not_consulted"), 0u);
  EXPECT_EQ(report.counters.at("maybe_true"), 0u);
  // In the range of 2000 / files of 2^64 keys lies all but 2 * files / 2000 of it, on average.
  EXPECT_LT(report.counters.at("range_skips"), gets * GetParam() / 5);

  const Metric& reads = MetricOf(report, "block_reads_per_get");
  EXPECT_EQ(reads.certain, 0u);
  EXPECT_EQ(reads.by_chance, report.counters.at("block_reads"));
  EXPECT_EQ(reads.trials, report.counters.at("probes"));
  EXPECT_EQ(reads.per, gets);
  const double asked_share = static_cast<double>(report.counters.at("probes")) /
                             static_cast<double>(gets * GetParam());
  const BlockReads theory = BlockReadsPerGet(GetParam(), SoughtKey::kAbsent);
  EXPECT_NEAR(ValueOfMetric(report, "block_reads_per_get"),
              theory.At(MeasuredFprOf(report)) * asked_share, 1e-9);
  ExpectFprOfTheory(report);
  EXPECT_NEAR(*reads.expected_by_chance,
              *report.fpr.expected * static_cast<double>(report.fpr.queries), 1e-6);
}

TEST_P(LsmGetByFiles, OldestKeysReadOneBlockAndTheOthersFprs) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 6}});
  Ready ready(MakeLsmGet(), Files({{"files", GetParam()}, {"present_keys", "oldest"}}), filters);
  const WorkloadReport report = ready.Report(0.0);
  ExpectLawsOfCounters(report);
  const uint64_t gets = report.counters.at("gets");
  EXPECT_EQ(report.counters.at("maybe_true"), gets);
  EXPECT_EQ(report.parts.back().at("maybe_true"), gets);
  const Metric& reads = MetricOf(report, "block_reads_per_get");
  EXPECT_EQ(reads.certain, gets);
  EXPECT_EQ(reads.trials + report.counters.at("range_skips"), gets * (GetParam() - 1));
  if (GetParam() == 1) return;
  const BlockReads theory = BlockReadsPerGet(GetParam(), SoughtKey::kInDeepestLevel);
  const double asked_share =
      static_cast<double>(reads.trials) / static_cast<double>(gets * (GetParam() - 1));
  EXPECT_NEAR(ValueOfMetric(report, "block_reads_per_get"),
              theory.At(MeasuredFprOf(report) * asked_share), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Files, LsmGetByFiles, ::testing::Values(1, 3, 8, 40));

TEST(LsmGet, AnyPresentKeyIsFoundHalfWayOnAverage) {
  SourceOf<BlockedBloom> filters;
  Ready ready(MakeLsmGet(), Files({{"files", 4}}), filters);
  const WorkloadReport report = ready.Report(0.25);
  ExpectLawsOfCounters(report);
  // 2250 present keys, each of 2000 once or twice: by files as evenly as that allows.
  EXPECT_EQ(report.counters.at("maybe_true"), 2250u);
  for (const json& part : report.parts) {
    EXPECT_GE(part.at("maybe_true"), 500u);
    EXPECT_LE(part.at("maybe_true"), 750u);
  }
  ExpectFprOfTheory(report);
}

TEST(LsmGet, WithoutFiltersEveryFileInRangeIsRead) {
  SourceOf<BlockedBloom> filters;
  Ready none(MakeLsmGet(), Files({{"filter_levels", "none"}}), filters);
  EXPECT_EQ(none.state().filters().filters, 0u);
  const WorkloadReport report = none.Report(0.5);
  ExpectLawsOfCounters(report);
  const Metric& reads = MetricOf(report, "block_reads_per_get");
  EXPECT_EQ(reads.trials, 0u);
  EXPECT_EQ(reads.certain,
            report.counters.at("candidates") - report.counters.at("range_skips"));
  EXPECT_EQ(report.fpr.queries, 0u);
  EXPECT_FALSE(report.fpr.expected);
  EXPECT_EQ(ValueOfMetric(report, "filter_bytes"), 0);

  SourceOf<AlwaysMaybe> baseline;
  ExpectSameCounts(report, Ready(MakeLsmGet(), Files(), baseline).Report(0.5));

  // A filter that is asked, and never helps.
  ConstantSource maybe(true, true);
  const WorkloadReport asked = Ready(MakeLsmGet(), Files(), maybe).Report(0.5);
  for (const char* same : {"candidates", "range_skips", "block_reads", "block_bytes"}) {
    EXPECT_EQ(asked.counters.at(same), report.counters.at(same)) << same;
  }
  EXPECT_EQ(asked.counters.at("probes"), report.counters.at("not_consulted"));
  EXPECT_EQ(MeasuredFprOf(asked), 1);
}

TEST(LsmGet, FiltersOutOfMemoryAreReadForEachProbe) {
  SourceOf<BlockedBloom> filters;
  const WorkloadReport resident = Ready(MakeLsmGet(), Files(), filters).Report(0.9);
  const WorkloadReport evicted =
      Ready(MakeLsmGet(), Files({{"filter_memory", "read_each_time"}}), filters).Report(0.9);
  ExpectLawsOfCounters(evicted);
  EXPECT_EQ(resident.counters.at("filter_reads"), 0u);
  EXPECT_EQ(evicted.counters.at("filter_reads"), evicted.counters.at("probes"));
  EXPECT_GT(evicted.counters.at("filter_read_bytes"),
            evicted.counters.at("filter_reads") * 2000 / 8 * 10 / 8);
  for (const char* same : {"probes", "maybe_false", "maybe_true", "block_reads"}) {
    EXPECT_EQ(evicted.counters.at(same), resident.counters.at(same)) << same;
  }
  // What theory expects is known though no filter is in memory.
  EXPECT_EQ(evicted.fpr.expected, resident.fpr.expected);
  EXPECT_EQ(ValueOfMetric(evicted, "filter_bytes"), ValueOfMetric(resident, "filter_bytes"));
}

TEST(LsmGet, LeveledShapeAsksOneFileOfEachLevelBelow) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 4}});
  Ready ready(MakeLsmGet(), Leveled(), filters);
  const WorkloadReport absent = ready.Report(1.0);
  ExpectLawsOfCounters(absent);
  EXPECT_EQ(absent.counters.at("candidates"), absent.parts.size() * 3000);
  EXPECT_GT(absent.parts.back().at("level"), 1);
  EXPECT_GT(absent.parts.back().at("files"), 1);
  ExpectFprOfTheory(absent);
  const WorkloadReport any = ready.Report(0.0);
  ExpectLawsOfCounters(any);
  EXPECT_EQ(any.counters.at("maybe_true"), 3000u);
  EXPECT_EQ(any.facts.at("memtable"), "empty");
  uint64_t entries = 0;
  for (const json& part : any.parts) entries += part.at("entries").get<uint64_t>();
  EXPECT_EQ(entries, kTestKeys);
  EXPECT_GT(ValueOfMetric(any, "write_amplification"), 2);
}

TEST(LsmGet, OldestKeysOfATreeAreThoseOfTheDeepestRun) {
  SourceOf<BlockedBloom> filters;
  for (const char* shape : {"leveled", "size_tiered"}) {
    json knobs = Leveled({{"present_keys", "oldest"}});
    knobs["shape"] = shape;
    const WorkloadReport report = Ready(MakeLsmGet(), knobs, filters).Report(0.5);
    ExpectLawsOfCounters(report);
    EXPECT_EQ(report.parts.back().at("maybe_true"), 1500u) << shape;
    EXPECT_EQ(report.counters.at("maybe_true"), 1500u) << shape;
  }
}

TEST(LsmGet, ButLastHasNoFilterInTheDeepestRunOnly) {
  SourceOf<BlockedBloom> filters;
  for (const char* shape : {"leveled", "size_tiered"}) {
    json knobs = Leveled({{"filter_levels", "but_last"}});
    knobs["shape"] = shape;
    const WorkloadReport report = Ready(MakeLsmGet(), knobs, filters).Report(0.5);
    ExpectLawsOfCounters(report);
    ASSERT_GT(report.parts.size(), 1u);
    for (const json& part : report.parts) {
      const bool last = part == report.parts.back();
      EXPECT_EQ(part.at("filter_bytes") == 0, last) << shape << ": " << part;
      EXPECT_EQ(part.at("not_consulted") == 0, !last) << shape << ": " << part;
    }
    ExpectFprOfTheory(report);
  }
}

TEST(LsmGet, MonkeySpendsTheSameBitsAndReadsFewerBlocks) {
  SourceOf<ClassicBloom> filters(json{{"bits_per_key", 5}});
  Ready uniform(MakeLsmGet(), Leveled(), filters);
  Ready monkey(MakeLsmGet(), Leveled({{"bits_allocation", "monkey"}}), filters);
  const WorkloadReport by_uniform = uniform.Report(1.0);
  const WorkloadReport by_monkey = monkey.Report(1.0);
  ExpectLawsOfCounters(by_monkey);
  ExpectFprOfTheory(by_monkey);
  EXPECT_EQ(by_uniform.facts, by_monkey.facts);  // the same files in the same levels
  EXPECT_EQ(ValueOfMetric(by_uniform, "write_amplification"),
            ValueOfMetric(by_monkey, "write_amplification"));

  // A table of bits is rounded up to whole words, of 64 bits at most, and has its parameters.
  const double rounding = 64 * ValueOfMetric(by_uniform, "files");
  EXPECT_NEAR(8 * ValueOfMetric(by_uniform, "filter_bytes"),
              8 * ValueOfMetric(by_monkey, "filter_bytes"), rounding);
  EXPECT_LT(*MetricOf(by_monkey, "block_reads_per_get").expected_by_chance,
            *MetricOf(by_uniform, "block_reads_per_get").expected_by_chance);
  const auto bits_per_key = [](const json& part) {
    return part.at("filter_bytes").get<double>() / part.at("entries").get<double>();
  };
  EXPECT_GT(bits_per_key(by_monkey.parts.front()), bits_per_key(by_monkey.parts.back()));
}

TEST(LsmGet, MonkeyNeedsAFilterOfAnyNumberOfBitsPerKey) {
  ConstantSource filters(true, true);
  try {
    Ready(MakeLsmGet(), Leveled({{"bits_allocation", "monkey"}}), filters);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), StartsWith(std::string(kNotHere) + "bits_allocation: monkey: "));
  }
}

TEST(LsmGet, ReportsFollowFromTheSeed) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 4}});
  Ready ready(MakeLsmGet(), Leveled(), filters);
  const WorkloadReport report = ready.Report(0.5, 7);
  ExpectSameCounts(report, ready.Report(0.5, 7));
  Ready again(MakeLsmGet(), Leveled(), filters);
  ExpectSameCounts(report, again.Report(0.5, 7));
  EXPECT_EQ(ready.state().filters().digest, again.state().filters().digest);
  EXPECT_NE(report.counters, ready.Report(0.5, 8).counters);
  Ready other(MakeLsmGet(), Leveled(), filters, {}, kTestKeys, 2);
  EXPECT_NE(ready.state().filters().digest, other.state().filters().digest);
}

TEST(LsmGet, TakesEveryKindOfKey) {
  SourceOf<BlockedBloom> filters;
  for (const KeySetSpec& spec : {KeySetSpec{.kind = KeyKind::kSequential},
                                 KeySetSpec{.kind = KeyKind::kBytes, .length_bytes = 24}}) {
    for (const json& knobs : {Files(), Leveled()}) {
      const WorkloadReport report =
          Ready(MakeLsmGet(), knobs, filters, *KeySet::Open(spec, 3)).Report(0.5);
      ExpectLawsOfCounters(report);
      EXPECT_EQ(report.counters.at("maybe_true"), 1500u);
    }
  }
}

TEST(LsmGet, FactsOfFiltersAreThoseOfAllFiles) {
  SourceOf<BlockedBloom> filters(json{{"bits_per_key", 10}});
  Ready ready(MakeLsmGet(), Files({{"files", 7}}), filters);
  const WorkloadFilters facts = ready.state().filters();
  EXPECT_EQ(facts.filters, 7u);
  EXPECT_EQ(facts.keys, kTestKeys);
  EXPECT_EQ(facts.builds, 7u);
  EXPECT_EQ(facts.digest.size(), 16u);
  const WorkloadReport report = ready.Report(0.5);
  EXPECT_EQ(report.facts.at("levels"), "0:7");
  EXPECT_EQ(ValueOfMetric(report, "files"), 7);
  EXPECT_EQ(ValueOfMetric(report, "filter_bytes"), static_cast<double>(facts.size_bytes));
  EXPECT_EQ(ValueOfMetric(report, "filter_bits_per_key"),
            8.0 * static_cast<double>(facts.size_bytes) / kTestKeys);
  // Each entry is written once: with what blocks, filters and footers add.
  EXPECT_GT(ValueOfMetric(report, "write_amplification"), 1);
  EXPECT_LT(ValueOfMetric(report, "write_amplification"), 1.6);
  for (const char* phase : {"memtable", "filter", "index", "block"}) {
    EXPECT_GE(report.phases_ns.at(phase), 0) << phase;
  }
}

TEST(LsmGet, AFilterThatLosesKeysIsAWrongAnswer) {
  ConstantSource filters(false, true);
  Ready ready(MakeLsmGet(), Files(), filters);
  auto run = ready.state().Start(0.5, 1);
  ASSERT_TRUE(run);
  EXPECT_EQ(*(*run)->Iterate(), 0u);
  EXPECT_EQ((*run)->positives_expected(), 1500u);
  const auto report = (*run)->Report();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error(), StartsWith(std::string(kWrongAnswer)));
}

TEST(LsmGet, AStoreWhoseFiltersCannotBeUsedIsNotMeasured) {
  for (const char* memory : {"resident", "read_each_time"}) {
    ConstantSource filters(true, false);
    try {
      Ready ready(MakeLsmGet(), Files({{"filter_memory", memory}}), filters);
      const auto report = ready.Run(0.5);
      ASSERT_FALSE(report) << memory;
      throw std::runtime_error(report.error());
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("filter")) << memory;
    }
  }
}

TEST(LsmGet, DirectReadsGiveTheSameAnswers) {
  SourceOf<BlockedBloom> filters;
  WorkloadReport cached = Ready(MakeLsmGet(), Files(), filters).Report(0.9);
  try {
    WorkloadReport direct =
        Ready(MakeLsmGet(), Files({{"reads", "direct"}}), filters).Report(0.9);
    EXPECT_EQ(direct.facts.at("reads"), "direct");
    direct.facts.clear();
    cached.facts.clear();
    ExpectSameCounts(direct, cached);
  } catch (const std::runtime_error& error) {
    if (!std::string_view(error.what()).starts_with(kNotHere)) throw;
    GTEST_SKIP() << error.what();
  }
}

TEST(LsmGet, RefusesKnobsThatContradictEachOther) {
  const auto workload = MakeLsmGet();
  const auto why = [&](const json& knobs, uint64_t keys = 100'000) {
    return workload->Contradiction(*workload->CompleteKnobs(knobs), keys);
  };
  EXPECT_EQ(why(json::object()), "");
  EXPECT_EQ(why({{"shape", "leveled"}, {"size_ratio", 4}, {"bits_allocation", "monkey"}}), "");
  EXPECT_EQ(why({{"shape", "size_tiered"}, {"filter_levels", "but_last"}}), "");
  EXPECT_THAT(why({{"files", 8}}, 7), StartsWith("files: "));
  EXPECT_THAT(why({{"shape", "leveled"}, {"files", 4}}), StartsWith("files: "));
  EXPECT_THAT(why({{"size_ratio", 4}}), StartsWith("size_ratio: "));
  EXPECT_THAT(why({{"shape", "leveled"}, {"size_ratio", 1}}), StartsWith("size_ratio: "));
  EXPECT_THAT(why({{"memtable_keys", 100}}), StartsWith("memtable_keys: "));
  EXPECT_THAT(why({{"shape", "leveled"}}, 4095), StartsWith("memtable_keys: "));
  EXPECT_THAT(why({{"filter_levels", "but_last"}}), StartsWith("filter_levels: "));
  EXPECT_THAT(why({{"bits_allocation", "monkey"}}), StartsWith("bits_allocation: "));
  EXPECT_THAT(why({{"shape", "leveled"}, {"bits_allocation", "monkey"},
                   {"filter_levels", "but_last"}}),
              StartsWith("bits_allocation: "));
  EXPECT_THAT(why({{"filter_levels", "none"}, {"filter_memory", "read_each_time"}}),
              StartsWith("filter_memory: "));
  EXPECT_THAT(why(json::object(), 0), StartsWith("keys: "));
}

TEST(LsmGet, CostGrowsWithWhatIsRead) {
  const auto workload = MakeLsmGet();
  const auto cost = [&](const json& knobs) {
    return workload->EstimateCost(*workload->CompleteKnobs(knobs), 1'000'000);
  };
  EXPECT_GT(cost({{"reads", "direct"}}).iteration_seconds,
            cost({{"reads", "cached"}}).iteration_seconds);
  EXPECT_GT(cost({{"filter_levels", "none"}}).iteration_seconds,
            cost({{"filter_levels", "all"}}).iteration_seconds);
  EXPECT_GT(cost({{"shape", "leveled"}}).prepare_seconds, cost(json::object()).prepare_seconds);
  EXPECT_GT(cost({{"value_bytes", 1000}}).memory_bytes, cost(json::object()).memory_bytes);
}

}  // namespace
}  // namespace filterbench::lsm
