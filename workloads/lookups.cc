#include "workloads/lookups.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace filterbench {
namespace {

// A fixed sequence of uniform 64-bit values for a seed (SplitMix: Steele, Lea, Flood 2014).
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return Mix64(state_ += kGoldenGamma); }
  uint64_t Below(uint64_t range) { return FastRange64(Next(), range); }

 private:
  uint64_t state_;
};

// `count` indices spread evenly over [first, first + range), each once before any comes again. A
// random stride coprime to the range visits all of it without a table of what was visited.
void AppendSpread(uint64_t first, uint64_t range, uint64_t count, SplitMix& random,
                  std::vector<uint64_t>& out) {
  uint64_t stride = range < 3 ? 1 : random.Below(range - 1) + 1;
  while (std::gcd(stride, range) != 1) stride = stride % range + 1;
  uint64_t at = random.Below(range);
  for (uint64_t i = 0; i < count; ++i) {
    out.push_back(first + at);
    at = at >= range - stride ? at - (range - stride) : at + stride;
  }
}

}  // namespace

LookupIndices MakeLookups(uint64_t n, uint64_t limit, uint64_t lookups, double negative_share,
                          uint64_t seed) {
  LookupIndices stream;
  const uint64_t wanted =
      static_cast<uint64_t>(std::llround(static_cast<double>(lookups) * negative_share));
  stream.negatives = n == 0 ? lookups : limit == n ? 0 : std::min(wanted, lookups);
  stream.indices.reserve(lookups);
  SplitMix random(seed);
  if (stream.negatives < lookups) {
    AppendSpread(0, n, lookups - stream.negatives, random, stream.indices);
  }
  if (stream.negatives > 0) {
    // Absent keys next to the present ones: sequential keys are asked where they end.
    const uint64_t range = std::min<uint64_t>(limit - n, std::max(stream.negatives, n));
    AppendSpread(n, range, stream.negatives, random, stream.indices);
  }
  for (size_t i = stream.indices.size(); i > 1; --i) {
    std::swap(stream.indices[i - 1], stream.indices[random.Below(i)]);
  }
  return stream;
}

uint64_t LookupsWithoutRepeats(uint64_t lookups, double negative_share, uint64_t present,
                               uint64_t absent) {
  const auto fits = [&](uint64_t length) {
    const auto negatives =
        static_cast<uint64_t>(std::llround(static_cast<double>(length) * negative_share));
    return negatives <= absent && length - negatives <= present;
  };
  if (fits(lookups)) return lookups;
  uint64_t low = 1;
  for (uint64_t high = lookups; low + 1 < high;) {
    const uint64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

uint64_t DefaultStreamLookups(uint64_t n) {
  return std::clamp<uint64_t>(std::bit_ceil(std::max<uint64_t>(n, 1)), uint64_t{1} << 18,
                              uint64_t{1} << 22);
}

}  // namespace filterbench
