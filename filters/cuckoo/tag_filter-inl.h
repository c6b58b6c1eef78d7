#ifndef FILTERBENCH_FILTERS_CUCKOO_TAG_FILTER_INL_H_
#define FILTERBENCH_FILTERS_CUCKOO_TAG_FILTER_INL_H_

// The definitions of tag_filter.h.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "filters/cuckoo/tag_filter.h"
#include "filters/out_of_memory.h"
#include "filters/wire.h"

namespace filterbench {

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

// Units of `slots` slots for n keys at that load.
inline uint64_t UnitsAtLoad(double n, double slots, double load) {
  return static_cast<uint64_t>(std::clamp(std::ceil(n / (slots * load)), 1.0, 0x1p56));
}

// How full keys that come one by one may fill a table without another seed to fall back on. The
// number of keys that fit varies by about its root: `threshold` - `margin` / sqrt(n), at most
// `safe`, both from simulations (create promises 99 %; they give 99.5 % or more).
struct InsertLoad {
  double safe;
  double threshold;
  double margin;
  double For(uint64_t n, double load) const {
    const double root = std::sqrt(static_cast<double>(std::max<uint64_t>(n, 1)));
    return std::max(0.05, std::min({load, safe, threshold - margin / root}));
  }
};

// Two buckets of four slots.
inline constexpr InsertLoad kFourSlotsInsertLoad = {0.96, 0.9804, 0.95};

// Attempts of one seed get salts without relation to each other or to those of the next seed.
inline uint64_t SaltOfAttempt(uint64_t seed, uint64_t attempt) {
  return Mix64(Mix64(seed) + attempt);
}

template <class Scheme>
TagFilter<Scheme>::TagFilter(const Params& params, uint64_t units, uint64_t attempt,
                             AlignedTable table)
    : params_(params),
      units_(units),
      attempt_(attempt),
      salt_(SaltOfAttempt(params.seed, attempt)),
      table_(std::move(table)) {
  report_ = {.attempts = attempt + 1,
             .distinct_keys = 0,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

template <class Scheme>
Result<TagFilter<Scheme>> TagFilter<Scheme>::WithUnits(uint64_t units, const Params& params) {
  const uint64_t unit_bytes = Scheme::UnitBytes(params);
  if (units > kMaxTableBytes / unit_bytes) {
    return Error{fmt::format("too large: needs {} bytes, limit {}",
                             static_cast<unsigned __int128>(units) * unit_bytes, kMaxTableBytes)};
  }
  if (units == 0 || !Scheme::AllowsUnits(units, params)) {
    return Error{fmt::format("{}: a table cannot have {}", Scheme::kUnits, units)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(units * unit_bytes);
  if (!table) return Error{table.error()};
  return TagFilter(params, units, 0, std::move(*table));
}

template <class Scheme>
Result<TagFilter<Scheme>> TagFilter<Scheme>::Create(uint64_t keys, const Params& params) {
  return WithUnits(Scheme::UnitsToInsert(keys, params), params);
}

template <class Scheme>
Result<TagFilter<Scheme>> TagFilter<Scheme>::Build(std::span<const uint64_t> hashes,
                                                   const Params& params) try {
  uint64_t units = Scheme::UnitsFor(hashes.size(), params);
  uint64_t last_units = units;
  double best_load = 0;
  bool sized_for_distinct = false;
  uint64_t peak_bytes = 0;
  uint64_t attempt = 0;
  while (attempt < kMaxAttempts) {
    Result<TagFilter> filter = WithUnits(units, params);
    if (!filter) return filter;
    bool filled = false;
    const uint64_t end_of_size = (attempt / kSeedsPerSize + 1) * kSeedsPerSize;
    for (; !filled && attempt < end_of_size; ++attempt) {
      filter->Restart(attempt);
      filled = filter->Fill(hashes);
      best_load = std::max(best_load, filter->Load());
    }
    last_units = units;
    peak_bytes = std::max(peak_bytes, filter->report_.peak_bytes);
    filter->report_.peak_bytes = peak_bytes;
    if (!filled) {
      units = Scheme::Grown(units, params);
      continue;
    }
    // Repeated hashes asked for too large a table: once more with the number that is known now, so
    // that the size follows from the distinct keys.
    const uint64_t needed = Scheme::UnitsFor(filter->stored_, params);
    if (needed >= filter->units_ || sized_for_distinct) return filter;
    if (filter->stored_ == hashes.size()) return filter;  // grown because attempts failed
    sized_for_distinct = true;
    units = needed;
    attempt = 0;
  }
  return Error{
      fmt::format("a key found no free slot in {} attempts with up to {} {}: load "
                  "reached {:.4f}",
                  kMaxAttempts, last_units, Scheme::kUnits, best_load)};
} catch (const std::bad_alloc&) {
  return Error{kOutOfMemory};
}

template <class Scheme>
void TagFilter<Scheme>::Restart(uint64_t attempt) {
  if (stored_ != 0) std::fill_n(table_.data(), table_.size(), std::byte{0});
  stored_ = 0;
  attempt_ = attempt;
  salt_ = SaltOfAttempt(params_.seed, attempt);
  report_.attempts = attempt + 1;
}

template <class Scheme>
bool TagFilter<Scheme>::Fill(std::span<const uint64_t> hashes) {
  return Scheme::WithWriter(view(), table_.data(), [&]<class Writer>(Writer writer) {
    using Place = typename Writer::Place;
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
    report_.peak_bytes = std::max(report_.peak_bytes,
                                  AllocatedBytes() + finder.bytes() +
                                      (suspects.capacity() + late.capacity()) * sizeof(uint64_t));
    for (const uint64_t hash : late) {
      if (!insert(writer.PlaceOf(hash))) return false;
    }
    report_.distinct_keys = stored_;
    return true;
  });
}

template <class Scheme>
InsertStatus TagFilter<Scheme>::Insert(uint64_t hash) {
  const bool inserted = Scheme::WithWriter(
      view(), table_.data(), [&](auto writer) { return writer.Insert(writer.PlaceOf(hash)); });
  stored_ += inserted ? 1 : 0;
  return inserted ? InsertStatus::kOk : InsertStatus::kFull;
}

template <class Scheme>
EraseStatus TagFilter<Scheme>::Erase(uint64_t hash) {
  const bool erased = Scheme::WithWriter(
      view(), table_.data(), [&](auto writer) { return writer.Erase(writer.PlaceOf(hash)); });
  stored_ -= erased ? 1 : 0;
  return erased ? EraseStatus::kOk : EraseStatus::kNotFound;
}

template <class Scheme>
Details TagFilter<Scheme>::GetDetails() const {
  Details details = {{"load", Load()},
                     {"slots", static_cast<double>(slots())},
                     {Scheme::kUnits, static_cast<double>(units_)},
                     {"stored", static_cast<double>(stored_)}};
  Scheme::AddDetails(view(), stored_, details);
  return details;
}

template <class Scheme>
std::optional<FprEstimate> TagFilter<Scheme>::ExpectedFpr() const {
  return Scheme::Fpr(view(), stored_);
}

template <class Scheme>
std::optional<double> TagFilter<Scheme>::TheoryFpr(double bits_per_key) {
  return Scheme::TheoryFpr(bits_per_key);
}

template <class Scheme>
std::vector<std::byte> TagFilter<Scheme>::Serialize() const {
  WireWriter writer(Scheme::kInfo.name, Scheme::kWireVersion);
  WriteParams<TagFilter>(writer, params_);
  writer.U64(units_).U64(attempt_).U64(stored_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

template <class Scheme>
Result<TagFilter<Scheme>> TagFilter<Scheme>::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, Scheme::kInfo.name, Scheme::kWireVersion);
  const Params params = ReadParams<TagFilter>(reader);
  const uint64_t unit_bytes = Scheme::UnitBytes(params);
  const uint64_t units = reader.U64(Scheme::kUnits, 1, kMaxTableBytes / unit_bytes);
  if (reader.ok() && !Scheme::AllowsUnits(units, params)) {
    reader.Refuse(Scheme::kUnits, fmt::format("a table cannot have {}", units));
  }
  const uint64_t attempt = reader.U64("attempt", 0, kMaxAttempts - 1);
  const uint64_t stored = reader.U64("stored", 0, units * Scheme::SlotsPerUnit(params));
  AlignedTable table = reader.Table("table", units * unit_bytes);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};

  TagFilter filter(params, units, attempt, std::move(table));
  const Result<uint64_t> taken = Scheme::CountTags(filter.view());
  if (!taken) {
    reader.Refuse("table", taken.error());
    return Error{reader.error()};
  }
  if (*taken != stored) {
    reader.Refuse("stored", fmt::format("is {}, the table holds {} tags", stored, *taken));
    return Error{reader.error()};
  }
  filter.stored_ = stored;
  filter.report_.distinct_keys = stored;
  return filter;
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CUCKOO_TAG_FILTER_INL_H_
