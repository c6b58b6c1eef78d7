#include "filters/cuckoo/cuckoo.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "filters/theory/cuckoo.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr uint64_t kMaxAttempts = Cuckoo::kSeedsPerSize * Cuckoo::kSizes;
constexpr double kTheoryLoad = 0.95;

// Attempts of one seed get salts without relation to each other or to those of the next seed.
uint64_t SaltOf(uint64_t seed, uint64_t attempt) { return Mix64(Mix64(seed) + attempt); }

// What changes a table with tags of kBits bits.
template <int kBits>
class CuckooWriter {
  using Bucket = CuckooBucket<kBits>;
  using Place = Cuckoo::Place;

 public:
  CuckooWriter(std::byte* table, uint64_t buckets, uint64_t salt)
      : table_(table), buckets_(buckets), salt_(salt) {}

  Place PlaceOf(uint64_t hash) const { return Cuckoo::PlaceOf<kBits>(hash, salt_, buckets_); }
  void Prefetch(const Place& place) const {
    __builtin_prefetch(At(place.bucket), 1);
    __builtin_prefetch(At(place.partner), 1);
  }

  bool Contains(const Place& place) const {
    return (Bucket::SlotsWith(Read(place.bucket), place.tag) |
            Bucket::SlotsWith(Read(place.partner), place.tag)) != 0;
  }

  // Into the emptier of the two buckets, which leaves fewer buckets full than taking the first;
  // where both are full, by moving others. False, and nothing changed, if that fails.
  bool Insert(const Place& place) {
    const uint64_t first_free = Bucket::FreeSlots(Read(place.bucket));
    const uint64_t second_free = Bucket::FreeSlots(Read(place.partner));
    if ((first_free | second_free) == 0) return InsertByMoving(place);
    const bool to_second = std::popcount(second_free) > std::popcount(first_free);
    Write(to_second ? place.partner : place.bucket,
          Bucket::FirstSlot(to_second ? second_free : first_free), place.tag);
    return true;
  }

  bool Erase(const Place& place) {
    for (const uint64_t bucket : {place.bucket, place.partner}) {
      const uint64_t slots = Bucket::SlotsWith(Read(bucket), place.tag);
      if (slots != 0) {
        Write(bucket, Bucket::FirstSlot(slots), 0);
        return true;
      }
    }
    return false;
  }

 private:
  std::byte* At(uint64_t bucket) const { return table_ + bucket * Bucket::kBytes; }
  uint64_t Read(uint64_t bucket) const { return Bucket::Load(At(bucket)); }
  void Write(uint64_t bucket, int slot, uint64_t tag) {
    Bucket::Store(At(bucket), Bucket::WithTag(Read(bucket), slot, tag));
  }

  // Breadth-first search for a bucket with a free slot, from both buckets of `place` along the
  // partners of the tags in them (as MemC3 and libcuckoo do for hash tables: Li, Andersen,
  // Kaminsky, Freedman, "Algorithmic Improvements for Fast Concurrent Cuckoo Hashing", 2014). It
  // finds the shortest chain of moves, and finds it before anything is moved: a search that fails
  // leaves the table as it was.
  bool InsertByMoving(const Place& place) {
    // A bucket that is reached by moving the tag in `slot` of the bucket at `parent`.
    struct Reached {
      uint64_t bucket;
      uint16_t parent;
      uint16_t slot;
    };
    static_assert(Cuckoo::kMaxSearchedBuckets <= UINT16_MAX);
    constexpr uint16_t kNoParent = UINT16_MAX;
    Reached reached[Cuckoo::kMaxSearchedBuckets];
    size_t count = 0;
    // Every bucket once: a chain that visits a bucket twice could move one tag twice.
    const auto reach = [&](uint64_t bucket, size_t parent, int slot) {
      if (count == Cuckoo::kMaxSearchedBuckets) return;
      for (size_t i = 0; i < count; ++i) {
        if (reached[i].bucket == bucket) return;
      }
      __builtin_prefetch(At(bucket), 1);
      reached[count++] = {bucket, static_cast<uint16_t>(parent), static_cast<uint16_t>(slot)};
    };
    reach(place.bucket, kNoParent, 0);
    reach(place.partner, kNoParent, 0);

    size_t checked = count;  // those before it are full
    for (size_t expanded = 0; expanded < count; ++expanded) {
      const uint64_t bucket = reached[expanded].bucket;
      const uint64_t word = Read(bucket);
      for (int slot = 0; slot < Bucket::kSlots; ++slot) {
        reach(Cuckoo::Partner(bucket, Bucket::Tag(word, slot), buckets_), expanded, slot);
      }
      if (expanded == 0 && count > 1 && reached[1].parent == kNoParent) continue;
      for (; checked < count; ++checked) {
        const uint64_t free = Bucket::FreeSlots(Read(reached[checked].bucket));
        if (free == 0) continue;
        size_t at = checked;
        int slot = Bucket::FirstSlot(free);
        for (; reached[at].parent != kNoParent; at = reached[at].parent) {
          const Reached& step = reached[at];
          const uint64_t parent_word = Read(reached[step.parent].bucket);
          Write(step.bucket, slot, Bucket::Tag(parent_word, step.slot));
          slot = step.slot;
        }
        Write(reached[at].bucket, slot, place.tag);
        return true;
      }
    }
    return false;
  }

