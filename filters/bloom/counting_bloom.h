#ifndef FILTERBENCH_FILTERS_BLOOM_COUNTING_BLOOM_H_
#define FILTERBENCH_FILTERS_BLOOM_COUNTING_BLOOM_H_

// Counting Bloom filter: a Bloom filter that forgets.
//
// Idea: every bit becomes a counter of four bits. A key counts all of its positions up when it is
// inserted and down when it is erased, and is contained if none of them is 0.
// Source: Fan, Cao, Almeida, Broder, "Summary Cache: A Scalable Wide-Area Web Cache Sharing
// Protocol", 1998, and IEEE/ACM Transactions on Networking 2000, section V.C. Positions are those
// of KmBloom with plain probing, so that the answers are those of a `km_bloom` with as many bits as
// this one has counters, as long as no counter is saturated.
// Limits: four times the memory of the bits at the same rate. A counter that has reached 15 is
// never counted down: where keys come and go for long, or one key comes often, such counters add up
// and the rate does not return to what it was (`saturated_counters` in the details). The filter
// cannot know whether a key that it is asked to erase was inserted: erasing a false positive takes
// counts from others, which may then be denied. When it loses: where keys are never erased, and
// where memory counts: a cuckoo filter erases in a third of the space.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/bloom/counters.h"
#include "filters/bloom/kirsch_mitzenmacher.h"
#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

class CountingBloom {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "counting_bloom",
      .summary = "Bloom filter of 4-bit saturating counters; insert and erase",
      .source = "Fan, Cao, Almeida, Broder 1998 and 2000",
      .fpr_formula =
          "that of km_bloom with as many bits as there are counters: inclusion-exclusion "
          "over the query's probes; (1 - e^(-k n / counters))^k for many keys",
      .hash_bits = 64,
  };

  static constexpr uint32_t kMaxProbes = KmBloom::kMaxProbes;

  struct Params {
    double bits_per_key = 40;
    uint32_t k = 0;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 4, 512,
                           "size of the table over the number of keys: four bits per counter"},
      Knob<Params, uint32_t>{"k", &Params::k, 0, kMaxProbes,
                             "probes per key; 0 takes the optimum, near bits_per_key / 4 ln 2"},
  };

  static constexpr uint64_t kMaxCounters = kMaxBloomBits / kCounterBits;

  struct View {
    const uint64_t* words;
    uint64_t counters;
    uint64_t forbidden_divisor;
    uint32_t k;
    bool prefetch;  // batched lookups prefetch their lines

    using Walk = KmBloom::Walk<KmBloom::Probing::kPlain>;
    Walk WalkFor(uint64_t hash) const {
      return {counters, KmBloom::Start(hash, counters),
              KmBloom::Step(KmBloom::StepHash(hash), counters, forbidden_divisor)};
    }
    bool MayContain(uint64_t hash) const noexcept { return AllCounted(WalkFor(hash)); }
    bool AllCounted(Walk walk) const {
      // The first ones without a branch, as in KmBloom.
      const uint32_t at_once = k < 3 ? k : 3;
      bool all_counted = true;
      for (uint32_t i = 0; i < at_once; ++i, walk.Next()) {
        all_counted &= CountAt(words, walk.position) != 0;
      }
      if (!all_counted) return false;
      for (uint32_t i = at_once; i < k; ++i, walk.Next()) {
        if (CountAt(words, walk.position) == 0) return false;
      }
      return true;
    }

    // Calls use(position) for every position of a key once. Few positions coincide (KmBloom::Step),
    // and where one does, the walk has come back to its start: it adds the same step each time.
    template <class Use>
    void ForEachPosition(uint64_t hash, const Use& use) const {
      Walk walk = WalkFor(hash);
      const uint64_t start = walk.position;
      for (uint32_t i = 0; i < k; ++i) {
        use(walk.position);
        walk.Next();
        if (walk.position == start) break;
      }
    }
  };

  // Sized for `keys` keys, holding none.
  static Result<CountingBloom> Create(uint64_t keys, const Params& params);
  // Counts a hash as often as it is given.
  static Result<CountingBloom> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<CountingBloom> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each key beyond the number that the filter was made for raises the FPR. Counts
  // at every call, so that each Insert can be taken back by one Erase, up to the 15th.
  InsertStatus Insert(uint64_t hash);
  // Only for a hash that was inserted or built in and not erased since. kNotFound, and nothing
  // changed, for one that the filter denies.
  EraseStatus Erase(uint64_t hash);

  View view() const {
    return {table_.As<uint64_t>(), counters_, forbidden_divisor_, k_, PrefetchPays(table_.size())};
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Of the keys that are held now, taken as distinct; saturated counters that nobody holds are not
  // part of it.
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

  // Keys inserted and not erased, and counters that have reached 15.
  uint64_t keys() const { return keys_; }
  uint64_t saturated() const { return saturated_; }

 private:
  CountingBloom(const Params& params, uint64_t capacity, uint64_t counters, AlignedTable table);
  std::span<const uint64_t> Words() const { return {table_.As<uint64_t>(), table_.size() / 8}; }

  Params params_;
  uint64_t capacity_;  // keys that the filter was made for
  uint64_t counters_;
  uint32_t k_;
  uint64_t forbidden_divisor_;
  uint64_t keys_ = 0;
  uint64_t saturated_ = 0;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_COUNTING_BLOOM_H_
