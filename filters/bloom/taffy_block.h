#ifndef FILTERBENCH_FILTERS_BLOOM_TAFFY_BLOCK_H_
#define FILTERBENCH_FILTERS_BLOOM_TAFFY_BLOCK_H_

// Taffy block filter: split block filters that double, under one bound of the rate.
//
// Idea: as in a scalable Bloom filter, a full level is left as it is and one for twice the keys put
// on top. Levels are split block filters, one cache line each to ask; and their rates fall as 1 /
// i^2 instead of geometrically, so that n keys take log log n bits per key more instead of log n.
// Source: Apple, "Stretching your data with taffy filters", 2022 (the taffy block filter). Level i,
// from 1, has the rate 6 / (pi^2 i^2) fpr: all that may ever come add up to fpr.
// Limits: a negative answer costs as many cache misses as there are levels. A split block filter
// has eight probes at every rate, and below some 0.1 % it pays for that in bits. Repeated keys
// count each time, since nobody looks whether they are there. Bound 1 %, a million keys from 1024
// on: 29 bits per key in 10 levels, where `scalable_bloom` takes 23. When it loses: where the
// number of keys is known, or a table can be built anew; filters that keep fingerprints (the same
// paper's taffy cuckoo filter) ask few places at every size.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/bloom/split_block.h"
#include "filters/filter.h"
#include "filters/table.h"

namespace filterbench {

class TaffyBlock {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "taffy_block",
      .summary = "split block filters in levels that double without knowing how many keys come",
      .source = "Apple 2022",
      .fpr_formula =
          "1 - product over levels of (1 - split block rate of the level's keys and "
          "blocks)",
      .hash_bits = 64,
      .grows = true,
  };

  struct Params {
    double fpr = 0.01;
    uint64_t initial_keys = 1024;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"fpr", &Params::fpr, 1e-6, 0.5,
                           "bound of the false-positive rate, however many keys come"},
      Knob<Params, uint64_t>{
          "initial_keys", &Params::initial_keys, 0, uint64_t{1} << 40,
          "keys that the first level is made for, 128 at least; 0 takes those of the build"},
  };

  static constexpr uint32_t kMaxLevels = 48;
  static constexpr uint64_t kBlockBytes = kSplitWords * 4;
  static constexpr uint64_t kMaxBlocks = uint64_t{1} << 32;  // 2^40 bits, of all levels

  // A split block filter; its block comes from all bits of the hash, since levels may be large.
  struct Level {
    const uint32_t* words;
    uint64_t blocks;
    bool prefetch;  // batched lookups prefetch their lines

    static constexpr int kWordBits = SplitBlockView::kWordBits;
    static SplitBlockView::Bit BitOf(uint64_t hash, uint32_t i) {
      return SplitBlockView::BitOf(hash, i);
    }
    uint64_t BlockOf(uint64_t hash) const { return FastRange64(hash, blocks); }
    bool MayContain(uint64_t hash) const noexcept { return SplitBlockMayContain(*this, hash); }
  };
  // The newest level, which is the largest, is the last.
  struct Levels {
    uint32_t count = 0;
    std::array<Level, kMaxLevels> levels;
  };

  struct View {
    const Levels* all;

    bool MayContain(uint64_t hash) const noexcept {
      for (uint32_t i = all->count; i-- > 0;) {
        if (all->levels[i].MayContain(hash)) return true;
      }
      return false;
    }
  };

  // What a level is, by its number from 0.
  struct Geometry {
    double fpr;         // of the level when it is full
    uint64_t capacity;  // keys that it takes
    uint64_t blocks;
  };
  static Geometry GeometryOf(const Params& params, uint64_t initial_keys, uint32_t level);

  // One empty level.
  static Result<TaffyBlock> Create(uint64_t keys, const Params& params);
  static Result<TaffyBlock> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<TaffyBlock> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused. Where the next level would exceed the limit, or the system has no memory for it,
  // the newest one takes more keys than it should.
  InsertStatus Insert(uint64_t hash);

  View view() const { return {levels_.get()}; }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const {
    return table_.size() + sizeof(View) + sizeof(Level) * levels_->count;
  }
  uint64_t AllocatedBytes() const {
    return table_.allocated_bytes() + sizeof(*this) + sizeof(Levels) +
           sizeof(LevelState) * states_.capacity();
  }
  // All levels, the first one first.
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Of the levels as they are filled now, their keys taken as distinct.
  std::optional<FprEstimate> ExpectedFpr() const;
  // Nothing: the bits per key depend on how far the last level has been filled.
  static std::optional<double> TheoryFpr(double) { return std::nullopt; }

  uint32_t levels() const { return levels_->count; }
  uint64_t keys() const;

 private:
  struct LevelState {
    Geometry geometry;
    uint64_t keys = 0;
  };

  TaffyBlock(const Params& params, uint64_t initial_keys);
  // Puts another level on top; false, and nothing changed, where there cannot be one.
  bool Grow();
  // Makes the views of the levels those of table_.
  void PointIntoTable();

  Params params_;
  uint64_t initial_keys_;
  AlignedTable table_;
  std::vector<LevelState> states_;
  std::unique_ptr<Levels> levels_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_TAFFY_BLOCK_H_
