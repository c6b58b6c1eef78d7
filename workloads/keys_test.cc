#include "workloads/keys.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filterbench {
namespace {

using ::testing::HasSubstr;

std::string WriteTemporary(const std::string& name, const std::string& content) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::set<std::string> AllKeys(const KeySet& set) {
  ByteKeyArena arena;
  for (uint64_t i = 0; i < set.size(); ++i) set.AppendBytes(i, arena);
  std::set<std::string> keys;
  for (size_t i = 0; i < arena.keys().size; ++i) keys.emplace(arena.keys()[i]);
  return keys;
}

TEST(KeySet, IndicesNeverShareAKey) {
  for (const KeyKind kind : {KeyKind::kMixed, KeyKind::kSequential}) {
    const Result<KeySet> set = KeySet::Open({.kind = kind}, 5);
    ASSERT_TRUE(set) << set.error();
    std::set<uint64_t> keys;
    for (uint64_t i = 0; i < 100'000; ++i) keys.insert(set->U64(i));
    EXPECT_EQ(keys.size(), 100'000u);
  }
}

TEST(KeySet, ByteStringsHaveTheirLengthAndDiffer) {
  for (const uint32_t length : {8u, 13u, 16u, 100u}) {
    const Result<KeySet> set = KeySet::Open({.kind = KeyKind::kBytes, .length_bytes = length}, 5);
    ASSERT_TRUE(set) << set.error();
    ByteKeyArena arena;
    std::set<std::string> keys;
    for (uint64_t i = 0; i < 10'000; ++i) {
      set->AppendBytes(i, arena);
      EXPECT_EQ(arena.keys()[i].size(), length);
      EXPECT_EQ(HashBytes(arena.keys()[i], 9), set->Hash(i, 9));
      keys.emplace(arena.keys()[i]);
    }
    EXPECT_EQ(keys.size(), 10'000u);
  }
}

TEST(KeySet, LengthsOutOfRangeAreRefused) {
  for (const uint32_t length : {0u, 7u, 4097u}) {
    const Result<KeySet> set = KeySet::Open({.kind = KeyKind::kBytes, .length_bytes = length}, 5);
    ASSERT_FALSE(set);
    EXPECT_THAT(set.error(), HasSubstr("length_bytes"));
  }
}

TEST(KeySet, AFileIsItsDistinctLines) {
  const std::string path = WriteTemporary("keys.txt", "apple\r\nmango\n\nkiwi\napple\nlast");
  const Result<KeySet> set = KeySet::Open({.kind = KeyKind::kFile, .path = path}, 5);
  ASSERT_TRUE(set) << set.error();
  EXPECT_EQ(AllKeys(*set), (std::set<std::string>{"apple", "mango", "kiwi", "last"}));
  EXPECT_EQ(set->size(), 4u);
}

TEST(KeySet, AnotherSeedHasOtherKeys) {
  for (const KeyKind kind : {KeyKind::kMixed, KeyKind::kSequential, KeyKind::kBytes}) {
    const KeySetSpec spec{.kind = kind, .length_bytes = kind == KeyKind::kBytes ? 16u : 0u};
    const Result<KeySet> one = KeySet::Open(spec, 5);
    const Result<KeySet> other = KeySet::Open(spec, 6);
    ASSERT_TRUE(one && other);
    for (uint64_t i = 0; i < 100; ++i) EXPECT_NE(one->Hash(i, 1), other->Hash(i, 1));
  }
}

TEST(KeySet, BytesOfAFileAreKeptAsTheyAre) {
  const std::string path = WriteTemporary("bytes.txt", std::string("a\0b\n\xff\xfe\n", 7));
  const Result<KeySet> set = KeySet::Open({.kind = KeyKind::kFile, .path = path}, 5);
  ASSERT_TRUE(set) << set.error();
  EXPECT_EQ(AllKeys(*set), (std::set<std::string>{std::string("a\0b", 3), "\xff\xfe"}));
}

TEST(KeySet, FilesThatCannotServeAreNamed) {
  const std::string empty = WriteTemporary("empty.txt", "");
  const std::string blank = WriteTemporary("blank.txt", "\n\r\n\n");
  for (const std::string& path :
       {empty, blank, ::testing::TempDir(), ::testing::TempDir() + "no-such-file"}) {
    const Result<KeySet> set = KeySet::Open({.kind = KeyKind::kFile, .path = path}, 5);
    ASSERT_FALSE(set) << path;
    EXPECT_THAT(set.error(), HasSubstr(path));
  }
}

TEST(KeySet, AFileThatChangedIsNotTheSameKeySet) {
  const std::string path = WriteTemporary("changing.txt", "a\nb\n");
  const Result<KeySet> first = KeySet::Open({.kind = KeyKind::kFile, .path = path}, 1);
  ASSERT_TRUE(first) << first.error();
  const KeySetSpec spec = first->spec();
  EXPECT_EQ(spec.digest.size(), 16u);
  EXPECT_TRUE(KeySet::Open(spec, 1));
  WriteTemporary("changing.txt", "a\nc\n");
  const Result<KeySet> set = KeySet::Open(spec, 1);
  ASSERT_FALSE(set);
  EXPECT_THAT(set.error(), HasSubstr(spec.digest + " was expected"));
}

// A real word list, as a user has it: Debian's wamerican-large.
TEST(KeySet, AWordListIsRead) {
  const std::string path = "/usr/share/dict/american-english-large";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not installed";
  const Result<KeySet> set = KeySet::Open({.kind = KeyKind::kFile, .path = path}, 1);
  ASSERT_TRUE(set) << set.error();
  EXPECT_GT(set->size(), 100'000u);
  EXPECT_EQ(AllKeys(*set).size(), set->size());
}

}  // namespace
}  // namespace filterbench
