#ifndef FILTERBENCH_FILTERS_QUOTIENT_QUOTIENT_H_
#define FILTERBENCH_FILTERS_QUOTIENT_QUOTIENT_H_

// Rank-and-select quotient filter.
//
// Idea: a fingerprint is split into a quotient, which says where it belongs, and a remainder, which
// is stored there or, where that slot is taken, further up; equal quotients are neighbours (a run).
// Two bits per slot find them again: one says whether a quotient has a run, one whether a slot ends
// a run, and the i-th run ends at the i-th end. A block of 64 slots has these bits as two words,
// and the number of slots at its start that belong to runs of earlier blocks, so that counting
// starts at the block. Fingerprints are whole, so that keys can be erased.
// Source: Pandey, Bender, Johnson, Patro, "A General-Purpose Counting Filter: Making Every Bit
// Count", 2017, section 4.1 (without its counters); quotienting after Bender et al., "Don't Thrash:
// How to Cache Your Hash on Flash", 2012. Three things differ: the number of quotients need not be
// a power of two, since FastRange64 of the hash is in the order of the hash and so is the
// fingerprint; runs are in the order of insertion; and select is computed in plain arithmetic
// (filters/quotient/select.h).
// Limits: an insertion shifts what lies between its run and the next free slot, ten slots in the
// mean over a build to the load of 0.95, two hundred at its end. When it loses: lookups are chains
// of small steps, no vectors in them; a cuckoo filter is faster at the same size, and near full far
// cheaper to insert into. It wins where remainders of any width, deletion and locality count
// together.
//
// Not thread-safe: Insert and Erase shift slots in many stores.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/quotient/build.h"
#include "filters/quotient/select.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

static_assert(std::endian::native == std::endian::little,
              "blocks are read as little-endian words, so that tables are the same everywhere");

