#include "harness/spec/spec.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filterbench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Result<Spec> Parse(const std::string& text) {
  Result<LocatedJson> source = LocatedJson::Parse(text, "my.json");
  if (!source) return Error{source.error()};
  return ParseSpec(std::move(*source), "my");
}

TEST(ParseSpec, FieldsThatAreLeftOutHaveDefaults) {
  const Result<Spec> spec = Parse(R"({"sweeps": [{"filters": {"blocked_bloom": {}}}]})");
  ASSERT_TRUE(spec) << spec.error();
  ASSERT_EQ(spec->sweeps.size(), 1u);
  EXPECT_EQ(spec->sweeps[0].keys, std::vector<uint64_t>{1'000'000});
  EXPECT_EQ(spec->sweeps[0].targets, std::vector<std::string>{"best"});
  EXPECT_EQ(spec->measure.rounds, MeasureSpec{}.rounds);
}

TEST(ParseSpec, CommentsExponentsAndSingleValuesAreAllowed) {
  const Result<Spec> spec = Parse(R"({
    // why
    "sweeps": [{"filters": {"blocked_bloom": {}}, "keys": 1e4, /* how */ "modes": "latency"}]})");
  ASSERT_TRUE(spec) << spec.error();
  EXPECT_EQ(spec->sweeps[0].keys, std::vector<uint64_t>{10'000});
  EXPECT_EQ(spec->sweeps[0].modes, std::vector<Mode>{Mode::kLatency});
}

TEST(ParseSpec, PagesAndThreads) {
  const Result<Spec> plain = Parse(R"({"sweeps": [{"filters": {"a": {}}}]})");
  ASSERT_TRUE(plain) << plain.error();
  EXPECT_EQ(plain->sweeps[0].pages, std::vector<std::optional<Pages>>{std::nullopt});
  EXPECT_EQ(plain->sweeps[0].threads, std::vector<uint64_t>{1});
  const Result<Spec> spec = Parse(R"({"sweeps": [{"filters": {"a": {}},
      "pages": ["default", "4k", "thp", "hugetlb"], "threads": [1, 2]}]})");
  ASSERT_TRUE(spec) << spec.error();
  EXPECT_EQ(spec->sweeps[0].pages,
            (std::vector<std::optional<Pages>>{std::nullopt, Pages::kSmall, Pages::kTransparent,
                                               Pages::kHugetlb}));
  EXPECT_EQ(spec->sweeps[0].threads, (std::vector<uint64_t>{1, 2}));
}

TEST(ParseSpec, AWorkloadIsANameOrAnObject) {
  const Result<Spec> spec = Parse(R"({"sweeps": [
      {"filters": {"a": {}}, "workload": "lsm_get"},
      {"filters": {"a": {}}, "workload": {"name": "lsm_get", "files": [1, 2]},
       "negative_shares": 0.5}, {"filters": {"a": {}}}]})");
  ASSERT_TRUE(spec) << spec.error();
  EXPECT_EQ(spec->sweeps[0].workload->name, "lsm_get");
  EXPECT_FALSE(spec->sweeps[0].has_negative_shares);
  EXPECT_EQ(spec->sweeps[1].workload->knobs, (nlohmann::json{{"files", {1, 2}}}));
  EXPECT_TRUE(spec->sweeps[1].has_negative_shares);
  EXPECT_FALSE(spec->sweeps[2].workload);
}

struct BadSpec {
  const char* name;
  const char* text;
  const char* place;    // how the error starts
  const char* problem;  // what it says
};

void PrintTo(const BadSpec& bad, std::ostream* out) { *out << bad.text; }

class BadSpecTest : public ::testing::TestWithParam<BadSpec> {};

