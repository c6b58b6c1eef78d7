#ifndef FILTERBENCH_FILTERS_QUOTIENT_VECTOR_QUOTIENT_H_
#define FILTERBENCH_FILTERS_QUOTIENT_VECTOR_QUOTIENT_H_

// Vector quotient filter.
//
// Idea: a quotient filter that is as small as a cache line can shift its remainders with one
// instruction and compare them with one, and many such mini-filters fill up evenly if each key
// takes the emptier one of two. No key is ever moved between blocks: an insertion costs the same
// two lines at every load, where a cuckoo filter searches ever longer. Keys can be erased.
// Source: Pandey, Conway, Durie, Bender, Farach-Colton, Johnson, "Vector Quotient Filters:
// Overcoming the Time/Space Trade-Off in Filter Design", 2021. Three things differ from the paper:
// the number of blocks need not be a power of two (`MiniFilterPartner`), the second block is always
// looked at (the paper's shortcut to the first one while it is less than 75 % full costs load), and
// a lookup computes no select: remainders are compared first, and that a matching slot lies in the
// bucket of the key follows from the bit of the slot and the number of bits below it
// (vector_quotient_kernel.cc).
// Limits: two rates, 0.44 % and 0.0022 %, at 11.5 and 20.3 bits per key. Insert answers kFull where
// both blocks of a key are full, as soon as a load of 0.94 to 0.95 (8 bits) or 0.91 (16 bits). When
// it loses: two lines for every answer and comparisons over whole lines; a cuckoo filter with tags
// of 12 bits costs 1.2 bits more and has 0.4 of the rate, and where no key is erased linear
// equations are smaller and faster.
//
// Not thread-safe: Insert and Erase change a block in several stores.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/quotient/mini_filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

class VectorQuotient {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "vector_quotient",
      .summary = "quotient filters of one cache line, the emptier one of two; insert and erase",
      .source = "Pandey, Conway, Durie, Bender, Farach-Colton, Johnson 2021",
      .fpr_formula = "sum over tags of p (1 - (1 - 2p/blocks)^n), p = 1 / (buckets 2^r): about 2 "
                     "load slots / (buckets 2^r) (Pandey et al. 2021, section 4)",
      .hash_bits = 64,
  };

  enum class FingerprintBits { k8, k16 };

  struct Params {
    FingerprintBits fingerprint_bits = FingerprintBits::k8;
    double load = 0.93;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"fingerprint_bits", &Params::fingerprint_bits,
             std::array<std::string_view, 2>{"8", "16"},
             "bits of a stored remainder; the bucket tells 6.3 (8 bits) or 5.2 bits more"},
      Knob<Params, double>{"load", &Params::load, 0.05, 0.93,
                           "share of the slots that the promised keys fill; at most 0.90 of blocks "
                           "with remainders of 16 bits, which hold 28 keys and fill less evenly"},
  };

  // The view knows its remainders: the outer one asks one of these.
  template <int kBits>
  using SizedView = MiniFilterTable<kBits>;

  struct View {
    const std::byte* table;
    uint64_t blocks;
    uint64_t salt;
    FingerprintBits fingerprint_bits;
    bool prefetch;

    template <class Use>
    decltype(auto) Specialize(Use&& use) const {
      if (fingerprint_bits == FingerprintBits::k8) {
        return use(SizedView<8>{table, blocks, salt, prefetch});
      }
      return use(SizedView<16>{table, blocks, salt, prefetch});
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  // Each distinct hash is stored once, however often it is given. Where the keys do not fit, other
  // seeds and larger tables are tried (filters/quotient/build.h); then there is an error.
  static Result<VectorQuotient> Build(std::span<const uint64_t> hashes, const Params& params);

  // Empty. `keys` distinct keys are then accepted one by one: in 20000 tables of 1 to 1e5 blocks
  // with uniform hashes, the share of refused sequences is below 1 % for every size, at both
  // widths.
  static Result<VectorQuotient> Create(uint64_t keys, const Params& params);

  static Result<VectorQuotient> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Stores one more copy at every call, so that each Insert can be taken back by one Erase. kFull,
  // and nothing changed, where both blocks of the key are full.
  InsertStatus Insert(uint64_t hash);
  // Removes one copy. Only for a hash that was inserted or built in and not erased since.
  EraseStatus Erase(uint64_t hash);

  View view() const {
    return {table_.data(), blocks_, salt_, params_.fingerprint_bits, PrefetchPays(table_.size())};
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
  // At a load of 0.93 in blocks with the proportions of the narrow ones.
  static std::optional<double> TheoryFpr(double bits_per_key);

  // Blocks for n keys, at least 1; beyond the limit where it is too large to be offered.
  static uint64_t BlocksFor(uint64_t n, const Params& params);
  static constexpr double kMaxLoadOf16Bits = 0.90;

  uint64_t blocks() const { return blocks_; }
  // Keys stored now, and their share of the slots.
  uint64_t stored() const { return stored_; }
  double Load() const;

  void SetReport(const BuildReport& report) { report_ = report; }

 private:
  VectorQuotient(const Params& params, uint64_t blocks, uint64_t attempt, AlignedTable table);
  static Result<VectorQuotient> CreateForAttempt(uint64_t keys, const Params& params,
                                                 uint64_t attempt);

  Params params_;
  uint64_t blocks_;
  uint64_t attempt_;  // which seed, from 0
  uint64_t salt_;
  uint64_t stored_ = 0;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_QUOTIENT_VECTOR_QUOTIENT_H_
