#ifndef FILTERBENCH_FILTERS_BLOOM_KIRSCH_MITZENMACHER_H_
#define FILTERBENCH_FILTERS_BLOOM_KIRSCH_MITZENMACHER_H_

// Bloom filter by double hashing: all k probes from one 64-bit hash.
//
// Idea: the hash gives a start a and a step b, probe i is a + i b mod m. In large tables the FPR is
// that of k independent hash functions, at the cost of one.
// Source: Kirsch, Mitzenmacher, "Less Hashing, Same Performance: Building a Better Bloom Filter",
// 2006. `enhanced` is enhanced double hashing: the step grows by i after probe i (Dillinger,
// Manolios, "Bloom Filters in Probabilistic Verification", 2004, section 5.2).
// Limits: keys whose probes coincide twice tend to coincide more often, which costs `plain` 7 % of
// the FPR at m = 1024, k = 7, 14 % at m = 512, and more for greater k (filters/theory/bloom.h).
// That floor shows below some 1e5 bits; `enhanced` keeps only the part n / m^2 of it, of keys that
// share a and b. When it loses: a lookup misses the cache twice when negative and k times when
// positive, where a blocked filter misses once.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/bloom/bit_array.h"
#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"
#include "filters/theory/bloom.h"

namespace filterbench {

class KmBloom {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "km_bloom",
      .summary = "Bloom filter with k probes by double hashing from one hash",
      .source = "Kirsch, Mitzenmacher 2006; Dillinger, Manolios 2004",
      .fpr_formula = "plain: inclusion-exclusion over the query's probes, keys uniform in start "
                     "and step (Dillinger, Manolios 2004; Kirsch, Mitzenmacher 2006); enhanced: "
                     "E[(set/m)^k] (Bose et al. 2008) and n/m^2; (1 - e^(-k n / m))^k for many "
                     "keys",
      .hash_bits = 64,
  };

  static constexpr uint32_t kMaxProbes = theory::kMaxClassicProbes;

  enum class Probing { kPlain, kEnhanced };