TEST_P(BadSpecTest, TheErrorNamesFileLineAndField) {
  const Result<Spec> spec = Parse(GetParam().text);
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error(), StartsWith(GetParam().place));
  EXPECT_THAT(spec.error(), HasSubstr(GetParam().problem));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadSpecTest,
    ::testing::Values(
        BadSpec{"Empty", "", "my.json:1: not JSON", "unexpected end"},
        BadSpec{"NotJson", "{\n\"sweeps\": [,]\n}", "my.json:2: not JSON", "unexpected ','"},
        BadSpec{"CutOff", "{\n\"sweeps\": [\n", "my.json:3: not JSON", "unexpected end"},
        BadSpec{"NaN", "{\"measure\": {\"pass_seconds\": NaN}}", "my.json:1: not JSON", ""},
        BadSpec{"BeyondDouble", "{\"measure\": {\"rounds\": 1e400}}", "my.json:1: ", "1e400"},
        BadSpec{"KeyFileWithNul",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"key_sets\": [{\"kind\": \"file\", "
                "\"path\": \"a\\u0000b\"}]}]}",
                "my.json:2: sweeps[0].key_sets[0]: ", "path"},
        BadSpec{"KeyFileWithADigestThatIsANumber",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"key_sets\": [{\"kind\": \"file\", "
                "\"path\": \"a\", \"digest\": 5}]}]}",
                "my.json:2: sweeps[0].key_sets[0]: ", "digest: must be a string"},
        BadSpec{"WorkloadIsANumber", "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"workload\": 7}]}",
                "my.json:2: sweeps[0].workload: ", "must be the name of a workload"},
        BadSpec{"WorkloadWithoutName",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"workload\": {\"files\": 7}}]}",
                "my.json:2: sweeps[0].workload: ", "with a `name`"},
        BadSpec{"WorkloadAndModes",
                "{\"sweeps\": [{\"filters\": {\"a\": {}}, \"workload\": \"x\",\n"
                "\"modes\": \"build\"}]}",
                "my.json:2: sweeps[0].modes: ", "beside a workload"},
        BadSpec{"ModeWorkload",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"modes\": \"workload\"}]}",
                "my.json:2: sweeps[0].modes: ", "unknown mode"},
        BadSpec{"NotAnObject", "[1]", "my.json:1: must be an object", ""},
        BadSpec{"NoSweeps", "{}", "my.json:1: sweeps: ", "at least one sweep"},
        BadSpec{"SweepsEmpty", "{\n\"sweeps\": []}", "my.json:2: sweeps: ", "at least one sweep"},
        BadSpec{"UnknownField", "{\"sweeps\": [{}],\n\"mesure\": {}}",
                "my.json:2: mesure: ", "did you mean 'measure'?"},
        BadSpec{"FieldTwice", "{\"sweeps\": [{}],\n\"sweeps\": [{}]}",
                "my.json:2: sweeps: ", "stands twice"},
        BadSpec{"UnknownSweepField", "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"key\": 5}]}",
                "my.json:2: sweeps[0].key: ", "did you mean 'keys'?"},
        BadSpec{"FiltersMissing", "{\"sweeps\": [\n{\"keys\": 5}]}",
                "my.json:2: sweeps[0].filters: ", "must be an object"},
        BadSpec{"FiltersEmptyList", "{\"sweeps\": [\n{\"filters\": []}]}",
                "my.json:2: sweeps[0].filters: ", "must be an object"},
        BadSpec{"FilterEntryNoObject", "{\"sweeps\": [{\"filters\": [\n\"a\"]}]}",
                "my.json:2: sweeps[0].filters[0]: ", "must be an object"},
        BadSpec{"FilterEntryOfNeither", "{\"sweeps\": [{\"filters\": [\n{}]}]}",
                "my.json:2: sweeps[0].filters[0]: ", "either a filter or a preset"},
        BadSpec{"FilterEntryOfBoth",
                "{\"sweeps\": [{\"filters\": [\n{\"filter\": \"a\", \"preset\": \"b\"}]}]}",
                "my.json:2: sweeps[0].filters[0]: ", "either a filter or a preset"},
        BadSpec{"PresetWithParams",
                "{\"sweeps\": [{\"filters\": [{\"preset\": \"b\",\n\"params\": {}}]}]}",
                "my.json:2: sweeps[0].filters[0].params: ", "its own parameters"},
        BadSpec{"FilterEntryField",
                "{\"sweeps\": [{\"filters\": [{\"preset\": \"b\",\n\"param\": {}}]}]}",
                "my.json:2: sweeps[0].filters[0].param: ", "did you mean 'params'?"},
        BadSpec{"KeysNegative", "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"keys\": [10, -1]}]}",
                "my.json:2: sweeps[0].keys[1]: ", "whole number"},
        BadSpec{"KeysFraction", "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"keys\": 1.5}]}",
                "my.json:2: sweeps[0].keys: ", "whole number"},
        BadSpec{"KeysHuge", "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"keys\": 1e30}]}",
                "my.json:2: sweeps[0].keys: ", "whole number"},
        BadSpec{"KeysTwice", "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"keys\": [10, 1e1]}]}",
                "my.json:2: sweeps[0].keys[1]: ", "stands twice"},
        BadSpec{"KeysEmpty", "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"keys\": []}]}",
                "my.json:2: sweeps[0].keys: ", "must not be empty"},
        BadSpec{"UnknownMode", "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"modes\": \"latncy\"}]}",
                "my.json:2: sweeps[0].modes: ", "did you mean 'latency'?"},
        BadSpec{"ShareInPercent",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"negative_shares\": [50]}]}",
                "my.json:2: sweeps[0].negative_shares[0]: ", "number in 0..1"},
        BadSpec{"UnknownHashing",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"hashings\": \"xxh3_u46\"}]}",
                "my.json:2: sweeps[0].hashings: ", "did you mean 'xxh3_u64'?"},
        BadSpec{"KeySetKind",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"key_sets\": [{\"kind\": \"mixd\"}]}]}",
                "my.json:2: sweeps[0].key_sets[0]: ", "did you mean 'mixed'?"},
        BadSpec{
            "KeySetLength",
            "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"key_sets\": [{\"kind\": \"bytes\"}]}]}",
            "my.json:2: sweeps[0].key_sets[0]: ", "length_bytes"},
        BadSpec{"KeySetField",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"key_sets\": [{\"kind\": \"mixed\", "
                "\"length_bytes\": 9}]}]}",
                "my.json:2: sweeps[0].key_sets[0]: ", "length_bytes"},
        BadSpec{"UnknownPages",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"pages\": [\"4k\", \"hugetbl\"]}]}",
                "my.json:2: sweeps[0].pages[1]: ", "did you mean 'hugetlb'?"},
        BadSpec{"PagesTwice",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n"
                "\"pages\": [\"default\", \"default\"]}]}",
                "my.json:2: sweeps[0].pages[1]: ", "stands twice"},
        BadSpec{"ThreadsNone", "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"threads\": [2, 0]}]}",
                "my.json:2: sweeps[0].threads[1]: ", "whole number in 1.."},
        BadSpec{"ThreadsFraction",
                "{\"sweeps\": [{\"filters\": {\"a\": {}},\n\"threads\": 1.5}]}",
                "my.json:2: sweeps[0].threads: ", "whole number in 1.."},
        BadSpec{"Rounds", "{\"sweeps\": [{}], \"measure\": {\n\"rounds\": 0}}",
                "my.json:2: measure.rounds: ", "1..1000"},
        BadSpec{"PassSeconds", "{\"sweeps\": [{}], \"measure\": {\n\"pass_seconds\": \"1s\"}}",
                "my.json:2: measure.pass_seconds: ", "must be a number"},
        BadSpec{"ShortStream", "{\"sweeps\": [{}], \"measure\": {\n\"stream_lookups\": 100}}",
                "my.json:2: measure.stream_lookups: ", "4096"},
        BadSpec{"MeasureField", "{\"sweeps\": [{}], \"measure\": {\n\"round\": 3}}",
                "my.json:2: measure.round: ", "did you mean 'rounds'?"}),
    [](const auto& info) { return info.param.name; });

TEST(ParseSpec, NestingIsBounded) {
  const Result<Spec> spec = Parse("\n" + std::string(100'000, '['));
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error(), "my.json:2: nested deeper than 64 levels");
}

TEST(ReadSpec, UnknownNamesGetTheNearest) {
  const Result<Spec> spec = ReadSpec("smoek");
  ASSERT_FALSE(spec);
  EXPECT_THAT(spec.error(), HasSubstr("did you mean 'smoke'?"));
}

TEST(ReadSpec, PathsThatAreNoFilesAreNamed) {
  for (const std::string& path : {std::string("/dev/null"), ::testing::TempDir(),
                                  ::testing::TempDir() + "/absent.json"}) {
    const Result<Spec> spec = ReadSpec(path);
    ASSERT_FALSE(spec) << path;
    EXPECT_THAT(spec.error(), HasSubstr(path));
  }
}

}  // namespace
}  // namespace filterbench
