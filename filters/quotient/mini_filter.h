#ifndef FILTERBENCH_FILTERS_QUOTIENT_MINI_FILTER_H_
#define FILTERBENCH_FILTERS_QUOTIENT_MINI_FILTER_H_

// The mini-filters of a vector quotient filter: a quotient filter in one cache line, and a table of
// them in which a key has two. Shared by VectorQuotient and by the spare of PrefixFilter.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "filters/hash.h"
#include "filters/quotient/build.h"
#include "filters/quotient/select.h"

namespace filterbench {

static_assert(std::endian::native == std::endian::little,
              "metadata is read as little-endian words, so that tables are the same everywhere");

// A block of 64 bytes: metadata, then remainders of kBits bits in the order of their buckets.
//
// The metadata say in unary how many keys each bucket has: a 1 for each key, then a 0 that ends the
// bucket. So the bits below the end of bucket b are b zeros and as many ones as keys lie in the
// buckets 0 to b. After the end of the last bucket all bits are 0: a block of zeros is empty (the
// paper's bits are the complement of these). Remainders behind the last key are 0.
template <int kBits>
struct MiniFilter {
  static_assert(kBits == 8 || kBits == 16);
  static constexpr uint64_t kBytes = 64;
  // The paper's sizes (section 4): the buckets that let FPR and space be least, and fit the line.
  static constexpr int kSlots = kBits == 8 ? 48 : 28;
  static constexpr int kBuckets = kBits == 8 ? 80 : 36;
  using Metadata = std::conditional_t<kBits == 8, unsigned __int128, uint64_t>;
  using Remainder = std::conditional_t<kBits == 8, uint8_t, uint16_t>;
  static constexpr uint64_t kMetadataBytes = sizeof(Metadata);
  static_assert(kSlots + kBuckets == 8 * kMetadataBytes, "all bits are used");
  static_assert(kMetadataBytes + kSlots * sizeof(Remainder) == kBytes, "all bytes are used");

  // What a block stores of a key: bucket and remainder in one number, uniform below kTags.
  static constexpr uint64_t kTags = uint64_t{kBuckets} << kBits;
  static constexpr int Bucket(uint64_t tag) { return static_cast<int>(tag >> kBits); }

  static Metadata Load(const std::byte* block) {
    Metadata metadata;
    std::memcpy(&metadata, block, sizeof(metadata));
    return metadata;
  }
  static Remainder LoadRemainder(const std::byte* block, int slot) {
    Remainder remainder;
    std::memcpy(&remainder, block + kMetadataBytes + slot * sizeof(remainder), sizeof(remainder));
    return remainder;
  }
  static int Count(Metadata metadata) {
    if constexpr (kBits == 8) {
      return std::popcount(static_cast<uint64_t>(metadata)) +
             std::popcount(static_cast<uint64_t>(metadata >> 64));
    } else {
      return std::popcount(metadata);
    }
  }
  // The position of the 0 that ends a bucket.
  static int EndOf(Metadata metadata, int bucket) {
    const auto low = ~static_cast<uint64_t>(metadata);
    if constexpr (kBits == 8) {
      const int in_low = std::popcount(low);
      if (bucket >= in_low) {
        return 64 + Select64(~static_cast<uint64_t>(metadata >> 64), bucket - in_low);
      }
    }
    return Select64(low, bucket);
  }

  // The slot of a key with this tag, -1 if there is none.
  static int Find(const std::byte* block, uint64_t tag) {
    const Metadata metadata = Load(block);
    const int bucket = Bucket(tag);
    int position = bucket == 0 ? 0 : EndOf(metadata, bucket - 1) + 1;
    for (; (metadata >> position & 1) != 0; ++position) {
      const int slot = position - bucket;
      if (LoadRemainder(block, slot) == static_cast<Remainder>(tag)) return slot;
    }
    return -1;
  }

  // There must be a free slot.
  static void Insert(std::byte* block, uint64_t tag) {
    const Metadata metadata = Load(block);
    const int position = EndOf(metadata, Bucket(tag));
    const int slot = position - Bucket(tag);
    std::byte* const at = block + kMetadataBytes + slot * sizeof(Remainder);
    std::memmove(at + sizeof(Remainder), at, (Count(metadata) - slot) * sizeof(Remainder));
    const auto remainder = static_cast<Remainder>(tag);
    std::memcpy(at, &remainder, sizeof(remainder));
    const Metadata one = 1;
    const Metadata below = metadata & ((one << position) - 1);
    const Metadata above = metadata >> position << position;
    Store(block, below | one << position | above << 1);
  }

  // Whether there was a key with this tag; one such key is removed.
  static bool Erase(std::byte* block, uint64_t tag) {
    const int slot = Find(block, tag);
    if (slot < 0) return false;
    const Metadata metadata = Load(block);
    const int position = slot + Bucket(tag);
    std::byte* const at = block + kMetadataBytes + slot * sizeof(Remainder);
    const int last = Count(metadata) - 1;
    std::memmove(at, at + sizeof(Remainder), (last - slot) * sizeof(Remainder));
    std::memset(block + kMetadataBytes + last * sizeof(Remainder), 0, sizeof(Remainder));
    const Metadata one = 1;
    const Metadata below = metadata & ((one << position) - 1);
    const Metadata above = metadata >> position >> 1 << position;
    Store(block, below | above);
    return true;
  }

