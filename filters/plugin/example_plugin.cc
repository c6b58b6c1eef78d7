// A whole plug-in: a Bloom filter whose k bits lie in one word of 64. Build and use it:
//   g++ -std=c++20 -O3 -fPIC -shared -I <filterbench> example_plugin.cc -o example.so
//   filterbench verify --plugin ./example.so
#include <cmath>
#include <vector>

#include "filters/plugin/plugin.h"

struct WordBloom {
  static constexpr filterbench_knob kKnobs[] = {
      {"bits_per_key", "size of the table over the number of keys", 1, 64, 12, 0},
      {"k", "probes per key", 1, 8, 4, 1}};

  WordBloom(uint64_t keys, const double* values, uint64_t /*seed*/)
      : words(static_cast<size_t>(std::ceil((keys == 0 ? 1.0 : double(keys)) * values[0] / 64))),
        k(static_cast<int>(values[1])) {}
  WordBloom(const uint64_t* hashes, size_t n, const double* values, uint64_t seed)
      : WordBloom(n, values, seed) {
    for (size_t i = 0; i < n; ++i) Insert(hashes[i]);
  }
  bool Insert(uint64_t hash) {
    words[WordOf(hash)] |= Mask(hash);
    return true;
  }
  bool MayContain(uint64_t hash) const { return (Mask(hash) & ~words[WordOf(hash)]) == 0; }
  uint64_t SizeInBytes() const { return words.size() * 8 + sizeof(*this); }

  size_t WordOf(uint64_t hash) const { return size_t((hash >> 32) * words.size() >> 32); }
  uint64_t Mask(uint64_t hash) const {  // probe i: six bits of the low half of the hash
    const uint64_t product = uint32_t(hash) * 0x9e3779b97f4a7c15;
    uint64_t mask = 0;
    for (int i = 0; i < k; ++i) mask |= uint64_t{1} << (product >> (58 - 6 * i) & 63);
    return mask;
  }
  std::vector<uint64_t> words;
  int k;
};

FILTERBENCH_PLUGIN(filterbench::Plugin<WordBloom>("word_bloom", "Bloom filter of 64-bit blocks"))
