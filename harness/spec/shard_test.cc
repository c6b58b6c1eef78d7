#include "harness/spec/shard.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filterbench {
namespace {

using ::testing::HasSubstr;

TEST(ParseShard, CountsFromOne) {
  for (const char* text : {"1/1", "1/3", "2/3", "3/3", "1000/18446744073709551615"}) {
    const Result<Shard> shard = ParseShard(text);
    ASSERT_TRUE(shard) << shard.error();
    EXPECT_EQ(ShardText(*shard), text);
  }
  EXPECT_EQ(*ParseShard("2/3"), (Shard{.index = 1, .count = 3}));
  EXPECT_EQ(ShardToJson(*ParseShard("2/3")), (nlohmann::json{{"index", 1}, {"count", 3}}));
}

TEST(ParseShard, RefusesWhatIsNoPartOfAWhole) {
  for (const char* text : {"", "/", "1", "0/3", "4/3", "0/0", "1/0", "-1/3", "1/-3", "+1/3", " 1/3",
                           "1/3 ", "1 /3", "1/3/3", "1.0/3", "1e0/3", "a/b", "0x1/3",
                           "1/18446744073709551616", "18446744073709551617/2"}) {
    const Result<Shard> shard = ParseShard(text);
    ASSERT_FALSE(shard) << text;
    EXPECT_THAT(shard.error(), HasSubstr("'" + std::string(text) + "'"));
    EXPECT_THAT(shard.error(), HasSubstr("I/N"));
  }
}

}  // namespace
}  // namespace filterbench
