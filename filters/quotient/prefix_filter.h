#ifndef FILTERBENCH_FILTERS_QUOTIENT_PREFIX_FILTER_H_
#define FILTERBENCH_FILTERS_QUOTIENT_PREFIX_FILTER_H_

// Prefix filter.
//
// Idea: a bin of 32 bytes keeps the 25 least fingerprints of its keys; greater ones go to a spare.
// A lookup sees from the bin alone which of the two to ask, since a fingerprint beyond the greatest
// one of a bin that has overflowed lies in the spare and any other one does not. So nearly all
// lookups read one line, and insertions one line as well, where other filters with fingerprints
// read two or three.
// Source: Even, Even, Morrison, "Prefix Filter: Practically and Theoretically Better Than Bloom",
// 2022: bins are pocket dictionaries of 25 quotients and 25 remainders of 8 bits (section 5), which
// make 250 of 256 bits. The spare is a vector quotient filter of 8 bits, one of those that the
// paper measures behaves like its two-choicer; bits that the paper leaves over hold the quotient of
// the greatest fingerprint.
// Limits: one rate, about 0.38 % at 11.5 bits per key; no key can be erased, since what a bin gave
// away does not come back. Insert answers kFull when the spare is full. When it loses: where keys
// are erased; where they are all known at the start, linear equations are smaller.
//
// Not thread-safe: Insert changes a bin and the spare in several stores.

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
#include "filters/quotient/mini_filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

// A bin: 50 bits that say in unary how many keys each quotient has (a 1 for each key, then a 0 that
// ends the quotient), 5 bits of `code`, one bit that is 0, then 25 remainders in ascending order of
// their fingerprints, 0 behind the last one. `code` is 0 until the bin has given a key away, then
// 25 less the greatest quotient in the bin. A bin of zeros is empty.
struct PrefixBin {
  static constexpr uint64_t kBytes = 32;
  static constexpr int kSlots = 25;
  static constexpr int kQuotients = 25;
  static constexpr uint64_t kHeaderBytes = 7;
  static constexpr int kRemainderBits = 8;
  static constexpr uint64_t kFingerprints = kQuotients << kRemainderBits;
  static constexpr int kCodeShift = kSlots + kQuotients;
  static constexpr uint64_t kCodeMask = 31;
  static constexpr uint64_t kUnaryMask = (uint64_t{1} << kCodeShift) - 1;
  static_assert(kHeaderBytes + kSlots == kBytes);
  static_assert(kCodeShift + 5 < 8 * static_cast<int>(kHeaderBytes));

  // Eight bytes, of which the last is the first remainder.
  static uint64_t Load(const std::byte* bin) {
    uint64_t header;
    std::memcpy(&header, bin, sizeof(header));
    return header;
  }
  static uint64_t Remainder(const std::byte* bin, int slot) {
    return std::to_integer<uint64_t>(bin[kHeaderBytes + slot]);
  }
  static int Quotient(uint64_t fingerprint) {
    return static_cast<int>(fingerprint >> kRemainderBits);
  }
  static int Count(uint64_t header) { return std::popcount(header & kUnaryMask); }

  // Greater fingerprints lie in the spare: the greatest one here, or more than any while code is 0.
  static uint64_t Greatest(const std::byte* bin, uint64_t header) {
    return (kQuotients - (header >> kCodeShift & kCodeMask)) << kRemainderBits |
           Remainder(bin, kSlots - 1);
  }

  // How many fingerprints are greater than that.
  static uint64_t PassedOn(const std::byte* bin) {
    const uint64_t greatest = Greatest(bin, Load(bin));
    return greatest < kFingerprints ? kFingerprints - 1 - greatest : 0;
  }

  static bool Contains(const std::byte* bin, uint64_t fingerprint) {
    const uint64_t unary = Load(bin) & kUnaryMask;
    const int quotient = Quotient(fingerprint);
    const uint64_t remainder = fingerprint & 0xff;
    for (int position = StartOf(unary, quotient); (unary >> position & 1) != 0; ++position) {
      if (Remainder(bin, position - quotient) == remainder) return true;
    }
    return false;
  }

