#ifndef FILTERBENCH_FILTERS_CUCKOO_CUCKOO_H_
#define FILTERBENCH_FILTERS_CUCKOO_CUCKOO_H_

// Cuckoo filter with buckets of four slots.
//
// Idea: a key is kept as a short tag in one of two buckets, and each bucket follows from the other
// one and the tag alone, so that stored tags can move without their keys. A lookup costs two cache
// lines whatever the answer is; keys can be inserted and erased.
// Source: Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom",
// 2014. Two things differ from the paper: the number of buckets need not be a power of two
// (`Partner`), and an insertion looks for a free slot before it moves anything (`Insert`).
// Limits: the rate is set by the width of the tag, in steps of a factor 16. When it loses: above
// about 0.4 % FPR a Bloom filter is smaller, and where keys are never erased ribbon and fuse
// filters are smaller at every rate.
//
// Not thread-safe: Insert moves tags one store at a time, so that a reader beside it may miss a key
// that is on its way. Lookups of several threads are safe while nobody inserts or erases.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

static_assert(std::endian::native == std::endian::little,
              "buckets are read as little-endian words, so that tables are the same everywhere");

// A bucket of four tags of kBits bits, packed: slot i holds the bits [i kBits, (i + 1) kBits) of a
// little-endian word. Tag 0 marks a free slot.
template <int kBits>
struct CuckooBucket {
  static constexpr int kSlots = 4;
  static constexpr uint64_t kBytes = kSlots * kBits / 8;
  static constexpr uint64_t kTagMask = (uint64_t{1} << kBits) - 1;
  static constexpr uint64_t kLowestBits = [] {
    uint64_t bits = 0;
    for (int slot = 0; slot < kSlots; ++slot) bits |= uint64_t{1} << (slot * kBits);
    return bits;
  }();
  static constexpr uint64_t kHighestBits = kLowestBits << (kBits - 1);
  static constexpr uint64_t kOtherBits = kHighestBits - kLowestBits;
  static_assert(kSlots * kBits % 8 == 0 && kSlots * kBits <= 64, "whole bytes of one word");

  // Reads 8 bytes, of which those from kBytes on belong to others: they change no answer below.
  static uint64_t Load(const std::byte* bucket) {
    uint64_t word;
    std::memcpy(&word, bucket, sizeof(word));
    return word;
  }
  static void Store(std::byte* bucket, uint64_t word) { std::memcpy(bucket, &word, kBytes); }

  static constexpr uint64_t Repeat(uint64_t tag) { return tag * kLowestBits; }
  static constexpr uint64_t Tag(uint64_t word, int slot) {
    return word >> (slot * kBits) & kTagMask;
  }
  static constexpr uint64_t WithTag(uint64_t word, int slot, uint64_t tag) {
    return (word & ~(kTagMask << (slot * kBits))) | tag << (slot * kBits);
  }

  // The highest bit of each slot that is not zero, other bits arbitrary. Exact: the sum of a slot's
  // lower bits and kBits - 1 ones is at most 2^kBits - 2 and carries into the slot's own highest
  // bit and never further.
  static constexpr uint64_t NonZeroSlots(uint64_t word) {
    return ((word & kOtherBits) + kOtherBits) | word;
  }
  // The highest bit of each slot that holds `tag`, no other bit.
  static constexpr uint64_t SlotsWith(uint64_t word, uint64_t tag) {
    return ~NonZeroSlots(word ^ Repeat(tag)) & kHighestBits;
  }
  static constexpr uint64_t FreeSlots(uint64_t word) {
    return ~NonZeroSlots(word) & kHighestBits;
  }
  // Of a non-empty set of slots in the form of SlotsWith.
  static constexpr int FirstSlot(uint64_t slots) { return std::countr_zero(slots) / kBits; }
};

