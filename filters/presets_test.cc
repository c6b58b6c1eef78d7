#include "filters/presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "filters/catalogue.h"
#include "filters/params_json.h"

namespace filterbench {
namespace {

TEST(PresetsTest, EveryFilterExistsAndTakesTheParameters) {
  EXPECT_GE(Presets().size(), 20u);
  for (const Preset& preset : Presets()) {
    SCOPED_TRACE(preset.name);
    if (!preset.filter) {
      EXPECT_FALSE(preset.reason.empty());
      continue;
    }
    bool found = false;
    std::string problem = "no such filter: " + *preset.filter;
    Catalogue::ForEach([&]<class F>() {
      if (F::kInfo.name != *preset.filter) return;
      found = true;
      const Result<typename F::Params> params = ParamsFromJson<F>(preset.params);
      problem = params ? "" : params.error();
    });
    // A build of some filters only, see FILTERBENCH_ONLY.
    if (!found && !kFiltersNotBuilt.empty()) continue;
    EXPECT_EQ(problem, "");
  }
}

// The values that the systems' sources state, once more: a slip in the data is no other filter.
TEST(PresetsTest, HaveTheirSystemsValues) {
  const std::map<std::string, std::string> expected = {
      {"leveldb-builtin", R"(leveldb_bloom {"bits_per_key":10})"},
      {"rocksdb-bloom-fv5", R"(rocksdb_bloom {"bits_per_key":10})"},
      {"rocksdb-ribbon128", R"(ribbon {"fpr":0.0095,"system":"standard","width":"128"})"},
      {"rocksdb-legacy-locality", R"(rocksdb_legacy_bloom {"bits_per_key":10})"},
      {"rocksdb-memtable-dynamicbloom", R"(rocksdb_dynamic_bloom {"bits_per_key":10,"k":6})"},
      {"cassandra-0.01",
       R"(system_bloom {"bits_per_key":10,"extra_bits":20,"k":5,"probing":"plain",)"
       R"("rounding":"words","sign":"abs","words":"two_64"})"},
      {"cassandra-lcs-0.1",
       R"(system_bloom {"bits_per_key":5,"extra_bits":20,"k":3,"probing":"plain",)"
       R"("rounding":"words","sign":"abs","words":"two_64"})"},
      {"redisbloom-bf",
       R"(scalable_bloom {"fpr":0.01,"growth":2,"initial_keys":100,"layer_full":"keys",)"
       R"("tightening":0.5})"},
      {"redisbloom-cf", R"(cuckoo {"fingerprint_bits":"8","partner":"xor","slots":"2"})"},
  };
  size_t found = 0;
  for (const Preset& preset : Presets()) {
    const auto one = expected.find(preset.name);
    if (one == expected.end()) continue;
    ++found;
    EXPECT_EQ(*preset.filter + " " + preset.params.dump(), one->second) << preset.name;
  }
  EXPECT_EQ(found, expected.size());

  const std::map<std::string, std::pair<double, int>> bits_and_k = {
      {"scylla", {10, 5}},      {"hbase-row-0.01", {9.593, 7}},
      {"squid-digest", {5, 4}}, {"chrome-safebrowsing-2008-2012", {25, 20}},
      {"sqlite-join", {8, 1}},
  };
  for (const auto& [name, values] : bits_and_k) {
    const Result<const Preset*> preset = FindPreset(name);
    ASSERT_TRUE(preset) << preset.error();
    EXPECT_EQ((*preset)->params.at("bits_per_key"), values.first) << name;
    EXPECT_EQ((*preset)->params.at("k"), values.second) << name;
  }
}

TEST(PresetsTest, EveryPresetSaysWhereItIsFrom) {
  std::set<std::string> names;
  for (const Preset& preset : Presets()) {
    SCOPED_TRACE(preset.name);
    EXPECT_TRUE(names.insert(preset.name).second);
    EXPECT_TRUE(std::ranges::all_of(preset.name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    }));
    EXPECT_FALSE(preset.default_state.empty());
    EXPECT_FALSE(preset.source.empty());
    for (const std::string& value : preset.remembered) EXPECT_FALSE(value.empty());
  }
}

TEST(PresetsTest, UnknownNamesGetTheNearest) {
  ASSERT_TRUE(FindPreset("cassandra-0.01"));
  EXPECT_EQ((*FindPreset("cassandra-0.01"))->params.at("k"), 5);
  const Result<const Preset*> wrong = FindPreset("casandra-0.01");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().find("did you mean 'cassandra-0.01'?"), std::string::npos)
      << wrong.error();
}

TEST(PresetsTest, ErrorsNameTheField) {
  const auto error = [](std::string_view entry) {
    const auto parsed =
        ParsePresets("{\"presets\": [" + std::string(entry) + "]}");
    return parsed ? std::string("accepted") : parsed.error();
  };
  const std::string tail =
      R"("params": {}, "default": "on", "source": "s", "remembered": [], "note": "")";
  EXPECT_EQ(error("{\"name\": \"a\", \"filter\": \"f\", " + tail + "}"), "accepted");
  EXPECT_NE(error("1").find("presets[0]: must be an object"), std::string::npos);
  EXPECT_NE(error("{\"name\": \"a\", " + tail + "}").find("either a filter or a reason"),
            std::string::npos);
  EXPECT_NE(error("{\"name\": 1, \"filter\": \"f\", " + tail + "}").find("presets[0].name"),
            std::string::npos);
  EXPECT_NE(error("{\"name\": \"a\", \"filtr\": \"f\", " + tail + "}").find("'filter'"),
            std::string::npos);
  const std::string good = "{\"name\": \"a\", \"filter\": \"f\", " + tail + "}";
  EXPECT_NE(error(good + "," + good).find("stands twice"), std::string::npos);
  EXPECT_FALSE(ParsePresets("["));
}

}  // namespace
}  // namespace filterbench