  std::byte* table_;
  uint64_t buckets_;
  uint64_t salt_;
};

// Calls `use` with a writer for the filter's width of tags.
template <class Use>
decltype(auto) WithWriter(const Cuckoo::View& view, std::byte* table, Use&& use) {
  return view.Specialize([&]<class SizedView>(const SizedView& sized) {
    return use(CuckooWriter<SizedView::kTagBits>(table, sized.buckets, sized.salt));
  });
}

// Among `suspects`, hashes that were met while a tag like theirs was stored already, finds those
// that no earlier hash put there itself: each value once, in order. `hashes` holds all that were
// given; a value whose occurrences are all suspects was never stored.
class SuspectFinder {
 public:
  explicit SuspectFinder(std::span<const uint64_t> suspects) : suspects_(suspects) {}

  std::vector<uint64_t> NeverStored(std::span<const uint64_t> hashes) {
    if (suspects_.empty()) return {};
    entries_.resize(std::bit_ceil(2 * suspects_.size()));
    // A bit for each value, sixteen times as many bits as values: nearly all hashes that are not
    // suspects go no further.
    filter_.resize(std::bit_ceil(suspects_.size()) / 4 + 1);
    const uint64_t filter_bits = filter_.size() * 64;
    for (const uint64_t hash : suspects_) {
      const uint64_t bit = FastRange64(hash, filter_bits);
      filter_[bit / 64] |= uint64_t{1} << (bit % 64);
      ++EntryOf(hash).occurrences;
    }
    for (const uint64_t hash : hashes) {
      const uint64_t bit = FastRange64(hash, filter_bits);
      if ((filter_[bit / 64] >> (bit % 64) & 1) == 0) continue;
      Entry& entry = EntryOf(hash);
      if (entry.occurrences != 0) --entry.balance;
    }
    std::vector<uint64_t> never_stored;
    for (const uint64_t hash : suspects_) {
      Entry& entry = EntryOf(hash);
      if (entry.occurrences + entry.balance != 0) continue;
      never_stored.push_back(hash);
      entry.balance = 1;  // taken
    }
    return never_stored;
  }

  uint64_t bytes() const {
    return entries_.size() * sizeof(Entry) + filter_.size() * sizeof(uint64_t);
  }

 private:
  struct Entry {
    uint64_t hash;
    int64_t occurrences;  // among the suspects; 0: the entry is free
    int64_t balance;      // less one for each occurrence among all
  };

  Entry& EntryOf(uint64_t hash) {
    // Mixed, so that hashes that are not uniform make lookups here no slower.
    uint64_t i = FastRange64(Mix64(hash), entries_.size());
    while (entries_[i].occurrences != 0 && entries_[i].hash != hash) {
      i = (i + 1) & (entries_.size() - 1);
    }
    if (entries_[i].occurrences == 0) entries_[i].hash = hash;
    return entries_[i];
  }

  std::span<const uint64_t> suspects_;
  std::vector<Entry> entries_;
  std::vector<uint64_t> filter_;
};

}  // namespace

