#ifndef FILTERBENCH_FILTERS_FILTER_H_
#define FILTERBENCH_FILTERS_FILTER_H_

// The contract of a filter. A type that satisfies `Filter` and stands in filters/catalogue.txt is
// listed, tested, swept and drawn; nothing else has to know of it.
//
// Filters work on 64-bit key hashes (filters/hash.h) that are uniform; equal hashes are equal keys.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "filters/fpr.h"
#include "filters/hash.h"
#include "filters/params.h"
#include "filters/result.h"
#include "filters/simd/kernel.h"

namespace filterbench {

// What does not change from one instance to the next.
struct FilterInfo {
  std::string_view name;         // on the command line and in records: lower_snake_case
  std::string_view summary;      // one line
  std::string_view source;       // the paper, or the system, it comes from
  std::string_view fpr_formula;  // the closed form behind ExpectedFpr and its citation
  // Bits of the hash that tell two keys apart where memory is no object (not the bits of a stored
  // fingerprint); n / 2^hash_bits is a floor of the FPR that no memory buys off. Where it matters,
  // ExpectedFpr includes it: nobody adds it later.
  int hash_bits = 64;
  // A baseline answers by what it costs, not by what was inserted: it has no FPR and may deny keys.
  bool is_baseline = false;
  // Takes any number of keys, however many it was made for, at a bounded FPR: it adds tables.
  bool grows = false;
};

// A fact about a built filter that its parameters leave open: the k that was chosen, the load
// that was reached. Goes into the record under its name.
struct Detail {
  std::string_view name;
  double value;
};
using Details = std::vector<Detail>;

// What a build did besides building.
struct BuildReport {
  uint64_t attempts = 1;       // seeds tried, 1 if the first one worked
  uint64_t distinct_keys = 0;  // distinct hashes among those given; the given count if not known
  // Largest number of bytes held at once during the build, the filter itself included.
  uint64_t peak_bytes = 0;
};

template <class F>
concept Filter =
    std::movable<F> && std::equality_comparable<typename F::Params> &&
    std::is_trivially_copyable_v<typename F::View> &&
    requires(const F& filter, const typename F::View& view, const typename F::Params& params,
             std::span<const uint64_t> hashes, std::span<const std::byte> wire, uint64_t hash,
             double bits_per_key) {
      { F::kInfo } -> std::convertible_to<FilterInfo>;
      // Tuple of Knob and Choice over all members of Params but the seed.
      F::kKnobs;
      { params.seed } -> std::convertible_to<uint64_t>;

      // Where values that are in their ranges may contradict each other, there is
      //   static std::string F::Contradiction(params)
      // which says how, naming the knobs, or is empty; Build refuses them with the same words.

      // Deterministic in (hashes, params); duplicates allowed; bounded work. A reason, not an
      // exception, where the filter cannot be built; one that is beyond its limits is refused with
      // "too large: ..." before a hash is read. Built from nothing it denies every hash, in at most
      // 64 KiB.
      { F::Build(hashes, params) } -> std::same_as<Result<F>>;
      { filter.params() } -> std::same_as<const typename F::Params&>;
      { filter.report() } -> std::same_as<const BuildReport&>;

      // The scalar reference, inline and plain C++: the truth for all kernels. Never false for a
      // hash that was built in or inserted.
      { view.MayContain(hash) } noexcept -> std::same_as<bool>;
      { filter.MayContain(hash) } noexcept -> std::same_as<bool>;
      // Pointers, counts and seeds, all that a lookup needs; valid while the filter lives, also
      // after a move of it.
      { filter.view() } -> std::same_as<typename F::View>;
      // One table per SIMD target that this machine runs, the best first, `scalar` last.
      { F::Kernels() } -> std::same_as<std::span<const Kernel<typename F::View>>>;

      // All bytes that a lookup may touch and the parameters that it needs; Table().size() or more.
      { filter.SizeInBytes() } -> std::same_as<uint64_t>;
      // What the allocator was asked for, slack included.
      { filter.AllocatedBytes() } -> std::same_as<uint64_t>;
      // The bytes whose digest is compared between targets and machines: the stored table.
      { filter.Table() } -> std::same_as<std::span<const std::byte>>;
      { filter.GetDetails() } -> std::same_as<Details>;

      // Theory for this instance (its n, m, k, load); nothing for baselines.
      { filter.ExpectedFpr() } -> std::same_as<std::optional<FprEstimate>>;
      // Theory for many keys at a budget of bits per key: the curve that figures draw. Nothing
      // where the rate is no function of it; figures then show points without a line.
      { F::TheoryFpr(bits_per_key) } -> std::same_as<std::optional<double>>;

      // The format of filters/wire.h. Deserialize trusts nothing.
      { filter.Serialize() } -> std::same_as<std::vector<std::byte>>;
      { F::Deserialize(wire) } -> std::same_as<Result<F>>;
    };

enum class InsertStatus { kOk, kFull };
enum class EraseStatus { kOk, kNotFound };

// Grows by single keys.
template <class F>
concept DynamicFilter =
    Filter<F> && requires(F& filter, uint64_t hash, uint64_t keys,
                          const typename F::Params& params) {
      // Sized for `keys` distinct keys, holding none. That many are its promise: they are accepted
      // in any order, for at least 99 of 100 seeds where that is left to chance. What comes beyond
      // may be refused, or accepted at a rate that ExpectedFpr follows.
      { F::Create(keys, params) } -> std::same_as<Result<F>>;
      // A refused insert changes nothing.
      { filter.Insert(hash) } -> std::same_as<InsertStatus>;
    };

// Forgets keys. Erasing what was never inserted may remove a key that shares its fingerprint: the
// caller erases only what it inserted.
template <class F>
concept ErasableFilter = DynamicFilter<F> && requires(F& filter, uint64_t hash) {
  { filter.Erase(hash) } -> std::same_as<EraseStatus>;
};

// Needs only the number of keys before the first of them: made by Create, then filled in pieces, so
// that the keys need not be in memory at once.
template <class F>
concept StreamingFilter =
    DynamicFilter<F> && requires(F& filter, std::span<const uint64_t> hashes, unsigned threads) {
      // Leaves the bytes of F::Build(all hashes, params), whatever the pieces and the threads.
      { filter.InsertAll(hashes, threads) } -> std::same_as<void>;
    };

// Hashes keys by itself, several times: where keys are byte strings it takes the whole string, and
// where lookups include hashing it takes the integer key in place of its hash.
template <class F>
concept KeyHashingFilter =
    Filter<F> && KeyHashingView<typename F::View> &&
    requires(ByteKeys keys, const typename F::Params& params) {
      { F::BuildFromBytes(keys, params) } -> std::same_as<Result<F>>;
    };

// Number of answers `maybe` among `hashes`, by the best kernel of this machine.
template <Filter F>
uint64_t CountContained(const F& filter, std::span<const uint64_t> hashes) {
  return F::Kernels().front().count_batched(filter.view(), hashes.data(), hashes.size());
}

// Answer i is bit i % 64 of bits[i / 64]. Writes (size + 63) / 64 words, the unused bits as 0.
template <Filter F>
void MayContainBits(const F& filter, std::span<const uint64_t> hashes, uint64_t* bits) {
  F::Kernels().front().bits_batched(filter.view(), hashes.data(), hashes.size(), bits);
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_FILTER_H_
