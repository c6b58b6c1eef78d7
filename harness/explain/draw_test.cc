#include "harness/explain/draw.h"

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/explain/examples.h"

namespace filterbench::explain {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Drawn(const Request& request, const Look& look = {}) {
  const Result<Scene> scene = Explain(request);
  EXPECT_TRUE(scene) << scene.error();
  return Draw(*scene, look);
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Draw, TheWorkedExampleTellsWhy) {
  const std::string text = Drawn(FindExample("worked")->request);
  EXPECT_THAT(text, HasSubstr("    +0       +8       +16      +24\n"
                              " 0  ..A..B.. ...B..A. ....B... ...A....\n"));
  EXPECT_THAT(text, HasSubstr("kiwi asks bits 2, 9 and 20: no\n"
                              " 0  ..A..B.. ...B..A. ....B... ...A....\n"
                              "      ^       0           ^\n"
                              "  No, since bit 9 is not set"));
  EXPECT_THAT(text, HasSubstr("5 by mango, 14 by apple and 27 by apple.\n"
                              "  But grape was never added: a false positive."));
}

TEST(Draw, DeletionNamesTheKeyThatBreaks) {
  const std::string text = Drawn({.shape = {32, 2, Hashing::kByHand},
                                  .by_hand = {{"fig", {1, 9}}, {"pear", {9, 30}}},
                                  .add = {"fig", "pear"},
                                  .remove = {"fig"},
                                  .ask = {"pear"}});
  EXPECT_THAT(text, HasSubstr("* set by several keys: bit 9 by fig and pear\n"));
  EXPECT_THAT(text, HasSubstr(" 0  .A...... .*...... ........ ......B.\n"));
  EXPECT_THAT(text, HasSubstr(" 0  ........ ........ ........ ......B.\n"));
  EXPECT_THAT(text, HasSubstr("BROKEN: pear needs bit 9 too"));
  EXPECT_THAT(text, HasSubstr("A false negative"));
}

TEST(Draw, NoLineIsWiderThanTheTerminal) {
  std::vector<Request> requests;
  for (const Example& example : Examples()) {
    if (example.request.shape.hashing != Hashing::kMd5 || HasMd5()) {
      requests.push_back(example.request);
    }
  }
  for (const uint64_t bits : {1, 63, 64, 65, 4096, 4097, 65536}) {
    Request request{.shape = {bits, 8}, .ask = {std::string(100, 'q'), "\xc3\xa4\xe4\xb8\xad"}};
    for (int i = 0; i < 70; ++i) request.add.push_back(fmt::format("long-long-key-{}", i));
    request.remove = {"long-long-key-3", "stranger"};
    requests.push_back(request);
  }
  for (const Request& request : requests) {
    const Result<Scene> scene = Explain(request);
    ASSERT_TRUE(scene) << scene.error();
    for (const size_t width : {20, 21, 39, 40, 60, 80, 500}) {
      for (const bool colour : {false, true}) {
        for (std::string line : Lines(Draw(*scene, {.width = width, .colour = colour}))) {
          for (size_t at; (at = line.find('\033')) != std::string::npos;) {
            line.erase(at, line.find('m', at) - at + 1);
          }
          EXPECT_LE(line.size(), width) << line;
          EXPECT_TRUE(std::all_of(line.begin(), line.end(),
                                  [](char c) { return c >= 0x20 && c < 0x7f; }))
              << line;
        }
      }
    }
  }
}

TEST(Draw, ColourIsOnlyWhereItIsAskedFor) {
  const Request& request = FindExample("deletion")->request;
  EXPECT_THAT(Drawn(request), Not(HasSubstr("\033")));
  EXPECT_THAT(Drawn(request, {.colour = true}), HasSubstr("\033[31mBROKEN:\033[0m"));
}

TEST(Draw, LargeFiltersAreSummarised) {
  const std::string drawn = Drawn({.shape = {4096, 3}, .add = {"a"}});
  EXPECT_THAT(drawn, Not(HasSubstr("too many to draw")));
  const std::string text = Drawn({.shape = {4097, 3}, .add = {"a"}, .ask = {"a"}});
  EXPECT_THAT(text, HasSubstr("4097 bits are too many to draw: set bits of each 129."));
  EXPECT_LT(Lines(text).size(), 60u);
}

TEST(Draw, KeysBeyondTheLettersShareASign) {
  Request request{.shape = {4096, 1}};
  for (int i = 0; i < 60; ++i) request.add.push_back(fmt::format("k{}", i));
  const std::string text = Drawn(request);
  EXPECT_THAT(text, HasSubstr("z k51 sets"));
  EXPECT_THAT(text, HasSubstr("# k52 sets"));
}

}  // namespace
}  // namespace filterbench::explain
