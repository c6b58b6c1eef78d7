#ifndef FILTERBENCH_FILTERS_RIBBON_BUMPED_H_
#define FILTERBENCH_FILTERS_RIBBON_BUMPED_H_

// Bumped ribbon filter (BuRR), for rows of 32 and 64 bits.
//
// Idea: the ribbon filter's linear system (ribbon.h) is given fewer starts than keys, so that
// hardly a slot stays free. The starts come in buckets; where a bucket has too many keys, those
// that start below a threshold in it are bumped: they go to the next layer, a small system of the
// same kind, and what the last overloaded layer bumps is a standard system of few keys. A lookup
// reads the threshold of its bucket first, two bits, and one row of the table then, in whichever
// layer. With eight columns the table has 1.004 times the bits of its fingerprints from 5e4 keys
// on.
// Source: Dillinger, Huebschle-Schneider, Sanders, Walzer, "Fast Succinct Retrieval and Approximate
// Membership using Ribbon" (SEA 2022), sections 3 and 4 (2-bit thresholds). What differs: layers
// share one matrix, so that a layer's last rows reach into the next one and no slots are lost
// between them; the last layer grows until it works, so that no build fails.
// Limits: no insertion after the build, which takes as long as that of `ribbon`. With rows of 64
// bits and eight columns the levels and free slots are less than 1 % from 1e4 keys on (0.4 % at
// most from 5e4 on, 0.22 % at 1e6); fewer columns come in blocks of 64 slots and share the levels
// among fewer bits: 1.5 % at r = 4 and 3.2 % at r = 1 for 1e4 keys. When it loses: a lookup is a
// little more work than in a `ribbon` of the same width; against a homogeneous one it saves 9 % of
// the space.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/ribbon/banding.h"
#include "filters/ribbon/ribbon.h"
#include "filters/ribbon/sizing.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

// Which keys the buckets of a layer bump. Levels are those with the least waste in simulations of
// 1e6 keys. Theory asks for buckets of w^2 / (4 log2 w) slots where rows have w coefficients
// (Dillinger et al. 2022, section 4): 170 for 64, 51 for 32.
template <uint64_t kSlots>
struct RibbonBuckets {
  static_assert(kSlots == 32 || kSlots == 128);
  static constexpr uint64_t kBucketSlots = kSlots;
  // Keys that start among the first kLevels[level] slots of the bucket are bumped.
  static constexpr uint64_t kLevelBits = 2;
  static constexpr std::array<uint64_t, 4> kLevels = kSlots == 128
                                                         ? std::array<uint64_t, 4>{0, 20, 48, 128}
                                                         : std::array<uint64_t, 4>{0, 8, 16, 32};
  static_assert(kLevels.back() == kBucketSlots, "a bucket can bump all of its keys");
  // A byte per level, so that a shift is all of a lookup.
  static constexpr uint64_t kLevelBytes =
      kLevels[0] | kLevels[1] << 8 | kLevels[2] << 16 | kLevels[3] << 24;
  static constexpr uint64_t kBucketsPerWord = 64 / kLevelBits;

  // Of the levels of so many starts.
  static constexpr uint64_t Words(uint64_t starts) {
    constexpr uint64_t kStartsPerWord = kBucketSlots * kBucketsPerWord;
    return (starts + kStartsPerWord - 1) / kStartsPerWord;
  }
  // In the bucket of the start, which counts from the first start with a level on.
  static uint64_t BumpedSlots(const uint64_t* levels, uint64_t start) {
    const uint64_t bucket = start / kBucketSlots;
    const uint64_t level =
        levels[bucket / kBucketsPerWord] >> (kLevelBits * (bucket % kBucketsPerWord)) & 3;
    return kLevelBytes >> (8 * level) & 0xff;
  }
  static bool IsBumped(const uint64_t* levels, uint64_t start) {
    return start % kBucketSlots < BumpedSlots(levels, start);
  }
};

