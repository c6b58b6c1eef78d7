#include "filters/quotient/select.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "filters/hash.h"

namespace filterbench {
namespace {

void ExpectAllBitsFound(uint64_t word) {
  int rank = 0;
  for (int position = 0; position < 64; ++position) {
    if ((word >> position & 1) == 0) continue;
    ASSERT_EQ(Select64(word, rank), position) << std::hex << word;
    ++rank;
  }
}

TEST(Select64, FindsTheOnlyBit) {
  for (int position = 0; position < 64; ++position) ExpectAllBitsFound(uint64_t{1} << position);
}

TEST(Select64, FindsAllBitsOfFullAndPeriodicWords) {
  ExpectAllBitsFound(~uint64_t{0});
  for (uint64_t byte = 1; byte < 256; ++byte) ExpectAllBitsFound(byte * 0x0101010101010101);
}

TEST(Select64, FindsAllBitsOfWordsOfAnyDensity) {
  for (uint64_t i = 0; i < 3000; ++i) {
    const uint64_t a = Mix64(i + 1);
    const uint64_t b = Mix64(a + 1);
    ExpectAllBitsFound(a);
    ExpectAllBitsFound(a & b);
    ExpectAllBitsFound(a | b);
    ExpectAllBitsFound(a & b & Mix64(b + 1) & Mix64(b + 2));
  }
}

}  // namespace
}  // namespace filterbench