  struct Params {
    double bits_per_key = 10;
    uint32_t k = 0;
    Probing probing = Probing::kPlain;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, kMaxProbes,
                             "probes per key; 0 takes the optimum, near bits_per_key ln 2"},
      Choice{"probing", &Params::probing, std::array<std::string_view, 2>{"plain", "enhanced"},
             "step between probes: the same each time, or growing"},
  };

  // How hashes become probes. All of it is pure, so that tables too large to allocate can be
  // tested.

  // In [0, bits).
  static constexpr uint64_t Start(uint64_t hash, uint64_t bits) { return FastRange64(hash, bits); }

  // In [1, bits), uniform over all steps but the multiples of bits / forbidden_divisor (a divisor
  // of bits, theory::ForbiddenStepDivisor for plain probing and 1 for enhanced). The allowed steps
  // lie in `forbidden_divisor` runs of bits / forbidden_divisor - 1; the first product ranges over
  // the allowed steps, the second is the number of its run, since it is the same fraction of the
  // runs. Tables of more than 2^32 bits use 2^32 steps, evenly spaced.
  //
  // What this guarantees: plain probing never revisits a position within k probes, so each key has
  // k distinct positions, except where bits divides lcm(1..k-1): k = 7: 1, 2, 3, 4, 5, 6, 10, 12,
  // 15, 20, 30, 60; the largest for k = 14 is 360360. There, the step is only kept from 0. A step
  // may share factors with `bits` and then reaches bits / gcd(step, bits) positions: k or more of
  // them.
  static constexpr uint64_t Step(uint32_t step_hash, uint64_t bits, uint64_t forbidden_divisor) {
    const uint64_t fraction = uint64_t{step_hash} << 32;
    return 1 + FastRange64(fraction, bits - forbidden_divisor) +
           FastRange64(fraction, forbidden_divisor);
  }

  // The 32 bits of a hash that decide the step: its low half, which leaves no trace in the start
  // below 2^32 bits. Above, the start takes the upper bits of that half too; an odd multiplier (the
  // one of BlockedBloom) brings the others to the front.
  static constexpr uint32_t kStepMultiplier = 0x9e3779b9;
  static constexpr uint32_t StepHash(uint64_t hash) {
    return static_cast<uint32_t>(hash) * kStepMultiplier;
  }

  // A walk over the probes of a key: bits >= 1, start < bits, step <= bits.
  template <Probing kProbing>
  struct Walk {
    uint64_t bits;
    uint64_t position;
    uint64_t step;
    uint64_t growth = 0;  // of the step, mod bits

    void Next() {
      position = AddMod(position, step);
      if constexpr (kProbing == Probing::kEnhanced) {
        growth = AddMod(growth, 1);
        step = AddMod(step, growth);
      }
    }
    // For a < bits, b <= bits.
    uint64_t AddMod(uint64_t a, uint64_t b) const {
      const uint64_t sum = a + b;
      return sum >= bits ? sum - bits : sum;
    }
  };

  template <Probing kProbing>
  struct FixedView;

  struct View {
    const uint64_t* words;
    uint64_t bits;
    uint64_t forbidden_divisor;
    uint32_t k;
    Probing probing;
    bool prefetch;  // batched lookups prefetch their lines

    // Calls use with a view whose probing is known at compile time.
    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      if (probing == Probing::kPlain) return use(FixedView<Probing::kPlain>{*this});
      return use(FixedView<Probing::kEnhanced>{*this});
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  template <Probing kProbing>
  struct FixedView : View {
    static constexpr Probing kFixedProbing = kProbing;

    Walk<kProbing> WalkFor(uint64_t hash) const {
      return {bits, Start(hash, bits), Step(StepHash(hash), bits, forbidden_divisor)};
    }
    bool MayContain(uint64_t hash) const noexcept {
      Walk<kProbing> walk = WalkFor(hash);
      // The first ones without a branch: half of the absent keys end at each of them, which nobody
      // can guess, while an eighth is left after three.
      const uint32_t at_once = k < 3 ? k : 3;
      bool all_set = true;
      for (uint32_t i = 0; i < at_once; ++i, walk.Next()) all_set &= TestBit(words, walk.position);
      if (!all_set) return false;
      for (uint32_t i = at_once; i < k; ++i, walk.Next()) {
        if (!TestBit(words, walk.position)) return false;
      }
      return true;
    }
  };

  // Sized for `keys` keys, holding none.
  static Result<KmBloom> Create(uint64_t keys, const Params& params);
  static Result<KmBloom> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<KmBloom> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each key beyond the number that Build was given raises the FPR.
  InsertStatus Insert(uint64_t hash);
  // Leaves the bytes of Build over all hashes, whatever the pieces and the threads.
  void InsertAll(std::span<const uint64_t> hashes, unsigned threads = 1);

  View view() const {
    return {table_.As<uint64_t>(), bits_,           forbidden_divisor_, k_,
            params_.probing,       PrefetchPays(table_.size())};
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Agrees with measurement for one filter of 4096 bits or more (2^16 for plain probing with k >
  // 16). In smaller ones the rates of instances are not normal any more: compare the mean over
  // many.
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

 private:
  KmBloom(const Params& params, BitArray array);
  // The bits in `part` of n keys, by the best kernel of this machine.
  static void InsertPart(const View& view, uint64_t* words, const uint64_t* hashes, size_t n,
                         BitRange part);

  void CountInserted(uint64_t keys) {
    inserted_ += keys;
    report_.distinct_keys = inserted_;
  }

  Params params_;
  uint64_t capacity_;  // the number of keys that it was sized for
  uint64_t inserted_;  // keys, duplicates counted
  uint64_t bits_;
  uint32_t k_;
  uint64_t forbidden_divisor_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_KIRSCH_MITZENMACHER_H_