class Cuckoo {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "cuckoo",
      .summary = "tags of 8, 12 or 16 bits in one of two buckets of four; insert and erase",
      .source = "Fan, Andersen, Kaminsky, Mitzenmacher 2014",
      .fpr_formula = "sum over tags of p (1 - (1 - 2p/buckets)^n), p the tag's probability: about "
                     "1 - (1 - q)^(8 load), q = (2^f + 2) / 4^f (Fan et al. 2014, section 5.1)",
      .hash_bits = 64,
  };

  enum class FingerprintBits { k8, k12, k16 };

  struct Params {
    FingerprintBits fingerprint_bits = FingerprintBits::k12;
    double load = 0.95;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"fingerprint_bits", &Params::fingerprint_bits,
             std::array<std::string_view, 3>{"8", "12", "16"}, "bits of a stored tag"},
      Knob<Params, double>{"load", &Params::load, 0.05, 0.98,
                           "share of the slots that the keys of the build fill"},
  };

  static constexpr uint64_t kSlotsPerBucket = 4;
  static constexpr uint64_t kMaxTableBytes = uint64_t{1} << 37;  // 2^40 bits

  // Where a key may lie.
  struct Place {
    uint64_t tag;
    uint64_t bucket;
    uint64_t partner;
  };

  // The tag of a salted hash: its low bits, which FastRange64 hardly looks at (below 2^35 buckets
  // they decide one key in 2^13 at most). 0 means free and becomes 1.
  template <int kBits>
  static constexpr uint64_t TagOf(uint64_t salted) {
    const uint64_t tag = salted & CuckooBucket<kBits>::kTagMask;
    return tag + (tag == 0 ? 1 : 0);
  }

  // The two buckets of a tag add up to this number in [0, buckets), modulo `buckets`. The
  // multiplications are 32 bits wide for the sake of vectors; the shift between them keeps the sum
  // of two tags from having the sum of their values, since paths through the table would otherwise
  // reach only as many buckets as there are sums of tags. 32 bits are enough at any number of
  // buckets: there are no more values than tags, and `bucket` is uniform by itself.
  static constexpr uint64_t PairSum(uint64_t tag, uint64_t buckets) {
    const uint64_t once = tag * kPairMultiplier1;
    const uint64_t twice = static_cast<uint32_t>(once ^ once >> 15) * kPairMultiplier2;
    return MulHigh64(twice << 32, buckets);
  }
  static constexpr uint64_t kPairMultiplier1 = 0x9e3779b1;  // odd, near 2^32 / golden ratio
  static constexpr uint64_t kPairMultiplier2 = 0x85ebca77;  // odd, bits without pattern

  // The other bucket of a tag in `bucket`: an involution for every number of buckets, even or odd,
  // since sum - (sum - b) = b (mod buckets). XOR, as in the paper, is one only for powers of two.
  // 2 b = sum (mod buckets) makes b its own partner: one bucket of each tag if the number is odd,
  // two or none if it is even, one key in `buckets` in the mean. Such a key has four slots instead
  // of eight, and such a lookup reads one bucket twice.
  static constexpr uint64_t Partner(uint64_t bucket, uint64_t tag, uint64_t buckets) {
    const uint64_t sum = PairSum(tag, buckets);
    return sum - bucket + (sum < bucket ? buckets : 0);
  }

  template <int kBits>
  static constexpr Place PlaceOf(uint64_t hash, uint64_t salt, uint64_t buckets) {
    const uint64_t salted = hash ^ salt;
    const uint64_t tag = TagOf<kBits>(salted);
    const uint64_t bucket = FastRange64(salted, buckets);
    return {tag, bucket, Partner(bucket, tag, buckets)};
  }

  // A view that knows the width of its tags.
  template <int kBits>
  struct SizedView {
    using Bucket = CuckooBucket<kBits>;
    static constexpr int kTagBits = kBits;
    const std::byte* table;
    uint64_t buckets;
    uint64_t salt;
    bool prefetch;  // batched lookups prefetch their lines first

    bool MayContain(uint64_t hash) const noexcept {
      const Place place = PlaceOf<kBits>(hash, salt, buckets);
      const uint64_t first = Bucket::Load(table + place.bucket * Bucket::kBytes);
      const uint64_t second = Bucket::Load(table + place.partner * Bucket::kBytes);
      // Both without a branch between them: a negative answer needs both, and the two lines may
      // arrive together.
      return (Bucket::SlotsWith(first, place.tag) | Bucket::SlotsWith(second, place.tag)) != 0;
    }
  };

  struct View {
    const std::byte* table;
    uint64_t buckets;
    uint64_t salt;
    FingerprintBits fingerprint_bits;
    bool prefetch;

    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      switch (fingerprint_bits) {
        case FingerprintBits::k8:
          return use(SizedView<8>{table, buckets, salt, prefetch});
        case FingerprintBits::k12:
          return use(SizedView<12>{table, buckets, salt, prefetch});
        case FingerprintBits::k16:
          break;
      }
      return use(SizedView<16>{table, buckets, salt, prefetch});
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  // Each distinct hash is stored once, however often it is given. Where the keys do not fit into
  // the table that `load` asks for, kSeedsPerSize seeds are tried, then the same with a table that
  // is 1 % larger (at least one bucket), kSizes sizes in all; then there is an error.
  // Sized for `keys` keys at the load of the parameters, holding none.
  static Result<Cuckoo> Create(uint64_t keys, const Params& params);
  static Result<Cuckoo> Build(std::span<const uint64_t> hashes, const Params& params);
  static constexpr uint64_t kSeedsPerSize = 4;
  static constexpr uint64_t kSizes = 8;

  // An empty filter of a given size, to be filled by Insert.
  static Result<Cuckoo> WithBuckets(uint64_t buckets, const Params& params);

  static Result<Cuckoo> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Stores one more copy at every call, so that each Insert can be taken back by one Erase. kFull,
  // and nothing changed, if a search through kMaxSearchedBuckets buckets finds no free slot; that
  // includes the ninth copy of a tag in the same two buckets (the fifth where they are one).
  InsertStatus Insert(uint64_t hash);
  static constexpr uint64_t kMaxSearchedBuckets = 512;

  // Removes one copy. Only for a hash that was inserted or built in and not erased since: any
  // other one may share its tag and buckets with a key, which would then be denied.
  EraseStatus Erase(uint64_t hash);

  View view() const {
    return {table_.data(), buckets_, salt_, params_.fingerprint_bits, PrefetchPays(table_.size())};
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Of the keys stored now, taken as distinct.
  std::optional<FprEstimate> ExpectedFpr() const;
  // At a load of 0.95 with bits_per_key * 0.95 bits of tag, whole or not.
  static std::optional<double> TheoryFpr(double bits_per_key);

  // Buckets for n keys at that load, at least 1; beyond the limit where it is too large to be
  // offered.
  static uint64_t BucketsFor(uint64_t n, double load);
  static uint64_t BucketBytes(FingerprintBits bits);

  uint64_t buckets() const { return buckets_; }
  // Tags stored now, and their share of the slots.
  uint64_t stored() const { return stored_; }
  double Load() const;

 private:
  Cuckoo(const Params& params, uint64_t buckets, uint64_t attempt, AlignedTable table);

  // Empties the table and changes to the seed of another attempt.
  void Restart(uint64_t attempt);
  // Stores all distinct hashes; false if one found no slot.
  bool Fill(std::span<const uint64_t> hashes);

  Params params_;
  uint64_t buckets_;
  uint64_t attempt_;  // which seed, from 0
  uint64_t salt_;
  uint64_t stored_ = 0;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CUCKOO_CUCKOO_H_
