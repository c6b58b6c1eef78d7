#ifndef FILTERBENCH_FILTERS_QUOTIENT_SELECT_H_
#define FILTERBENCH_FILTERS_QUOTIENT_SELECT_H_

// Where in a word a set bit stands, in plain arithmetic: PDEP does it in one instruction, which is
// microcode on AMD processors before Zen 3 and absent from the baseline of the build.

#include <bit>
#include <cstdint>

namespace filterbench {

// The position of the set bit that has `rank` set bits below it; there must be such a bit.
// Broadword programming (Vigna, "Broadword Implementation of Rank/Select Queries", 2008, section
// 4): counts of set bits up to each byte, compared with the rank all at once, then the same within
// the byte.
constexpr int Select64(uint64_t word, int rank) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighest = 0x8080808080808080;
  uint64_t counts = word - ((word >> 1) & 0x5555555555555555);
  counts = (counts & 0x3333333333333333) + ((counts >> 2) & 0x3333333333333333);
  counts = (counts + (counts >> 4)) & 0x0f0f0f0f0f0f0f0f;
  const uint64_t up_to_byte = counts * kOnes;  // byte i: bits set in the bytes 0 to i
  // The highest bit of a byte is set where its count is at most the rank: both are at most 64.
  const uint64_t ranks = static_cast<uint64_t>(rank) * kOnes;
  const uint64_t before = ((ranks | kHighest) - up_to_byte) & kHighest;
  const int shift = static_cast<int>(((before >> 7) * kOnes) >> 56) * 8;
  const int rank_in_byte = rank - static_cast<int>((up_to_byte << 8) >> shift & 0xff);
  // Bit i of the byte as the lowest bit of byte i.
  const uint64_t byte = word >> shift & 0xff;
  const uint64_t spread = byte * kOnes & 0x8040201008040201;
  const uint64_t bits = ((spread + (kHighest - kOnes)) | spread) >> 7 & kOnes;
  const uint64_t up_to_bit = bits * kOnes;
  const uint64_t bits_before =
      ((static_cast<uint64_t>(rank_in_byte) * kOnes | kHighest) - up_to_bit) & kHighest;
  return shift + static_cast<int>(((bits_before >> 7) * kOnes) >> 56);
}

// The lowest `count` bits, 0 to 63 of them.
constexpr uint64_t LowBits(uint64_t count) { return (uint64_t{1} << count) - 1; }

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_QUOTIENT_SELECT_H_