  // What Insert would give away for this fingerprint: nothing (kFingerprints) while there is a free
  // slot, else the greatest of all.
  static uint64_t Overflow(const std::byte* bin, uint64_t fingerprint) {
    const uint64_t header = Load(bin);
    if (Count(header) < kSlots) return kFingerprints;
    const uint64_t last = LastQuotient(header) << kRemainderBits | Remainder(bin, kSlots - 1);
    return last < fingerprint ? fingerprint : last;
  }
  // Keeps the least kSlots fingerprints.
  static void Insert(std::byte* bin, uint64_t fingerprint) {
    const bool is_full = Count(Load(bin)) == kSlots;
    if (is_full && Overflow(bin, fingerprint) != fingerprint) {
      const uint64_t unary = Load(bin) & kUnaryMask;
      Store(bin, unary ^ std::bit_floor(unary));
      Add(bin, fingerprint);
    } else if (!is_full) {
      Add(bin, fingerprint);
    }
    if (is_full) {
      const uint64_t unary = Load(bin) & kUnaryMask;
      Store(bin, unary | (kQuotients - LastQuotient(unary)) << kCodeShift);
    }
  }

  // Whether Insert could have left these bytes. Nothing else may be asked: a lookup would leave the
  // bin, or look for a key in the wrong place.
  static bool IsConsistent(const std::byte* bin) {
    const uint64_t header = Load(bin) & kHeaderMask;
    const int count = Count(header);
    if (count > kSlots || (header >> (kCodeShift + 5)) != 0) return false;
    const uint64_t unary = header & kUnaryMask;
    // The zeros below the last key are the number of its quotient.
    if (count != 0 && unary >> (count + kQuotients - 1) != 0) return false;
    const uint64_t code = header >> kCodeShift & kCodeMask;
    if (code != 0 && (count != kSlots || code != kQuotients - LastQuotient(header))) return false;
    for (int slot = count; slot < kSlots; ++slot) {
      if (Remainder(bin, slot) != 0) return false;
    }
    for (int position = 0, slot = 0; slot + 1 < count; ++position) {
      if ((unary >> position & 1) == 0) continue;
      const bool same_quotient = (unary >> (position + 1) & 1) != 0;
      if (same_quotient && Remainder(bin, slot) > Remainder(bin, slot + 1)) return false;
      ++slot;
    }
    return true;
  }

 private:
  static constexpr uint64_t kHeaderMask = (uint64_t{1} << (8 * kHeaderBytes)) - 1;

  static int StartOf(uint64_t unary, int quotient) {
    return quotient == 0 ? 0 : Select64(~unary, quotient - 1) + 1;
  }
  // Of a full bin: the zeros below its last key.
  static uint64_t LastQuotient(uint64_t header) {
    return static_cast<uint64_t>(std::bit_width(header & kUnaryMask)) - kSlots;
  }
  static void Store(std::byte* bin, uint64_t header) { std::memcpy(bin, &header, kHeaderBytes); }

  // There must be a free slot; `code` becomes 0.
  static void Add(std::byte* bin, uint64_t fingerprint) {
    const uint64_t unary = Load(bin) & kUnaryMask;
    const int quotient = Quotient(fingerprint);
    int position = StartOf(unary, quotient);
    while ((unary >> position & 1) != 0 &&
           Remainder(bin, position - quotient) < (fingerprint & 0xff)) {
      ++position;
    }
    std::byte* const at = bin + kHeaderBytes + (position - quotient);
    std::memmove(at + 1, at, bin + kBytes - 1 - at);  // the last slot is free
    *at = static_cast<std::byte>(fingerprint & 0xff);
    const uint64_t below = unary & LowBits(position);
    Store(bin, below | uint64_t{1} << position | (unary ^ below) << 1);
  }
};