// The later layers are small: smaller buckets adapt better to their number of keys, and what their
// levels take is no matter.
template <uint64_t kWidth>
using FirstRibbonBuckets = RibbonBuckets<kWidth == 64 ? 128 : 32>;
using LaterRibbonBuckets = RibbonBuckets<32>;

// Where layers lie: each has the starts up to that of the next one.
struct RibbonLayers {
  // Four overloaded layers leave some 30 keys of a million for the last one, 200 with 32 bits.
  static constexpr uint32_t kMax = 5;
  // What a layer adds to the hash of the one before, and its first start.
  struct Later {
    uint64_t salt = 0;
    uint64_t first = 0;
  };

  uint32_t count = 0;  // the last, which bumps no key, included; 0 where no key was built in
  std::array<Later, kMax - 1> later;
  uint64_t end = 0;  // of all starts

  constexpr uint64_t First(uint32_t layer) const { return layer == 0 ? 0 : later[layer - 1].first; }
  constexpr uint64_t Starts(uint32_t layer) const {
    return (layer + 1 < count ? First(layer + 1) : end) - First(layer);
  }
  // Of the levels of the first layer, if it is not the last, and of those between. The words of the
  // first stand before the others.
  template <uint64_t kWidth>
  constexpr uint64_t FirstLevelWords() const {
    return count < 2 ? 0 : FirstRibbonBuckets<kWidth>::Words(Starts(0));
  }
  template <uint64_t kWidth>
  constexpr uint64_t LevelWords() const {
    return count < 2
               ? 0
               : FirstLevelWords<kWidth>() + LaterRibbonBuckets::Words(First(count - 1) - First(1));
  }
};

// A view that knows the width. `starts` and `salt` of the table are those of the first layer.
template <uint64_t kRowWidth>
struct BumpedRibbonView : RibbonView<uint64_t, false> {
  using FirstBuckets = FirstRibbonBuckets<kRowWidth>;
  static constexpr uint64_t kRowSlots = kRowWidth;

  RibbonLayers layers;

  bool MayContain(uint64_t hash) const noexcept {
    uint64_t mixed = RibbonHash::Mix(hash, salt);
    uint64_t start = RibbonHash::Start(mixed, starts);
    if (layers.count > 1 && FirstBuckets::IsBumped(levels(), start)) start = MoveOn(mixed);
    const RibbonHash equation(mixed);
    return AgreesFromPlane(0, start, Narrow(equation), equation.ResultRow<uint64_t>());
  }

  // The start in the first later layer that does not bump the key; `mixed` becomes its hash there.
  uint64_t MoveOn(uint64_t& mixed) const noexcept {
    const uint64_t* later_levels = levels() + layers.template FirstLevelWords<kRowWidth>();
    for (uint32_t layer = 1;; ++layer) {
      mixed = NextLayer(mixed, layers.later[layer - 1].salt);
      const uint64_t start = layers.First(layer) + RibbonHash::Start(mixed, layers.Starts(layer));
      if (layer + 1 == layers.count ||
          !LaterRibbonBuckets::IsBumped(later_levels, start - layers.First(1))) {
        return start;
      }
    }
  }

  // A bijection. Keys were bumped for where they start: their next start has to be independent of
  // that, which a product would not be for hashes in a row.
  static constexpr uint64_t NextLayer(uint64_t mixed, uint64_t layer_salt) {
    return Mix64(mixed ^ layer_salt);
  }

  // Bits of the low word that are coefficients, in the order of bytes or of slots.
  static constexpr uint64_t kByteCoefficients = kRowSlots == 64 ? ~uint64_t{0} : 0xf0f0f0f0f0f0f0f0;
  static constexpr uint64_t kWordCoefficients = kRowSlots == 64 ? ~uint64_t{0} : 0xffffffff;
  constexpr RibbonHash Narrow(const RibbonHash& equation) const {
    return {equation.low & (shape.planes() != 0 ? kByteCoefficients : kWordCoefficients), 0};
  }

  const uint64_t* levels() const { return words + shape.words(); }
};