  // Whether Insert and Erase could have left these bytes, up to the order within buckets. Nothing
  // else may be asked: a lookup would leave the block.
  static bool IsConsistent(const std::byte* block) {
    const Metadata metadata = Load(block);
    const int count = Count(metadata);
    if (count > kSlots) return false;
    // The zeros below the last key are the number of its bucket.
    if (count != 0 && (metadata >> (count + kBuckets - 1)) != 0) return false;
    for (int slot = count; slot < kSlots; ++slot) {
      if (LoadRemainder(block, slot) != 0) return false;
    }
    return true;
  }

 private:
  static void Store(std::byte* block, Metadata metadata) {
    std::memcpy(block, &metadata, sizeof(metadata));
  }
};

// Where a key may lie.
struct MiniFilterPlace {
  uint64_t tag;
  uint64_t block;
  uint64_t partner;
};

inline constexpr uint64_t kMaxMiniFilters = uint64_t{1} << 31;  // 2^40 bits
inline constexpr uint32_t kMiniFilterPairMultiplier = 0x9e3779b1;  // odd, near 2^32 / golden ratio

// The other block of a tag in `block`. Keys are never moved, so that the second block could come
// from the hash alone; but then erasing a key could take an equal tag of another one that shares
// one block with it, and leave its own in a block where the other is not looked for. So both keys
// must have the same two blocks: the blocks of a tag add up to a number that follows from it,
// modulo `blocks`. That is an involution for every number of blocks, where the paper's XOR needs a
// power of two. A block may be its own partner: one key in `blocks` in the mean.
constexpr uint64_t MiniFilterPartner(uint64_t block, uint64_t tag, uint64_t blocks) {
  const uint64_t sum = static_cast<uint32_t>(tag * kMiniFilterPairMultiplier) * blocks >> 32;
  return sum - block + (sum < block ? blocks : 0);
}

// `blocks` mini-filters, each key in the emptier one of two.
template <int kBits>
struct MiniFilterTable {
  using Block = MiniFilter<kBits>;
  static constexpr int kRemainderBits = kBits;
  const std::byte* table;
  uint64_t blocks;  // 1 to kMaxMiniFilters
  uint64_t salt;
  bool prefetch;  // batched lookups prefetch their lines first

  MiniFilterPlace PlaceOf(uint64_t hash) const noexcept {
    const uint64_t mixed = QuotientMix(hash, salt);
    const uint64_t tag = static_cast<uint32_t>(mixed) * Block::kTags >> 32;
    const uint64_t block = FastRange64(mixed, blocks);
    return {tag, block, MiniFilterPartner(block, tag, blocks)};
  }
  bool Contains(const MiniFilterPlace& place) const noexcept {
    return Block::Find(table + place.block * Block::kBytes, place.tag) >= 0 ||
           Block::Find(table + place.partner * Block::kBytes, place.tag) >= 0;
  }
  bool MayContain(uint64_t hash) const noexcept { return Contains(PlaceOf(hash)); }

  // Empty if every block is consistent and all hold `stored` keys, else what is wrong.
  std::string WhatIsInconsistent(uint64_t stored) const {
    uint64_t found = 0;
    for (uint64_t i = 0; i < blocks; ++i) {
      const std::byte* block = table + i * Block::kBytes;
      if (!Block::IsConsistent(block)) return fmt::format("block {} is inconsistent", i);
      found += static_cast<uint64_t>(Block::Count(Block::Load(block)));
    }
    if (found == stored) return {};
    return fmt::format("holds {} keys, {} are stored", found, stored);
  }
};

// What changes such a table.
template <int kBits>
class MiniFilterWriter {
  using Block = MiniFilter<kBits>;

 public:
  MiniFilterWriter(std::byte* table, const MiniFilterTable<kBits>& view)
      : table_(table), view_(view) {}

  MiniFilterPlace PlaceOf(uint64_t hash) const { return view_.PlaceOf(hash); }
  void Prefetch(const MiniFilterPlace& place) const {
    __builtin_prefetch(At(place.block), 1);
    __builtin_prefetch(At(place.partner), 1);
  }
  bool Contains(const MiniFilterPlace& place) const { return view_.Contains(place); }

  // Into the emptier of the two blocks. False, and nothing changed, if both are full.
  bool Insert(const MiniFilterPlace& place) const {
    const int first = Block::Count(Block::Load(At(place.block)));
    const int second = Block::Count(Block::Load(At(place.partner)));
    if (first == Block::kSlots && second == Block::kSlots) return false;
    Block::Insert(At(second < first ? place.partner : place.block), place.tag);
    return true;
  }
  bool Erase(const MiniFilterPlace& place) const {
    return Block::Erase(At(place.block), place.tag) || Block::Erase(At(place.partner), place.tag);
  }

 private:
  std::byte* At(uint64_t block) const { return table_ + block * Block::kBytes; }

  std::byte* table_;
  MiniFilterTable<kBits> view_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_QUOTIENT_MINI_FILTER_H_
