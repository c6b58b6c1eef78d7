#include "filters/presets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

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
