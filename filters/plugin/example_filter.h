// A whole filter from outside of the tree: a Bloom filter whose four bits per key lie in one word.
//   cmake --preset release -DFILTERBENCH_EXTERNAL_FILTERS="WordBloom=/where/it/is/example_filter.h"
#include "filters/plugin/table_filter.h"
#include "filters/theory/blocked_bloom.h"
namespace filterbench {
struct WordBloomScheme {
  static constexpr FilterInfo kInfo = {"word_bloom_4", "Bloom filter of 64-bit blocks, k = 4",
                                       "Putze, Sanders, Singler 2007", "eq. 3, exact in the block"};
  struct Params {
    double bits_per_key = 12;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{Knob<Params, double>{
      "bits_per_key", &Params::bits_per_key, 1, 64, "size of the table over the number of keys"}};
  struct View {
    const std::byte* table;
    uint64_t bytes;
    uint64_t WordOf(uint64_t hash) const { return FastRange64(hash, bytes / 8); }
    static uint64_t Mask(uint64_t hash) {
      const uint64_t bits = static_cast<uint32_t>(hash) * 0x9e3779b97f4a7c15;
      const auto bit = [bits](int shift) { return uint64_t{1} << (bits >> shift & 63); };
      return bit(58) | bit(52) | bit(46) | bit(40);
    }
    bool MayContain(uint64_t hash) const noexcept {
      return (Mask(hash) & ~reinterpret_cast<const uint64_t*>(table)[WordOf(hash)]) == 0;
    }
  };
  static double TableBytes(uint64_t n, const Params& p) { return 8 + n * p.bits_per_key / 8; }
  static std::string Fill(const View& view, std::byte* table, std::span<const uint64_t> hashes) {
    auto* words = reinterpret_cast<uint64_t*>(table);
    for (const uint64_t h : hashes) words[view.WordOf(h)] |= View::Mask(h);
    return {};
  }
  static FprEstimate Fpr(const Params&, uint64_t n, uint64_t bytes) {
    return theory::BlockedBloomFpr(n, bytes / 8, 4, 64);
  }
};
using WordBloom = TableFilter<WordBloomScheme>;
}  // namespace filterbench