class PrefixFilter {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "prefix_filter",
      .summary = "bins of 25 least fingerprints of 12.6 bits, the rest in a vector quotient filter",
      .source = "Even, Even, Morrison 2022",
      .fpr_formula = "1 - (1 - 1/(6400 bins))^n + P(fingerprint beyond the 25th least of its bin) "
                     "FPR(spare) (Even, Even, Morrison 2022, section 4.3)",
      .hash_bits = 64,
  };

  struct Params {
    double load = 0.95;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"load", &Params::load, 0.05, 1.0,
                           "promised keys over slots of the bins; the spare grows with it"},
  };

  static constexpr uint64_t kMaxTableBytes = uint64_t{1} << 37;  // 2^40 bits
  static constexpr int kSpareRemainderBits = 8;
  using Spare = MiniFilterTable<kSpareRemainderBits>;

  struct Place {
    uint64_t bin;
    uint64_t fingerprint;
  };

  // The spare stores bin and fingerprint as if they were a key: more it cannot know when it gets
  // them from a bin.
  static constexpr uint64_t SpareHash(const Place& place) {
    return Mix64(place.bin * PrefixBin::kFingerprints + place.fingerprint);
  }

  struct View {
    const std::byte* table;
    uint64_t bins;  // 1 to 2^32 - 1
    uint64_t salt;
    Spare spare;
    bool prefetch;

    Place PlaceOf(uint64_t hash) const noexcept {
      const uint64_t mixed = QuotientMix(hash, salt);
      return {FastRange64(mixed, bins),
              static_cast<uint32_t>(mixed) * PrefixBin::kFingerprints >> 32};
    }
    bool Contains(const Place& place) const noexcept {
      const std::byte* bin = table + place.bin * PrefixBin::kBytes;
      if (place.fingerprint > PrefixBin::Greatest(bin, PrefixBin::Load(bin))) {
        return spare.MayContain(SpareHash(place));
      }
      return PrefixBin::Contains(bin, place.fingerprint);
    }
    bool MayContain(uint64_t hash) const noexcept { return Contains(PlaceOf(hash)); }
  };

  // Each distinct hash is stored once, however often it is given. Where the keys do not fit, other
  // seeds and larger tables are tried (filters/quotient/build.h); then there is an error.
  static Result<PrefixFilter> Build(std::span<const uint64_t> hashes, const Params& params);

  // Empty. `keys` distinct keys are then accepted one by one with a probability of at least 99 %:
  // the spare has room for three standard deviations more keys than come to it in the mean.
  static Result<PrefixFilter> Create(uint64_t keys, const Params& params);

  static Result<PrefixFilter> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // kFull, and nothing changed, where the bin of the key is full and so are both blocks of the
  // spare for what it would give away.
  InsertStatus Insert(uint64_t hash);

  View view() const;
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  // The bins up to whole lines, then the spare.
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Of the keys stored now, taken as distinct, and the bins that have overflowed.
  std::optional<FprEstimate> ExpectedFpr() const;
  // At a load of 0.95 with remainders as wide as the bits allow, whole or not.
  static std::optional<double> TheoryFpr(double bits_per_key);

  struct Sizes {
    uint64_t bins;
    uint64_t spare_blocks;
    // 2^64 - 1 where it is too large to be offered.
    uint64_t TableBytes() const;
  };
  static Sizes SizesFor(uint64_t n, double load);

  // Keys stored now, those in the spare included.
  uint64_t stored() const { return stored_; }
  uint64_t stored_in_spare() const { return stored_in_spare_; }

  void SetReport(const BuildReport& report) { report_ = report; }

 private:
  class Writer;
  PrefixFilter(const Params& params, const Sizes& sizes, uint64_t attempt, AlignedTable table);
  static Result<PrefixFilter> CreateForAttempt(uint64_t keys, const Params& params,
                                               uint64_t attempt);

  Params params_;
  Sizes sizes_;
  uint64_t attempt_;  // which seed, from 0
  uint64_t salt_;
  uint64_t stored_ = 0;
  uint64_t stored_in_spare_ = 0;
  uint64_t passed_on_ = 0;  // pairs of a bin and a fingerprint for which the spare is asked
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_QUOTIENT_PREFIX_FILTER_H_
