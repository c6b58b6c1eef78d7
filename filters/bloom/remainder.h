#ifndef FILTERBENCH_FILTERS_BLOOM_REMAINDER_H_
#define FILTERBENCH_FILTERS_BLOOM_REMAINDER_H_

// `word % bits`, as many systems choose a bit, without a division.

#include <cstdint>

#include "filters/hash.h"

namespace filterbench {

// Of 32-bit words, for any number of bits from 1 on (Lemire, Kaser, Kurz, "Faster remainder by
// direct computation", 2019, theorem 1: exact where the multiplier has 64 bits). Two
// multiplications take the place of a division; in a table beyond 2^32 bits the remainder is the
// word.
class Remainder32 {
 public:
  explicit constexpr Remainder32(uint64_t bits)
      : bits_(bits), multiplier_(bits > UINT32_MAX ? 0 : UINT64_MAX / bits + 1) {}

  constexpr uint64_t operator()(uint32_t word) const noexcept {
    if (bits_ > UINT32_MAX) return word;
    // The multiplier of one bit is 2^64, which wraps to 0, and so is every remainder.
    return MulHigh64(multiplier_ * word, bits_);
  }
  constexpr uint64_t bits() const noexcept { return bits_; }

 private:
  uint64_t bits_;
  uint64_t multiplier_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_REMAINDER_H_
