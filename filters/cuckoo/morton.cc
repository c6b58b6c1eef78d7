#include "filters/cuckoo/morton.h"

#include <fmt/format.h>

#include <cmath>

#include "filters/cuckoo/tag_filter-inl.h"
#include "filters/theory/cuckoo.h"

namespace filterbench {
namespace {

constexpr double kTheoryLoad = 0.95;
// The share of stored tags whose other bucket has overflowed, at that load: measured.
constexpr double kTheoryOverflow = 0.17;

// What changes a table of blocks.
template <class View>
class MortonWriter {
  using Block = typename View::Block;

 public:
  using Place = CuckooPlace;
  // Buckets that an insertion looks at before it gives up.
  static constexpr size_t kMaxSearchedBuckets = 1024;

  MortonWriter(const View& view, std::byte* table) : view_(view), table_(table) {}

  Place PlaceOf(uint64_t hash) const { return view_.PlaceOf(hash); }
  // The second line is needed for few keys.
  void Prefetch(const Place& place) const { __builtin_prefetch(BlockOf(place.bucket), 1); }

  bool Contains(const Place& place) const { return view_.MayContain(place.tag, place.bucket); }

  // Into the first bucket if there is room, which keeps lookups in one line; else into the second
  // one; where neither has room, by moving others.
  bool Insert(const Place& place) {
    for (const uint64_t bucket : {place.bucket, place.partner}) {
      if (!HasRoom(bucket)) continue;
      AddKey(place, bucket);
      return true;
    }
    return InsertByMoving(place);
  }

  bool Erase(const Place& place) {
    if (EraseFrom(place.bucket, place.tag)) return true;
    return Block::Overflowed(BlockOf(place.bucket), View::InBlock(place.bucket)) &&
           EraseFrom(place.partner, place.tag);
  }

 private:
  std::byte* BlockOf(uint64_t bucket) const {
    return table_ + bucket / Block::kBuckets * Block::kBytes;
  }
  bool HasRoom(uint64_t bucket) const {
    return Block::HasRoom(BlockOf(bucket), View::InBlock(bucket));
  }
  void Add(uint64_t bucket, uint64_t tag) {
    Block::Add(BlockOf(bucket), View::InBlock(bucket), tag);
  }
  void AddKey(const Place& place, uint64_t bucket) {
    Add(bucket, place.tag);
    if (bucket != place.bucket) SetOverflowed(place.bucket);
  }
  void SetOverflowed(uint64_t bucket) {
    Block::SetOverflowed(BlockOf(bucket), View::InBlock(bucket));
  }
  bool EraseFrom(uint64_t bucket, uint64_t tag) {
    const int slot = Block::Find(BlockOf(bucket), View::InBlock(bucket), tag);
    if (slot >= 0) Block::Remove(BlockOf(bucket), View::InBlock(bucket), slot);
    return slot >= 0;
  }

  // Breadth-first search for a bucket with room, from both buckets of `place`: where a bucket is
  // full one of its tags has to leave, where only its block is full any tag of the block. As in
  // pair_writer-inl.h nothing is moved before a chain of moves is found, and it is the shortest
  // one.
  bool InsertByMoving(const Place& place) {
    // A bucket that `tag`, stored in the bucket `from`, may move to, so that the one at `parent`
    // gets room.
    struct Reached {
      uint64_t bucket;
      uint64_t from;
      uint64_t tag;
      uint64_t parent;
    };
    constexpr uint64_t kNoParent = kMaxSearchedBuckets;
    Reached reached[kMaxSearchedBuckets];
    size_t count = 0;
    // Every bucket once: since the bucket that a tag comes from and the tag say where it goes, a
    // chain then moves no tag twice. Buckets share bits of the set where the table is larger than
    // it; a few are then passed over.
    constexpr size_t kSetWords = kMaxSearchedBuckets / 8;
    uint64_t seen[kSetWords] = {};
    const auto reach = [&](const Reached& step) {
      uint64_t& word = seen[step.bucket / 64 % kSetWords];
      const uint64_t bit = uint64_t{1} << (step.bucket % 64);
      if ((word & bit) != 0 || count == kMaxSearchedBuckets) return;
      word |= bit;
      __builtin_prefetch(BlockOf(step.bucket), 1);
      reached[count++] = step;
    };
    reach({place.bucket, 0, 0, kNoParent});
    reach({place.partner, 0, 0, kNoParent});

    size_t checked = count;  // those before it have no room
    for (size_t expanded = 0; expanded < count; ++expanded) {
      const uint64_t bucket = reached[expanded].bucket;
      const std::byte* block = BlockOf(bucket);
      const int in_block = View::InBlock(bucket);
      const bool bucket_is_full = Block::Count(block, in_block) == Block::kBucketSlots;
      const int end = bucket_is_full ? in_block + 1 : Block::kBuckets;
      int slot = bucket_is_full ? Block::CountBefore(block, in_block) : 0;
      for (int from = bucket_is_full ? in_block : 0; from < end; ++from) {
        for (const int last = slot + Block::Count(block, from); slot < last; ++slot) {
          const uint64_t tag = Block::Tag(block, slot);
          const uint64_t from_bucket = bucket - in_block + from;
          reach({view_.PartnerOf(from_bucket, tag), from_bucket, tag, expanded});
        }
      }
      for (; checked < count; ++checked) {
        if (!HasRoom(reached[checked].bucket)) continue;
        size_t at = checked;
        for (; reached[at].parent != kNoParent; at = reached[at].parent) {
          const Reached& step = reached[at];
          Add(step.bucket, step.tag);
          EraseFrom(step.from, step.tag);
          // Whether it was the first bucket of that key nobody knows.
          SetOverflowed(step.from);
        }
        AddKey(place, reached[at].bucket);
        return true;
      }
    }
    return false;
  }

