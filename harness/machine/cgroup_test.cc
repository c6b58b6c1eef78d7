#include "harness/machine/cgroup.h"

#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "harness/machine/fixture_tree.h"

namespace filterbench {
namespace {

struct CgroupCase {
  const char* name;
  std::vector<std::pair<const char*, const char*>> files;
  std::optional<double> quota;
  const char* reason;  // its beginning
};

void PrintTo(const CgroupCase& test, std::ostream* stream) { *stream << test.name; }

class CgroupCpuQuotaTest : public testing::TestWithParam<CgroupCase> {};

TEST_P(CgroupCpuQuotaTest, Quota) {
  const FixtureTree tree;
  for (const auto& [path, content] : GetParam().files) tree.Write(path, content);
  const Fact<double> quota = CgroupCpuQuota(SystemFiles(tree.root()));
  if (GetParam().quota) {
    ASSERT_TRUE(quota.known()) << quota.reason();
    EXPECT_EQ(quota.value(), *GetParam().quota);
  } else {
    ASSERT_FALSE(quota.known()) << quota.value();
    EXPECT_TRUE(quota.reason().starts_with(GetParam().reason)) << quota.reason();
  }
}

const char kV2Mount[] = "31 23 0:28 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
const char kV1Mount[] =
    "30 23 0:27 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

INSTANTIATE_TEST_SUITE_P(
    Hierarchies, CgroupCpuQuotaTest,
    testing::Values(
        CgroupCase{"V2TightestOfAllLevels",
                   {{"/proc/self/cgroup", "0::/a/b\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/a/cpu.max", "50000 100000\n"},
                    {"/sys/fs/cgroup/a/b/cpu.max", "200000 100000\n"}},
                   0.5,
                   ""},
        CgroupCase{"V2Unlimited",
                   {{"/proc/self/cgroup", "0::/a\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"}},
                   std::nullopt,
                   "unlimited"},
        CgroupCase{"V2TopOfANamespace",
                   {{"/proc/self/cgroup", "0::/\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.events", "populated 1\n"},
                    {"/sys/fs/cgroup/cpu.max", "max 100000\n"}},
                   std::nullopt,
                   "unlimited in the groups that are visible; outer"},
        CgroupCase{"V2NamespaceWithLimit",
                   {{"/proc/self/cgroup", "0::/\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.events", "populated 1\n"},
                    {"/sys/fs/cgroup/cpu.max", "250000 100000\n"}},
                   2.5,
                   ""},
        CgroupCase{"V2NamespaceWithoutController",
                   {{"/proc/self/cgroup", "0::/\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.events", "populated 1\n"}},
                   std::nullopt,
                   "the controller 'cpu' sets no limit files"},
        CgroupCase{"V2OutsideOfTheNamespace",
                   {{"/proc/self/cgroup", "0::/../other\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.procs", "1\n"}},
                   std::nullopt,
                   "the group /../other of this process is not visible"},
        CgroupCase{"V2EmptyLevelBelowALimit",
                   {{"/proc/self/cgroup", "0::/a/b\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/a/cpu.max", "50000 100000\n"},
                    {"/sys/fs/cgroup/a/b/cpu.max", ""}},
                   std::nullopt,
                   "/sys/fs/cgroup/a/b/cpu.max is empty"},
        CgroupCase{"V2Malformed",
                   {{"/proc/self/cgroup", "0::/a\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/a/cpu.max", "50000 0\n"}},
                   std::nullopt,
                   "/sys/fs/cgroup/a/cpu.max holds '50000 0'"},
        CgroupCase{"V1Limit",
                   {{"/proc/self/cgroup", "4:cpu,cpuacct:/docker\n1:name=systemd:/x\n0::/y\n"},
                    {"/proc/self/mountinfo", kV1Mount},
                    {"/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "75000\n"},
                    {"/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "50000\n"},
                    {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"}},
                   1.5,
                   ""},
        CgroupCase{"V1Unlimited",
                   {{"/proc/self/cgroup", "4:cpu,cpuacct:/\n"},
                    {"/proc/self/mountinfo", kV1Mount},
                    {"/sys/fs/cgroup/cpu,cpuacct/release_agent", "\n"},
                    {"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"}},
                   std::nullopt,
                   "unlimited"},
        CgroupCase{"V1ContainerSeesItsOwnGroupAsMount",
                   {{"/proc/self/cgroup", "4:cpu,cpuacct:/docker/1f\n"},
                    {"/proc/self/mountinfo",
                     "32 30 0:29 /docker/1f /sys/fs/cgroup/cpu\\040x ro - cgroup cgroup rw,cpu\n"},
                    {"/sys/fs/cgroup/cpu x/cpu.cfs_quota_us", "300000\n"},
                    {"/sys/fs/cgroup/cpu x/cpu.cfs_period_us", "100000\n"}},
                   3.0,
                   ""},
        CgroupCase{"V1NotMountedIsNotDecidedByV2",
                   {{"/proc/self/cgroup", "4:cpu,cpuacct:/docker\n0::/\n"},
                    {"/proc/self/mountinfo", kV2Mount},
                    {"/sys/fs/cgroup/cgroup.procs", "1\n"}},
                   std::nullopt,
                   "no cgroup hierarchy with the controller 'cpu' is mounted here"},
        CgroupCase{"V1SiblingWithTheSamePrefix",
                   {{"/proc/self/cgroup", "4:cpu:/docker2\n"},
                    {"/proc/self/mountinfo",
                     "32 30 0:29 /docker /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"},
                    {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"}},
                   std::nullopt,
                   "the group /docker2 of this process is not visible"},
        CgroupCase{"NoFiles", {}, std::nullopt, "cannot open /proc/self/cgroup"},
        CgroupCase{"EmptyFiles",
                   {{"/proc/self/cgroup", ""}, {"/proc/self/mountinfo", ""}},
                   std::nullopt,
                   "/proc/self/cgroup is empty"}),
    [](const testing::TestParamInfo<CgroupCase>& test) { return test.param.name; });

TEST(CgroupTest, MemoryLimit) {
  const FixtureTree tree;
  const SystemFiles files(tree.root());
  tree.Write("/proc/self/cgroup", "7:memory:/a\n");
  tree.Write("/proc/self/mountinfo",
             "32 30 0:29 / /sys/fs/cgroup/memory rw - cgroup m rw,memory\n");
  tree.Write("/sys/fs/cgroup/memory/release_agent", "\n");
  tree.Write("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(CgroupMemoryLimitBytes(files).reason(), "unlimited");
  tree.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  EXPECT_EQ(CgroupMemoryLimitBytes(files).value(), 536870912);
}

TEST(CgroupCpuThrottlingTest, SumsAllVisibleLevels) {
  const FixtureTree tree;
  const SystemFiles files(tree.root());
  tree.Write("/proc/self/cgroup", "0::/a/b\n");
  tree.Write("/proc/self/mountinfo", kV2Mount);
  tree.Write("/sys/fs/cgroup/a/b/cgroup.procs", "1\n");
  EXPECT_EQ(CgroupCpuThrottling(files).reason(), "no group that is visible counts throttling");

  tree.Write("/sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  tree.Write("/sys/fs/cgroup/a/cpu.stat",
             "usage_usec 5\nnr_periods 9\nnr_throttled 2\nthrottled_usec 7\n");
  tree.Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  tree.Write("/sys/fs/cgroup/a/b/cpu.stat", "nr_throttled 1\nthrottled_usec 3\n");
  // Without the controller: says nothing about throttling, and need not.
  tree.Write("/sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
  const Fact<CgroupThrottling> throttling = CgroupCpuThrottling(files);
  ASSERT_TRUE(throttling.known()) << throttling.reason();
  EXPECT_EQ(throttling.value().throttled_periods, 3);
  EXPECT_EQ(throttling.value().throttled_ns, 10000);

  for (const char* damaged :
       {"nr_throttled\n", "nr_throttled 2\n", "garbage\n", "nr_throttled -1\nthrottled_usec 7\n",
        "nr_throttled 1\nthrottled_usec 99999999999999999999\n"}) {
    tree.Write("/sys/fs/cgroup/a/cpu.stat", damaged);
    EXPECT_EQ(CgroupCpuThrottling(files).reason(),
              "/sys/fs/cgroup/a/cpu.stat does not tell how often it was throttled");
  }
  tree.Write("/sys/fs/cgroup/a/cpu.stat", "");
  EXPECT_EQ(CgroupCpuThrottling(files).reason(), "/sys/fs/cgroup/a/cpu.stat is empty");
}

TEST(CgroupCpuThrottlingTest, NanosecondsInV1) {
  const FixtureTree tree;
  tree.Write("/proc/self/cgroup", "4:cpu,cpuacct:/docker\n0::/y\n");
  tree.Write("/proc/self/mountinfo", kV1Mount);
  tree.Write("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.stat",
             "nr_periods 5\nnr_throttled 4\nthrottled_time 1234\n");
  const Fact<CgroupThrottling> throttling = CgroupCpuThrottling(SystemFiles(tree.root()));
  ASSERT_TRUE(throttling.known()) << throttling.reason();
  EXPECT_EQ(throttling.value().throttled_periods, 4);
  EXPECT_EQ(throttling.value().throttled_ns, 1234);
}

}  // namespace
}  // namespace filterbench
