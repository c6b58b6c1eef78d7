#include "harness/explain/show_key.h"

#include <string>

#include <gtest/gtest.h>

namespace filterbench::explain {
namespace {

TEST(ShowKey, PlainWordsStandAsTheyAre) {
  EXPECT_EQ(ShowKey("apple"), "apple");
  EXPECT_EQ(ShowKey("a_b-c.d/9"), "a_b-c.d/9");
}

TEST(ShowKey, WhatIsNoWordIsQuoted) {
  EXPECT_EQ(ShowKey(""), "\"\"");
  EXPECT_EQ(ShowKey("two words"), "\"two words\"");
  EXPECT_EQ(ShowKey("\"\\"), R"("\"\\")");
}

TEST(ShowKey, NothingMovesTheCursor) {
  EXPECT_EQ(ShowKey("a\nb\tc\r"), R"("a\nb\tc\r")");
  EXPECT_EQ(ShowKey(std::string("\0\x1b[2J\x7f", 6)), R"("\x00\x1b[2J\x7f")");
  // C1 controls, of which U+009B begins an escape sequence, and a change of direction.
  EXPECT_EQ(ShowKey("\xc2\x9b", true), R"("\u{9b}")");
  EXPECT_EQ(ShowKey("\xe2\x80\xae", true), R"("\u{202e}")");
}

TEST(ShowKey, Utf8OnlyWhereItIsUnderstood) {
  EXPECT_EQ(ShowKey("\xc3\x84pfel", true), "\xc3\x84pfel");
  EXPECT_EQ(ShowKey("\xc3\x84pfel", false), R"("\u{c4}pfel")");
}

TEST(ShowKey, WhatIsNoUtf8IsBytes) {
  // A stray byte, an overlong slash, half a surrogate pair, beyond the last code point, cut short.
  EXPECT_EQ(ShowKey("\xff", true), R"("\xff")");
  EXPECT_EQ(ShowKey("\xc0\xaf", true), R"("\xc0\xaf")");
  EXPECT_EQ(ShowKey("\xe0\x80\xaf", true), R"("\xe0\x80\xaf")");
  EXPECT_EQ(ShowKey("\xed\xa0\x80", true), R"("\xed\xa0\x80")");
  EXPECT_EQ(ShowKey("\xf4\x90\x80\x80", true), R"("\xf4\x90\x80\x80")");
  EXPECT_EQ(ShowKey("\xe4\xb8", true), R"("\xe4\xb8")");
}

TEST(ShowKey, LongKeysAreCut) {
  EXPECT_EQ(ShowKey(std::string(40, 'x')), std::string(40, 'x'));
  EXPECT_EQ(ShowKey(std::string(10000, 'x')),
            '"' + std::string(40, 'x') + "\"... (10000 bytes)");
}

}  // namespace
}  // namespace filterbench::explain
