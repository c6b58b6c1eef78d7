#include "harness/machine/system_files.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "harness/machine/fixture_tree.h"

namespace filterbench {
namespace {

TEST(SystemFilesTest, MissingEmptyAndBlankFilesDiffer) {
  const FixtureTree tree;
  const SystemFiles files(tree.root());
  tree.Write("/sys/empty", "");
  tree.Write("/sys/blank", "\n");
  tree.Write("/sys/value", " 17\n");

  EXPECT_EQ(files.Read("/sys/missing").reason(),
            "cannot open /sys/missing: No such file or directory");
  EXPECT_EQ(files.Read("/sys/empty").reason(), "/sys/empty is empty");
  ASSERT_TRUE(files.Read("/sys/blank").known());
  EXPECT_EQ(files.Read("/sys/blank").value(), "");
  EXPECT_EQ(files.ReadText("/sys/blank").reason(), "/sys/blank is blank");
  EXPECT_EQ(files.Read("/sys/value").value(), "17");
  EXPECT_EQ(files.ReadInteger("/sys/value").value(), 17);
  EXPECT_FALSE(files.ReadInteger("/sys/blank").known());
  EXPECT_TRUE(files.ReadCpuList("/sys/blank").value().empty());
  EXPECT_FALSE(files.ReadCpuList("/sys/empty").known());
  EXPECT_EQ(files.Read("/sys").reason(), "cannot read /sys: Is a directory");
}

TEST(SystemFilesTest, OnlyTheRealRootIsLive) {
  EXPECT_TRUE(SystemFiles("/").is_live());
  EXPECT_FALSE(SystemFiles("/tmp").is_live());
}

TEST(SystemFilesTest, IntegersAreWholeTexts) {
  EXPECT_EQ(ParseInteger("42"), 42);
  EXPECT_EQ(ParseInteger(" -1\n"), -1);
  EXPECT_EQ(ParseInteger("0x00040000", 16), 0x40000);
  EXPECT_EQ(ParseInteger("9223372036854775807"), INT64_MAX);
  for (const char* bad : {"", " ", "4 2", "4.2", "1,234", "x", "9223372036854775808", "0x10"}) {
    EXPECT_EQ(ParseInteger(bad), std::nullopt) << bad;
  }
}

TEST(SystemFilesTest, DecimalsAreFiniteWholeTexts) {
  EXPECT_EQ(ParseDecimal("2445.406"), 2445.406);
  for (const char* bad : {"", "nan", "inf", "1,5", "1.5 GHz", "1e999"}) {
    EXPECT_EQ(ParseDecimal(bad), std::nullopt) << bad;
  }
}

TEST(SystemFilesTest, CpuLists) {
  using Cpus = std::vector<int>;
  EXPECT_EQ(ParseCpuList(""), Cpus());
  EXPECT_EQ(ParseCpuList("0"), Cpus({0}));
  EXPECT_EQ(ParseCpuList("8,0-3\n"), Cpus({0, 1, 2, 3, 8}));
  EXPECT_EQ(ParseCpuList("1,0-2"), Cpus({0, 1, 2}));
  for (const char* bad : {"-", "3-1", "0-", "-3", "0,", ",0", "a", "0-4000000000", "0 1"}) {
    EXPECT_EQ(ParseCpuList(bad), std::nullopt) << bad;
  }
}

TEST(SystemFilesTest, ColonValuesMatchWholeKeys) {
  const std::string text = "model name\t: AMD EPYC\nmodel\t\t: 1\nempty:\nno colon";
  EXPECT_EQ(FindColonValue(text, "model"), "1");
  EXPECT_EQ(FindColonValue(text, "model name"), "AMD EPYC");
  EXPECT_EQ(FindColonValue(text, "empty"), "");
  EXPECT_EQ(FindColonValue(text, "name"), std::nullopt);
}

TEST(SystemFilesTest, KibibytesNeedTheirUnit) {
  const auto text = [](const char* line) { return Fact<std::string>::Known(line); };
  EXPECT_EQ(FindKibibytesAsBytes(text("MemTotal:  2 kB"), "MemTotal", "p").value(), 2048);
  for (const char* bad : {"MemTotal:  2", "MemTotal: -2 kB", "MemTotal: 2 MB",
                          "MemTotal: ", "MemTotal: 9223372036854775807 kB", "Other: 2 kB"}) {
    EXPECT_FALSE(FindKibibytesAsBytes(text(bad), "MemTotal", "p").known()) << bad;
  }
}

}  // namespace
}  // namespace filterbench