  const View view_;
  std::byte* const table_;
};

// What the table says of second lookups, counted in blocks at even distances.
struct Overflow {
  double of_tags;        // share of stored tags whose other bucket has its overflow bit set
  double of_tags_error;  // its standard deviation, where not all blocks are counted
  double of_buckets;     // share of the buckets with the bit set
};

Overflow CountOverflow(const MortonScheme::View& any_view) {
  constexpr uint64_t kMaxBlocks = uint64_t{1} << 16;
  return any_view.Specialize([&]<class V>(const V& view) -> Overflow {
    using Block = typename V::Block;
    const uint64_t blocks = std::min(any_view.blocks, kMaxBlocks);
    uint64_t tags = 0;
    uint64_t overflowed_tags = 0;
    uint64_t overflowed_buckets = 0;
    for (uint64_t i = 0; i < blocks; ++i) {
      const uint64_t index =
          static_cast<uint64_t>(static_cast<unsigned __int128>(i) * any_view.blocks / blocks);
      const std::byte* block = view.table + index * Block::kBytes;
      int slot = 0;
      for (int in_block = 0; in_block < Block::kBuckets; ++in_block) {
        overflowed_buckets += Block::Overflowed(block, in_block) ? 1 : 0;
        for (const int last = slot + Block::Count(block, in_block); slot < last; ++slot) {
          const uint64_t bucket = index * Block::kBuckets + in_block;
          const uint64_t partner = view.PartnerOf(bucket, Block::Tag(block, slot));
          overflowed_tags += Block::Overflowed(view.BlockOf(partner), V::InBlock(partner)) ? 1 : 0;
          ++tags;
        }
      }
    }
    const double counted = static_cast<double>(std::max<uint64_t>(tags, 1));
    const double share = static_cast<double>(overflowed_tags) / counted;
    const double error = blocks == any_view.blocks ? 0 : std::sqrt(share * (1 - share) / counted);
    return {
        share, error,
        static_cast<double>(overflowed_buckets) / static_cast<double>(blocks * Block::kBuckets)};
  });
}

}  // namespace

uint64_t MortonScheme::UnitsFor(uint64_t n, const Params& params) {
  return UnitsAtLoad(static_cast<double>(n), static_cast<double>(SlotsPerUnit(params)),
                     params.load);
}

uint64_t MortonScheme::UnitsToInsert(uint64_t n, const Params& params) {
  // Blocks are so large that even one of them holds this share of its slots.
  constexpr double kSafeLoad = 0.96;
  Params safe = params;
  safe.load = std::min(params.load, kSafeLoad);
  return UnitsFor(n, safe);
}

template <class Use>
decltype(auto) MortonScheme::WithWriter(const View& view, std::byte* table, Use&& use) {
  return view.Specialize(
      [&]<class V>(const V& sized) { return use(MortonWriter<V>(sized, table)); });
}

Result<uint64_t> MortonScheme::CountTags(const View& view) {
  return view.Specialize([&]<class V>(const V& sized) -> Result<uint64_t> {
    using Block = typename V::Block;
    uint64_t tags = 0;
    for (uint64_t i = 0; i < view.blocks; ++i) {
      const std::byte* block = sized.table + i * Block::kBytes;
      const int count = Block::CountAll(block);
      if (count > Block::kSlots) {
        return Error{
            fmt::format("block {} counts {} tags, its limit is {}", i, count, Block::kSlots)};
      }
      for (int slot = 0; slot < Block::kSlots; ++slot) {
        if ((Block::Tag(block, slot) != 0) != (slot < count)) {
          return Error{fmt::format("slot {} of block {} is {}", slot, i,
                                   slot < count ? "empty" : "taken, but no bucket counts it")};
        }
      }
      tags += static_cast<uint64_t>(count);
    }
    return tags;
  });
}

FprEstimate MortonScheme::Fpr(const View& view, uint64_t stored) {
  const Overflow overflow = CountOverflow(view);
  return view.Specialize([&]<class V>(const V& sized) {
    return theory::MortonFpr(stored, sized.buckets, V::kTagBits, overflow.of_tags,
                             overflow.of_tags_error);
  });
}

std::optional<double> MortonScheme::TheoryFpr(double bits_per_key) {
  // Of a block of `slots` tags as many bits are left for each as counters and overflow bits leave;
  // there are 64 buckets for 46 slots, as in the paper.
  constexpr double kBucketsPerSlot = 64.0 / 46.0;
  const double slots = 512 / (bits_per_key * kTheoryLoad);
  const double tag_bits = (512 - 16 - 2 * kBucketsPerSlot * slots) / slots;
  if (tag_bits < 1) return std::nullopt;
  return theory::MortonFpr(tag_bits, kTheoryLoad / kBucketsPerSlot, kTheoryOverflow);
}

void MortonScheme::AddDetails(const View& view, uint64_t, Details& details) {
  const Overflow overflow = CountOverflow(view);
  details.push_back({"second_lookups", overflow.of_buckets});
  details.push_back({"overflow_of_tags", overflow.of_tags});
}

template class TagFilter<MortonScheme>;

}  // namespace filterbench