class BumpedRibbon {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "bumped_ribbon",
      .summary = "ribbon in overloaded layers that bump keys: 0.3 % more than the fingerprints",
      .source = "Dillinger, Huebschle-Schneider, Sanders, Walzer 2022",
      .fpr_formula =
          "mean over starts of 2^-columns in every layer (Dillinger et al. 2022, "
          "section 2)",
      .hash_bits = 64,
  };

  enum class Width : uint8_t { k32, k64 };

  // The size is asked for as that of `ribbon`.
  struct Params {
    double bits_per_key = 10;
    double fpr = 0;
    double columns = 0;
    Width width = Width::k64;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr uint32_t kMaxColumns = RibbonRequest::kMaxColumns;
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0, kMaxColumns,
                           "the table has at most so many bits per key, but at least one column; "
                           "0 is unset"},
      Knob<Params, double>{"fpr", &Params::fpr, 0, 0.5,
                           "the rate is at most this (from 2^-32 on); 0 is unset"},
      Knob<Params, double>{"columns", &Params::columns, 0, kMaxColumns,
                           "bits per slot (from 1 on); 7.25 gives a quarter of the blocks 8, the "
                           "others 7; 0 is unset"},
      Choice{"width", &Params::width, std::array<std::string_view, 2>{"32", "64"},
             "coefficients per key; 32 bumps twice as many keys and needs 0.5 % more"},
  };

  static constexpr uint64_t kMaxSlots = uint64_t{1} << 36;
  static constexpr uint64_t kMaxTableBytes = uint64_t{1} << 37;  // 2^40 bits
  // Of the last layer: a build tries so many salts, then gives it more slots and tries again.
  static constexpr uint64_t kAttemptsPerSize = 8;
  static constexpr uint64_t kMaxEnlargements = 63;
  static constexpr uint64_t kMaxAttempts = kAttemptsPerSize * (kMaxEnlargements + 1);
  // Of all layers: a table with more free slots than one in a thousand has (a bucket that bumped
  // all of its keys leaves 128) is built again, with other salts, so many times in all.
  static constexpr uint64_t kMaxRounds = 4;

  struct View : RibbonTable {
    RibbonLayers layers;
    Width width;

    template <class Use>
    auto Specialize(Use&& use) const {
      if (layers.count == 0) return use(Ribbon::NoKeys{});
      return width == Width::k64 ? use(BumpedRibbonView<64>{{*this}, layers})
                                 : use(BumpedRibbonView<32>{{*this}, layers});
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  static std::string Contradiction(const Params& params);
  static Result<BumpedRibbon> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<BumpedRibbon> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  View view() const {
    return {{table_.As<uint64_t>(), layers_.count == 0 ? 0 : layers_.Starts(0), salt_, shape_,
             PrefetchPays(table_.size())},
            layers_,
            params_.width};
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  std::optional<FprEstimate> ExpectedFpr() const;
  // For many keys and 64 bits.
  static std::optional<double> TheoryFpr(double bits_per_key);

  const RibbonShape& shape() const { return shape_; }
  const RibbonLayers& layers() const { return layers_; }

 private:
  BumpedRibbon(const Params& params, uint64_t n, uint64_t round, uint64_t attempt,
               const RibbonLayers& layers, const RibbonShape& shape, AlignedTable table);

  template <uint64_t kWidth>
  static Result<BumpedRibbon> BuildAs(std::span<const uint64_t> hashes, const Params& params,
                                      const RibbonRequest& request, uint64_t round);
  // Of the last layer with this attempt, of the others with 0.
  static uint64_t Salt(uint64_t seed, uint64_t round, uint32_t layer, uint64_t attempt) {
    return RibbonHash::Salt(seed, round * (RibbonLayers::kMax + kMaxAttempts) + layer + attempt);
  }

  Params params_;
  uint64_t n_;        // keys given, duplicates included
  uint64_t round_;    // the one that worked, from 0 on
  uint64_t attempt_;  // of the last layer: the one that worked, from 0 on
  RibbonLayers layers_;
  RibbonShape shape_;
  uint64_t salt_;
  AlignedTable table_;  // the solution, then the levels of all buckets but the last layer's
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_RIBBON_BUMPED_H_
