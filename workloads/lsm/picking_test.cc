#include "workloads/lsm/picking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filterbench::lsm {
namespace {

using ::testing::ElementsAre;

TEST(SizeBuckets, FilesWithinHalfAndOneAndAHalfTimesTheMean) {
  // 10 and 14: mean 12; 17 is below 18, mean 13.7; 21 is beyond 20.5; 100 is by itself.
  EXPECT_THAT(SizeBuckets(std::vector<uint64_t>{100, 21, 10, 17, 14}, {}),
              ElementsAre(ElementsAre(2, 4, 3), ElementsAre(1), ElementsAre(0)));
}

TEST(SizeBuckets, ALimitItselfIsOutside) {
  EXPECT_THAT(SizeBuckets(std::vector<uint64_t>{100, 150}, {}),
              ElementsAre(ElementsAre(0), ElementsAre(1)));
  EXPECT_THAT(SizeBuckets(std::vector<uint64_t>{100, 149}, {}), ElementsAre(ElementsAre(0, 1)));
}

TEST(SizeBuckets, SmallFilesShareOne) {
  EXPECT_THAT(SizeBuckets(std::vector<uint64_t>{1, 9, 30, 100}, {.min_file_bytes = 40}),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3)));
}

TEST(PickSizeTiered, FourOfASize) {
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>{1, 1, 1}, {}), std::nullopt);
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>{1, 1, 1, 1}, {}), (Stretch{0, 4}));
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>{1, 1, 4, 4, 4, 16}, {}), std::nullopt);
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>{1, 1, 4, 4, 4, 4, 16}, {}), (Stretch{2, 6}));
}

TEST(PickSizeTiered, SmallestSizeFirst) {
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>{1, 1, 1, 1, 4, 4, 4, 4}, {}), (Stretch{0, 4}));
}

TEST(PickSizeTiered, OnlyWhatIsAdjacentInAge) {
  // The large file divides the small ones: to merge them all would put those before it behind it.
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>{1, 1, 90, 1, 1}, {}), std::nullopt);
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>{1, 90, 1, 1, 1, 1}, {}), (Stretch{2, 6}));
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>{1, 1, 1, 1, 90, 1}, {}), (Stretch{0, 4}));
  // A small one goes along.
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>{9, 90, 90, 9, 90, 90, 9}, {}), (Stretch{1, 6}));
}

TEST(PickSizeTiered, NeverMoreThanTheThreshold) {
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>(40, 7), {}), (Stretch{8, 40}));
  EXPECT_EQ(PickSizeTiered(std::vector<uint64_t>(6, 7), {.min_threshold = 3, .max_threshold = 3}),
            (Stretch{3, 6}));
}

TEST(LevelLimitBytes, GrowsByTheRatioAndDoesNotWrap) {
  const StoreOptions options = {.size_ratio = 10, .level1_bytes = 7};
  EXPECT_EQ(LevelLimitBytes(1, options), 7u);
  EXPECT_EQ(LevelLimitBytes(3, options), 700u);
  EXPECT_EQ(LevelLimitBytes(60, options), UINT64_MAX);
}

TEST(Overlapping, BothEndsBelongToAFile) {
  const std::vector<FileExtent> level = {{1, "b", "d"}, {1, "f", "h"}, {1, "j", "l"}};
  EXPECT_EQ(Overlapping(level, "d", "f"), (Stretch{0, 2}));
  EXPECT_EQ(Overlapping(level, "e", "e"), (Stretch{1, 1}));
  EXPECT_EQ(Overlapping(level, "a", "a"), (Stretch{0, 0}));
  EXPECT_EQ(Overlapping(level, "m", "z"), (Stretch{3, 3}));
  EXPECT_EQ(Overlapping(level, "a", "z"), (Stretch{0, 3}));
}

TEST(PickLeveled, AllOfLevel0WithWhatTheyOverlap) {
  const StoreOptions options = {.level0_files = 2, .level1_bytes = 100};
  std::vector<std::string> resume_after;
  const std::vector<FileExtent> level1 = {{30, "a", "c"}, {30, "e", "g"}, {30, "x", "y"}};
  EXPECT_EQ(PickLeveled({{{9, "d", "e"}}, level1}, options, resume_after), std::nullopt);
  EXPECT_EQ(PickLeveled({{{9, "d", "e"}, {9, "b", "b"}}, level1}, options, resume_after),
            (LeveledPick{0, {0, 2}, {0, 2}}));
}

TEST(PickLeveled, FilesOfALevelTakeTurns) {
  const StoreOptions options = {.level1_bytes = 50};
  const std::vector<std::vector<FileExtent>> levels = {
      {}, {{20, "a", "c"}, {20, "e", "g"}, {20, "i", "k"}}, {{20, "b", "f"}, {20, "h", "h"}}};
  std::vector<std::string> resume_after;
  EXPECT_EQ(PickLeveled(levels, options, resume_after), (LeveledPick{1, {0, 1}, {0, 1}}));
  EXPECT_EQ(PickLeveled(levels, options, resume_after), (LeveledPick{1, {1, 2}, {0, 1}}));
  EXPECT_EQ(PickLeveled(levels, options, resume_after), (LeveledPick{1, {2, 3}, {2, 2}}));
  EXPECT_EQ(PickLeveled(levels, options, resume_after), (LeveledPick{1, {0, 1}, {0, 1}}));
}

TEST(PickLeveled, TheDeepestLevelMayBeginANewOne) {
  std::vector<std::string> resume_after;
  EXPECT_EQ(PickLeveled({{}, {{20, "a", "c"}}}, {.level1_bytes = 10}, resume_after),
            (LeveledPick{1, {0, 1}, {0, 0}}));
}

}  // namespace
}  // namespace filterbench::lsm
