#ifndef FILTERBENCH_HARNESS_EXPLAIN_PROBES_H_
#define FILTERBENCH_HARNESS_EXPLAIN_PROBES_H_

// Which bits a key sets, or asks for, in a Bloom filter that is small enough to be drawn.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filters/fpr.h"
#include "filters/result.h"
#include "filters/theory/bloom.h"

namespace filterbench::explain {

enum class Hashing {
  kXxh3,    // k independent hash functions: the positions of ClassicBloom, seed 0
  kKm,      // double hashing from one hash: those of KmBloom (plain), of XXH3-64 with seed 0
  kMd5,     // one MD5 digest, cut into 32-bit little-endian words, each modulo the number of bits
  kByHand,  // given
};
inline constexpr std::array<std::string_view, 4> kHashingNames = {"xxh3", "km", "md5", "by hand"};

struct Shape {
  uint64_t bits = 64;
  uint32_t k = 3;
  Hashing hashing = Hashing::kXxh3;
};

// What is larger is nothing to look at.
inline constexpr uint64_t kMaxBits = 65536;
inline constexpr uint32_t kMaxProbes = theory::kMaxClassicProbes;

using PositionsByHand = std::map<std::string, std::vector<uint64_t>, std::less<>>;

// Whether this build has MD5, and how it would get it.
bool HasMd5();
inline constexpr std::string_view kMd5Missing =
    "this build lacks MD5: install libmd (Debian: libmd-dev), configure and build again";

// 32 hexadecimal digits. Only where HasMd5().
std::string Md5Hex(std::string_view key);

class Probes {
 public:
  // An error where the filter is too small or too large, or where a list of positions does not fit
  // it.
  static Result<Probes> Create(const Shape& shape, PositionsByHand by_hand = {});

  const Shape& shape() const { return shape_; }
  // Whether any key has positions, not only those given by hand.
  bool hashes() const { return shape_.hashing != Hashing::kByHand; }
  bool Knows(std::string_view key) const { return hashes() || by_hand_.contains(key); }

  // The k positions of a key that Knows it, in the order of its probes; they may coincide.
  std::vector<uint64_t> Of(std::string_view key) const;
  // The same in place of what `positions` holds.
  void Of(std::string_view key, std::vector<uint64_t>& positions) const;

  // False-positive rate of filters like this one with `keys` distinct keys, as if positions by hand
  // were random; an error, which is the reason, where theory does not know.
  Result<FprEstimate> ExpectedFpr(uint64_t keys) const;

 private:
  Probes(const Shape& shape, PositionsByHand by_hand);

  Shape shape_;
  PositionsByHand by_hand_;
  uint64_t forbidden_divisor_;  // of double hashing
};

}  // namespace filterbench::explain

#endif  // FILTERBENCH_HARNESS_EXPLAIN_PROBES_H_