class Quotient {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "quotient",
      .summary = "remainders of 4 to 16 bits in runs that rank and select find; insert and erase",
      .source = "Pandey, Bender, Johnson, Patro 2017",
      .fpr_formula =
          "1 - (1 - 1/(quotients 2^r))^n: about load / 2^r (Bender et al. 2012, section 3)",
      .hash_bits = 64,
  };

  struct Params {
    uint64_t remainder_bits = 8;
    double load = 0.95;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  // A higher load than 0.95 would need offsets beyond one byte.
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, uint64_t>{"remainder_bits", &Params::remainder_bits, 4, 16,
                             "bits of a stored remainder"},
      Knob<Params, double>{"load", &Params::load, 0.05, 0.95,
                           "promised keys for each quotient"},
  };

  static constexpr uint64_t kMaxTableBytes = uint64_t{1} << 37;  // 2^40 bits

  // A block: offset, one byte; then the words `occupieds` (bit i: quotient i of the block has a
  // run) and `runends` (bit i: slot i ends a run); then 64 remainders, packed. Slots beyond the
  // last quotient take what is shifted there. A block of zeros is empty; slots without a key hold
  // 0.
  static constexpr uint64_t kSlotsPerBlock = 64;
  static constexpr uint64_t kOccupiedsAt = 1;
  static constexpr uint64_t kRunendsAt = 9;
  static constexpr uint64_t kRemaindersAt = 17;
  static constexpr uint64_t kMaxOffset = 255;
  static constexpr uint64_t BlockBytes(uint64_t remainder_bits) {
    return kRemaindersAt + kSlotsPerBlock / 8 * remainder_bits;
  }

  struct Place {
    uint64_t quotient;
    uint64_t remainder;
  };

  struct View {
    const std::byte* table;
    uint64_t quotients;
    uint64_t salt;
    uint64_t remainder_bits;
    uint64_t block_bytes;
    bool prefetch;  // batched lookups prefetch their lines first

    Place PlaceOf(uint64_t hash) const noexcept {
      const uint64_t fingerprint =
          FastRange64(QuotientMix(hash, salt), quotients << remainder_bits);
      return {fingerprint >> remainder_bits, fingerprint & LowBits(remainder_bits)};
    }
    bool MayContain(uint64_t hash) const noexcept { return Contains(PlaceOf(hash)); }

    const std::byte* Block(uint64_t block) const noexcept { return table + block * block_bytes; }
    uint64_t Offset(uint64_t block) const noexcept {
      return std::to_integer<uint64_t>(*Block(block));
    }
    uint64_t Occupieds(uint64_t block) const noexcept { return Word(Block(block) + kOccupiedsAt); }
    uint64_t Runends(uint64_t block) const noexcept { return Word(Block(block) + kRunendsAt); }
    bool IsOccupied(uint64_t quotient) const noexcept {
      return (Occupieds(quotient / kSlotsPerBlock) >> (quotient % kSlotsPerBlock) & 1) != 0;
    }
    bool IsRunend(uint64_t slot) const noexcept {
      return (Runends(slot / kSlotsPerBlock) >> (slot % kSlotsPerBlock) & 1) != 0;
    }
    // Reads up to four bytes from the remainder on, which the slack behind a table allows.
    uint64_t Remainder(uint64_t slot) const noexcept {
      const uint64_t bit = slot % kSlotsPerBlock * remainder_bits;
      uint32_t bits;
      std::memcpy(&bits, Block(slot / kSlotsPerBlock) + kRemaindersAt + bit / 8, sizeof(bits));
      return bits >> (bit % 8) & LowBits(remainder_bits);
    }

    // One beyond the last slot of the runs of all quotients up to this one. Where those of its
    // block have none and nothing reaches into the block, the start of the block.
    uint64_t RunsEnd(uint64_t quotient) const noexcept {
      uint64_t block = quotient / kSlotsPerBlock;
      const uint64_t up_to = ~uint64_t{0} >> (kSlotsPerBlock - 1 - quotient % kSlotsPerBlock);
      int rank = std::popcount(Occupieds(block) & up_to);
      const uint64_t begin = block * kSlotsPerBlock + Offset(block);
      if (rank == 0) return begin;
      // The ends of earlier blocks' runs are all below `begin`.
      block = begin / kSlotsPerBlock;
      uint64_t runends = Runends(block) & ~LowBits(begin % kSlotsPerBlock);
      for (;;) {
        const int count = std::popcount(runends);
        if (rank <= count) break;
        rank -= count;
        runends = Runends(++block);
      }
      return block * kSlotsPerBlock + static_cast<uint64_t>(Select64(runends, rank - 1)) + 1;
    }

    // The slot of a key with this fingerprint, kNoSlot if there is none.
    static constexpr uint64_t kNoSlot = ~uint64_t{0};
    uint64_t Find(const Place& place) const noexcept {
      if (!IsOccupied(place.quotient)) return kNoSlot;
      // Backwards from the end of the run. It begins at its quotient or behind the end of another.
      uint64_t slot = RunsEnd(place.quotient) - 1;
      for (;;) {
        if (Remainder(slot) == place.remainder) return slot;
        if (slot == place.quotient || IsRunend(slot - 1)) return kNoSlot;
        --slot;
      }
    }
    bool Contains(const Place& place) const noexcept { return Find(place) != kNoSlot; }

   private:
    static uint64_t Word(const std::byte* at) noexcept {
      uint64_t word;
      std::memcpy(&word, at, sizeof(word));
      return word;
    }
  };

  // Each distinct hash is stored once, however often it is given. Where the keys do not fit, other
  // seeds and larger tables are tried (filters/quotient/build.h); then there is an error.
  static Result<Quotient> Build(std::span<const uint64_t> hashes, const Params& params);

  // Empty. `keys` distinct keys are then accepted one by one with a probability of at least 99 %:
  // at a load of 0.95 what is shifted beyond a slot is longer than x slots with a probability of
  // about e^(-0.1 x) (the queue M/D/1), and at least 64 slots follow the last quotient.
  static Result<Quotient> Create(uint64_t keys, const Params& params);

  static Result<Quotient> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Stores one more copy at every call, so that each Insert can be taken back by one Erase. kFull,
  // and nothing changed, where no slot is free within kMaxShiftedSlots or before the end of the
  // table, or where an offset would exceed kMaxOffset.
  InsertStatus Insert(uint64_t hash);
  static constexpr uint64_t kMaxShiftedSlots = uint64_t{1} << 16;
  // Removes one copy. Only for a hash that was inserted or built in and not erased since.
  EraseStatus Erase(uint64_t hash);

  View view() const {
    return {table_.data(),
            quotients_,
            salt_,
            params_.remainder_bits,
            BlockBytes(params_.remainder_bits),
            PrefetchPays(table_.size())};
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
  // At a load of 0.95 with remainders as wide as the bits allow, whole or not.
  static std::optional<double> TheoryFpr(double bits_per_key);

  // Quotients for n keys, at least 1; beyond the limit where it is too large to be offered.
  static uint64_t QuotientsFor(uint64_t n, double load);
  // Blocks for these quotients and the slots behind the last one.
  static constexpr uint64_t BlocksFor(uint64_t quotients) {
    return (quotients + 2 * kSlotsPerBlock - 1) / kSlotsPerBlock;
  }

  uint64_t quotients() const { return quotients_; }
  // Keys stored now, and how many there are for each quotient.
  uint64_t stored() const { return stored_; }
  double Load() const { return static_cast<double>(stored_) / static_cast<double>(quotients_); }

  void SetReport(const BuildReport& report) { report_ = report; }

 private:
  Quotient(const Params& params, uint64_t quotients, uint64_t attempt, AlignedTable table);
  static Result<Quotient> CreateForAttempt(uint64_t keys, const Params& params, uint64_t attempt);

  Params params_;
  uint64_t quotients_;
  uint64_t attempt_;  // which seed, from 0
  uint64_t salt_;
  uint64_t stored_ = 0;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_QUOTIENT_QUOTIENT_H_
