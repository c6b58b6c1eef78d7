#include "harness/machine/provenance.h"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <string>

#include "harness/machine/fixture_tree.h"

namespace filterbench {
namespace {

using nlohmann::json;

TEST(ProvenanceTest, EveryFieldIsThere) {
  const json provenance = ReadProvenance();
  const std::string compiler = provenance["compiler"];
  EXPECT_TRUE(compiler.starts_with("GCC ") || compiler.starts_with("Clang ")) << compiler;
  EXPECT_TRUE(provenance["flags"].is_string());
  EXPECT_TRUE(provenance["assertions"].is_boolean());
  ASSERT_EQ(provenance["libraries"].size(), 6u);
  for (const auto& [library, version] : provenance["libraries"].items()) {
    const std::string text = version;
    EXPECT_EQ(text.find_first_not_of("0123456789."), std::string::npos) << library << " " << text;
    EXPECT_NE(text.find('.'), std::string::npos) << library << " " << text;
  }
  EXPECT_EQ(provenance["git_commit"].is_null(), provenance["git_dirty"].is_null());
  if (provenance["git_commit"].is_null()) {
    EXPECT_FALSE(std::string(provenance["git_commit_reason"]).empty());
  } else {
    const std::string commit = provenance["git_commit"];
    EXPECT_EQ(commit.size(), 40u);
    EXPECT_EQ(commit.find_first_not_of("0123456789abcdef"), std::string::npos) << commit;
    EXPECT_TRUE(provenance["git_dirty"].is_boolean());
  }
}

TEST(ProvenanceTest, TheBinaryIsTheRunningProgram) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const json provenance = ReadProvenance();
  ASSERT_TRUE(FileXxh3(program).known());
  EXPECT_EQ(provenance["binary_xxh3"], FileXxh3(program).value());
}

TEST(ProvenanceTest, FileHash) {
  const FixtureTree tree;
  tree.Write("/empty", "");
  // XXH3-64 of no bytes with seed 0, from the xxHash specification's sanity checks.
  EXPECT_EQ(FileXxh3(tree.root() / "empty").value(), "2d06800538d394c2");

  // Longer than one chunk and no multiple of it.
  std::string content;
  while (content.size() < 2'500'000) content += fmt::format("{} ", content.size());
  tree.Write("/long", content);
  EXPECT_EQ(FileXxh3(tree.root() / "long").value(),
            fmt::format("{:016x}", XXH3_64bits(content.data(), content.size())));

  EXPECT_TRUE(FileXxh3(tree.root() / "missing").reason().ends_with("No such file or directory"));
  EXPECT_FALSE(FileXxh3(tree.root()).known());
}

}  // namespace
}  // namespace filterbench
