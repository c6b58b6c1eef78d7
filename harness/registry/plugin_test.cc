#include "harness/registry/plugin.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "filters/hash.h"
#include "harness/temporary_directory.h"

namespace filterbench {
namespace {

using ::testing::HasSubstr;

constexpr const char* kExample = FILTERBENCH_PLUGINS_DIRECTORY "/example_plugin.so";

TEST(OpenPluginTest, AnExampleIsAFilterLikeOthers) {
  const Result<Plugin> plugin = OpenPlugin(kExample);
  ASSERT_TRUE(plugin) << plugin.error();
  EXPECT_EQ(plugin->path, kExample);
  EXPECT_EQ(plugin->digest.size(), 16u);
  ASSERT_EQ(plugin->types.size(), 1u);
  const FilterType& type = *plugin->types[0];
  EXPECT_EQ(type.info().name, "word_bloom");
  EXPECT_TRUE(type.is_external());
  EXPECT_TRUE(type.can_insert());
  EXPECT_FALSE(type.can_erase());
  EXPECT_EQ(type.CompleteParams({{"k", 3}})->dump(), R"({"bits_per_key":12.0,"k":3})");

  std::vector<uint64_t> hashes(1000);
  for (size_t i = 0; i < hashes.size(); ++i) hashes[i] = Mix64(i + 1);
  const auto filter = type.Build({.words = hashes}, {{"bits_per_key", 16}}, 1);
  ASSERT_TRUE(filter) << filter.error();
  // 1000 keys of 16 bits in whole words, and the object.
  EXPECT_GE((*filter)->SizeInBytes(), 2000u);
  EXPECT_LE((*filter)->SizeInBytes(), 2100u);
  for (const std::string_view target : type.targets()) {
    for (const Mode mode : {Mode::kLookupBatched, Mode::kLookupSingle, Mode::kLatency}) {
      EXPECT_EQ((*filter)->Count({.words = hashes}, mode, target), hashes.size()) << target;
    }
  }
  // Keys that are hashed on the way.
  std::vector<uint64_t> keys(3000);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = i;
    if (i < hashes.size()) hashes[i] = HashU64(i, 9);
  }
  const auto of_keys = type.Build({.words = hashes}, nlohmann::json::object(), 1);
  ASSERT_TRUE(of_keys);
  const KeyStream stream{.hashing = Hashing::kXxh3U64, .words = keys, .hash_seed = 9};
  EXPECT_GE((*of_keys)->Count(stream, Mode::kLookupBatched, "external"), 1000u);
  EXPECT_LE((*of_keys)->Count(stream, Mode::kLookupBatched, "external"), 1200u);
}

TEST(OpenPluginTest, ParametersAreCheckedAsThoseOfOurFilters) {
  const Result<Plugin> plugin = OpenPlugin(kExample);
  ASSERT_TRUE(plugin) << plugin.error();
  const auto error = [&](const nlohmann::json& params) {
    const auto complete = plugin->types[0]->CompleteParams(params);
    return complete ? "accepted " + complete->dump() : complete.error();
  };
  EXPECT_EQ(error({{"k", 2.5}}), "k: must be a whole number in 1..8, is 2.5");
  EXPECT_EQ(error({{"k", 9}}), "k: must be a whole number in 1..8, is 9");
  EXPECT_EQ(error({{"bits_per_key", "12"}}), "bits_per_key: must be a number in 1..64, is \"12\"");
  EXPECT_THAT(error({{"bits_per_kee", 12}}), HasSubstr("bits_per_key"));
  EXPECT_THAT(error(nlohmann::json::array()), HasSubstr("must be an object"));
}

TEST(OpenPluginTest, SaysWhatIsWrongWithAFile) {
  const TemporaryDirectory directory;
  const auto error = [](const std::string& path) {
    const Result<Plugin> plugin = OpenPlugin(path);
    return plugin ? std::string("opened") : plugin.error();
  };
  const std::string missing = (directory.path() / "missing.so").string();
  EXPECT_EQ(error(missing), missing + ": cannot be opened: No such file or directory");
  EXPECT_THAT(error(directory.path().string()), HasSubstr("is not a file"));
  const std::string text = (directory.path() / "text.so").string();
  std::ofstream(text) << "not a library\n";
  EXPECT_THAT(error(text), HasSubstr(text + ": cannot be loaded: "));
  EXPECT_THAT(error("libm.so.6"), HasSubstr("libm.so.6: cannot be opened"));
  EXPECT_THAT(error("/lib/x86_64-linux-gnu/libm.so.6"),
              ::testing::AnyOf(HasSubstr("has no function filterbench_plugin_entry"),
                               HasSubstr("cannot be opened")));
}

TEST(OpenPluginTest, ALibraryThatDiesWhileItIsLoadedIsRefused) {
  ASSERT_EQ(setenv("FILTERBENCH_TEST_PLUGIN_DIES", "1", 1), 0);
  const Result<Plugin> plugin = OpenPlugin(FILTERBENCH_PLUGINS_DIRECTORY "/misbehaving_plugin.so");
  unsetenv("FILTERBENCH_TEST_PLUGIN_DIES");
  ASSERT_FALSE(plugin);
  EXPECT_THAT(plugin.error(), HasSubstr("while it was loaded it crashed: signal 11"));
}

TEST(LoadPluginTest, NamesAreTakenOnce) {
  ASSERT_FALSE(LoadPlugin(kExample).has_value());
  EXPECT_TRUE(FindFilterType("word_bloom").has_value());
  const size_t count = FilterTypes().size();
  EXPECT_FALSE(LoadPlugin(kExample).has_value()) << "the same file twice is one plug-in";
  EXPECT_EQ(FilterTypes().size(), count);
  const TemporaryDirectory directory;
  const std::string copy = (directory.path() / "copy.so").string();
  std::filesystem::copy_file(kExample, copy);
  const auto error = LoadPlugin(copy);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->message, copy + ": there is a filter word_bloom already");
}

}  // namespace
}  // namespace filterbench
