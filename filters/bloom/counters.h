#ifndef FILTERBENCH_FILTERS_BLOOM_COUNTERS_H_
#define FILTERBENCH_FILTERS_BLOOM_COUNTERS_H_

// Counters of four bits in words of 64: counter i is the bits [4 (i % 16), 4 (i % 16) + 4) of word
// i / 16.
//
// Four bits, after Fan, Cao, Almeida, Broder 2000, section V.C: with counters at their optimal load
// of ln 2, one of m reaches 16 with a probability below 1.37e-15 m. What reaches 15 stays there for
// ever, since nobody knows how often it was counted up beyond: a counter that is never counted down
// can cause false positives and no false negatives.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace filterbench {

inline constexpr uint64_t kCounterBits = 4;
inline constexpr uint64_t kCountersPerWord = 64 / kCounterBits;
inline constexpr uint64_t kSaturatedCount = (uint64_t{1} << kCounterBits) - 1;

inline uint64_t CountAt(const uint64_t* words, uint64_t position) {
  return words[position / kCountersPerWord] >> (position % kCountersPerWord * kCounterBits) &
         kSaturatedCount;
}

// True if this made the counter saturated. One that is saturated stays as it is.
inline bool CountUp(uint64_t* words, uint64_t position) {
  const uint64_t count = CountAt(words, position);
  if (count == kSaturatedCount) return false;
  words[position / kCountersPerWord] += uint64_t{1} << (position % kCountersPerWord * kCounterBits);
  return count + 1 == kSaturatedCount;
}

// Counters that are 0 or saturated stay as they are.
inline void CountDown(uint64_t* words, uint64_t position) {
  const uint64_t count = CountAt(words, position);
  if (count == 0 || count == kSaturatedCount) return;
  words[position / kCountersPerWord] -= uint64_t{1} << (position % kCountersPerWord * kCounterBits);
}

// Of all counters of a table.
inline uint64_t CountSaturated(std::span<const uint64_t> words) {
  uint64_t saturated = 0;
  for (uint64_t word : words) {
    word &= word >> 2;
    word &= word >> 1;
    saturated += static_cast<uint64_t>(std::popcount(word & 0x1111111111111111));
  }
  return saturated;
}

// The sum of all counters of a table.
inline uint64_t SumOfCounts(std::span<const uint64_t> words) {
  uint64_t sum = 0;
  for (const uint64_t word : words) {
    const uint64_t pairs = (word & 0x0f0f0f0f0f0f0f0f) + (word >> 4 & 0x0f0f0f0f0f0f0f0f);
    sum += (pairs * 0x0101010101010101) >> 56;  // at most 240
  }
  return sum;
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_COUNTERS_H_