Cuckoo::Cuckoo(const Params& params, uint64_t buckets, uint64_t attempt, AlignedTable table)
    : params_(params),
      buckets_(buckets),
      attempt_(attempt),
      salt_(SaltOf(params.seed, attempt)),
      table_(std::move(table)) {
  report_ = {.attempts = attempt + 1,
             .distinct_keys = 0,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

uint64_t Cuckoo::BucketsFor(uint64_t n, double load) {
  const double buckets = std::ceil(static_cast<double>(n) / (kSlotsPerBucket * load));
  return static_cast<uint64_t>(std::clamp(buckets, 1.0, 0x1p56));
}

uint64_t Cuckoo::BucketBytes(FingerprintBits bits) {
  View view{};
  view.fingerprint_bits = bits;
  return view.Specialize(
      []<class SizedView>(const SizedView&) { return SizedView::Bucket::kBytes; });
}

Result<Cuckoo> Cuckoo::WithBuckets(uint64_t buckets, const Params& params) {
  const uint64_t bucket_bytes = BucketBytes(params.fingerprint_bits);
  if (buckets == 0) return Error{"buckets: must be at least 1, is 0"};
  if (buckets > kMaxTableBytes / bucket_bytes) {
    return Error{fmt::format("too large: needs {} bytes, limit {}",
                             static_cast<unsigned __int128>(buckets) * bucket_bytes,
                             kMaxTableBytes)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(buckets * bucket_bytes);
  if (!table) return Error{table.error()};
  return Cuckoo(params, buckets, 0, std::move(*table));
}

Result<Cuckoo> Cuckoo::Create(uint64_t keys, const Params& params) {
  return WithBuckets(BucketsFor(keys, params.load), params);
}

Result<Cuckoo> Cuckoo::Build(std::span<const uint64_t> hashes, const Params& params) {
  uint64_t buckets = BucketsFor(hashes.size(), params.load);
  uint64_t last_buckets = buckets;
  double best_load = 0;
  bool sized_for_distinct = false;
  uint64_t peak_bytes = 0;
  uint64_t attempt = 0;
  while (attempt < kMaxAttempts) {
    Result<Cuckoo> filter = WithBuckets(buckets, params);
    if (!filter) return filter;
    bool filled = false;
    const uint64_t end_of_size = (attempt / kSeedsPerSize + 1) * kSeedsPerSize;
    for (; !filled && attempt < end_of_size; ++attempt) {
      filter->Restart(attempt);
      filled = filter->Fill(hashes);
      best_load = std::max(best_load, filter->Load());
    }
    last_buckets = buckets;
    peak_bytes = std::max(peak_bytes, filter->report_.peak_bytes);
    filter->report_.peak_bytes = peak_bytes;
    if (!filled) {
      buckets += std::max<uint64_t>(1, buckets / 100);
      continue;
    }
    // Repeated hashes asked for too large a table: once more with the number that is known now, so
    // that the size follows from the distinct keys.
    const uint64_t needed = BucketsFor(filter->stored_, params.load);
    if (needed >= filter->buckets_ || sized_for_distinct) return filter;
    if (filter->stored_ == hashes.size()) return filter;  // grown because attempts failed
    sized_for_distinct = true;
    buckets = needed;
    attempt = 0;
  }
  return Error{fmt::format("a key found no free slot in {} attempts with up to {} buckets: load "
                           "reached {:.4f}",
                           kMaxAttempts, last_buckets, best_load)};
}

void Cuckoo::Restart(uint64_t attempt) {
  if (stored_ != 0) std::fill_n(table_.data(), table_.size(), std::byte{0});
  stored_ = 0;
  attempt_ = attempt;
  salt_ = SaltOf(params_.seed, attempt);
  report_.attempts = attempt + 1;
}

bool Cuckoo::Fill(std::span<const uint64_t> hashes) {
  return WithWriter(view(), table_.data(), [&]<class Writer>(Writer writer) {
    // A hash that comes again finds its own tag stored; so do the few others that share a tag and
    // a bucket with an earlier hash. They are set aside and told apart at the end.
    std::vector<uint64_t> suspects;
    const auto insert = [&](const Place& place) {
      const bool inserted = writer.Insert(place);
      stored_ += inserted ? 1 : 0;
      return inserted;
    };

    constexpr size_t kAhead = 32;
    Place ahead[kAhead];
    const size_t n = hashes.size();
    const bool prefetch = PrefetchPays(table_.size());
    for (size_t i = 0; i < std::min(kAhead, n); ++i) {
      ahead[i] = writer.PlaceOf(hashes[i]);
      if (prefetch) writer.Prefetch(ahead[i]);
    }
    for (size_t i = 0; i < n; ++i) {
      const Place place = ahead[i % kAhead];
      if (i + kAhead < n) {
        ahead[i % kAhead] = writer.PlaceOf(hashes[i + kAhead]);
        if (prefetch) writer.Prefetch(ahead[i % kAhead]);
      }
      if (writer.Contains(place)) {
        suspects.push_back(hashes[i]);
      } else if (!insert(place)) {
        return false;
      }
    }

    SuspectFinder finder(suspects);
    const std::vector<uint64_t> late = finder.NeverStored(hashes);
    report_.peak_bytes = std::max(
        report_.peak_bytes, AllocatedBytes() + finder.bytes() +
                                (suspects.capacity() + late.capacity()) * sizeof(uint64_t));
    for (const uint64_t hash : late) {
      if (!insert(writer.PlaceOf(hash))) return false;
    }
    report_.distinct_keys = stored_;
    return true;
  });
}

InsertStatus Cuckoo::Insert(uint64_t hash) {
  const bool inserted = WithWriter(view(), table_.data(), [&](auto writer) {
    return writer.Insert(writer.PlaceOf(hash));
  });
  stored_ += inserted ? 1 : 0;
  return inserted ? InsertStatus::kOk : InsertStatus::kFull;
}

EraseStatus Cuckoo::Erase(uint64_t hash) {
  const bool erased = WithWriter(view(), table_.data(), [&](auto writer) {
    return writer.Erase(writer.PlaceOf(hash));
  });
  stored_ -= erased ? 1 : 0;
  return erased ? EraseStatus::kOk : EraseStatus::kNotFound;
}

double Cuckoo::Load() const {
  return static_cast<double>(stored_) / static_cast<double>(buckets_ * kSlotsPerBucket);
}

Details Cuckoo::GetDetails() const {
  return {{"load", Load()},
          {"slots", static_cast<double>(buckets_ * kSlotsPerBucket)},
          {"buckets", static_cast<double>(buckets_)},
          {"stored", static_cast<double>(stored_)}};
}

std::optional<FprEstimate> Cuckoo::ExpectedFpr() const {
  const uint64_t bucket_bits = BucketBytes(params_.fingerprint_bits) * 8;
  const int tag_bits = static_cast<int>(bucket_bits / kSlotsPerBucket);
  return theory::CuckooFpr(stored_, buckets_, tag_bits);
}

std::optional<double> Cuckoo::TheoryFpr(double bits_per_key) {
  return theory::CuckooFpr(bits_per_key * kTheoryLoad, kTheoryLoad);
}

std::vector<std::byte> Cuckoo::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<Cuckoo>(writer, params_);
  writer.U64(buckets_).U64(attempt_).U64(stored_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<Cuckoo> Cuckoo::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<Cuckoo>(reader);
  const uint64_t bucket_bytes = BucketBytes(params.fingerprint_bits);
  const uint64_t buckets = reader.U64("buckets", 1, kMaxTableBytes / bucket_bytes);
  const uint64_t attempt = reader.U64("attempt", 0, kMaxAttempts - 1);
  const uint64_t stored = reader.U64("stored", 0, buckets * kSlotsPerBucket);
  AlignedTable table = reader.Table("table", buckets * bucket_bytes);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};

  Cuckoo filter(params, buckets, attempt, std::move(table));
  const uint64_t taken = filter.view().Specialize([&]<class SizedView>(const SizedView& view) {
    using Bucket = typename SizedView::Bucket;
    uint64_t taken_slots = 0;
    for (uint64_t i = 0; i < buckets; ++i) {
      const uint64_t word = Bucket::Load(view.table + i * Bucket::kBytes);
      taken_slots += std::popcount(Bucket::NonZeroSlots(word) & Bucket::kHighestBits);
    }
    return taken_slots;
  });
  if (taken != stored) {
    reader.Refuse("stored", fmt::format("is {}, the table holds {} tags", stored, taken));
    return Error{reader.error()};
  }
  filter.stored_ = stored;
  filter.report_.distinct_keys = stored;
  return filter;
}

}  // namespace filterbench
