#ifndef FILTERBENCH_FILTERS_FUSE_POSITIONS_H_
#define FILTERBENCH_FILTERS_FUSE_POSITIONS_H_

// Which slots a hash has in a table of fingerprints, and what their sum must be: what the filters
// of this family share between building, lookups and kernels. All of it is arithmetic on 64 bits
// and holds for tables of up to 2^40 bits.

#include <array>
#include <cstddef>
#include <cstdint>

#include "filters/hash.h"

namespace filterbench {

// What a hash asks of the table. All of it follows from the hash and the salt of the attempt.
struct FuseHash {
  static constexpr uint64_t kMixMultiplier = 0xd1342543de82ef95;
  // kMixMultiplier * kMixInverse = 1 (mod 2^64).
  static constexpr uint64_t kMixInverse = 0x572b5ee77a54e3bd;
  // Odd and of 32 bits, for the sake of vectors: two products instead of three.
  static constexpr uint64_t kSpreadMultiplier = 0x9e3779b1;

  static constexpr uint64_t Fold(uint64_t x) { return x ^ x >> 32; }

  // Different for every attempt of every seed.
  static constexpr uint64_t Salt(uint64_t seed, uint64_t attempt) {
    return Mix64(Mix64(seed) + attempt * kGoldenGamma);
  }

  // A bijection, so that equal values are equal hashes; what a build keeps of a hash. The salt
  // comes before the multiplication, since two hashes that differ by the same amount for all salts
  // would share slots in all attempts. High bits of the hash are brought down so that the product
  // depends on them in many places: by 29, since keys with a meaning in each half are frequent and
  // must not cancel out.
  static constexpr uint64_t Mix(uint64_t hash, uint64_t salt) {
    const uint64_t salted = hash ^ salt;
    return (salted ^ salted >> kSaltedShift) * kMixMultiplier;
  }
  static constexpr uint64_t Unmix(uint64_t mixed, uint64_t salt) {
    const uint64_t folded = mixed * kMixInverse;
    return (folded ^ folded >> kSaltedShift ^ folded >> 2 * kSaltedShift) ^ salt;
  }
  static constexpr int kSaltedShift = 29;

  // A second multiplication, since products of hashes in a row are evenly spaced: if they chose the
  // slots, no slot of a well filled table would belong to one key alone, and nothing could be
  // peeled.
  constexpr explicit FuseHash(uint64_t mixed_hash)
      : mixed(mixed_hash),
        first(Fold(Fold(mixed_hash) * kSpreadMultiplier)),
        second((first << 32 | first >> 32) ^ mixed_hash) {}

  // The sum that the slots of a key have. Low bits that hardly take part in the choice of slots, so
  // that the fingerprint is independent of them in tables of any size.
  template <class T>
  constexpr T Fingerprint() const {
    return static_cast<T>(first ^ second);
  }

  uint64_t mixed;
  uint64_t first;   // its high bits choose the first slot
  uint64_t second;  // chooses the others: in the high half from the low half of `first`
};
static_assert(FuseHash::kMixMultiplier * FuseHash::kMixInverse == 1);

// Three blocks of equal size, one slot in each (Graf and Lemire 2020, section 3).
struct XorLayout {
  static constexpr int kArity = 3;
  static constexpr bool kIsLocal = false;  // the slots of a key lie anywhere
  uint64_t block_slots = 0;  // 0 where there are no keys

  constexpr uint64_t Slots() const { return kArity * block_slots; }
  // Where the slots of keys lie that are next to each other in the order of their first slots.
  constexpr uint64_t NeighbourSlots() const { return Slots(); }
  // The first slot lies in [0, FirstSlots()).
  constexpr uint64_t FirstSlots() const { return block_slots; }
  constexpr uint64_t FirstSlot(const FuseHash& hash) const {
    return FastRange64(hash.first, block_slots);
  }
  constexpr std::array<uint64_t, kArity> SlotsOf(const FuseHash& hash) const {
    return {FirstSlot(hash), block_slots + FastRange64(hash.second, block_slots),
            2 * block_slots + FastRange64(ThirdHash(hash), block_slots)};
  }
  // The half of `second` that the second slot hardly depends on, and below it what blocks of more
  // than 2^32 slots need.
  static constexpr uint64_t ThirdHash(const FuseHash& hash) {
    return hash.second << 32 | (hash.mixed & 0xffffffff);
  }
  bool operator==(const XorLayout&) const = default;
};

// Consecutive segments of 2^k slots: one slot in each of kArity neighbouring ones (Graf and Lemire
// 2022, section 3).
template <int kSlotsPerKey>
struct FuseLayout {
  static constexpr int kArity = kSlotsPerKey;
  static constexpr bool kIsLocal = true;  // the slots of a key lie near each other
  static constexpr int kMaxLog2SegmentSlots = 18;

  uint64_t first_slots = 0;    // the segments that a key may start in; 0 where there are no keys
  uint64_t segment_slots = 0;  // a power of two

  constexpr uint64_t Slots() const {
    return first_slots == 0 ? 0 : first_slots + (kArity - 1) * segment_slots;
  }
  constexpr uint64_t NeighbourSlots() const { return kArity * segment_slots; }
  constexpr uint64_t FirstSlots() const { return first_slots; }
  constexpr uint64_t FirstSlot(const FuseHash& hash) const {
    return FastRange64(hash.first, first_slots);
  }

  // Shift of the bits of `second` that displace slot i from the first one, within its segment.
  // Slot 0 has the displacement 0.
  static constexpr int DisplacementShift(int i) { return 64 - kMaxLog2SegmentSlots * i; }
  constexpr std::array<uint64_t, kArity> SlotsOf(const FuseHash& hash) const {
    std::array<uint64_t, kArity> slots{FirstSlot(hash)};
    for (int i = 1; i < kArity; ++i) {
      const uint64_t displacement = hash.second >> DisplacementShift(i) & (segment_slots - 1);
      slots[i] = (slots[0] + i * segment_slots) ^ displacement;
    }
    return slots;
  }
  bool operator==(const FuseLayout&) const = default;
};

// All that a lookup needs. T is the type of a fingerprint.
template <class LayoutType, class T>
struct FingerprintView {
  using Layout = LayoutType;
  using Fingerprint = T;
  const T* table;
  Layout layout;
  uint64_t salt;
  bool prefetch;  // batched lookups prefetch their lines first

  bool MayContain(uint64_t hash) const noexcept {
    const FuseHash fuse_hash(FuseHash::Mix(hash, salt));
    T sum = fuse_hash.template Fingerprint<T>();
    for (const uint64_t slot : layout.SlotsOf(fuse_hash)) sum ^= table[slot];
    return sum == 0;
  }
};

// The view of a filter without keys: answers no, which no table would.
struct NoFingerprints {
  static constexpr bool prefetch = false;
  bool MayContain(uint64_t) const noexcept { return false; }
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_FUSE_POSITIONS_H_
