#ifndef FILTERBENCH_FILTERS_QUOTIENT_BUILD_H_
#define FILTERBENCH_FILTERS_QUOTIENT_BUILD_H_

// Building what the quotient and prefix filters have in common: each distinct hash is stored once,
// by single insertions, and where one finds no room another seed or a larger table is tried.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "filters/out_of_memory.h"
#include "filters/result.h"

namespace filterbench {

// Attempts of one seed get salts without relation to each other or to those of the next seed.
constexpr uint64_t QuotientSalt(uint64_t seed, uint64_t attempt) {
  return Mix64(Mix64(seed) + attempt);
}

// One multiplication, so that hashes in a row neither share a block nor leave one empty: high bits
// choose the place and low bits the fingerprint.
constexpr uint64_t QuotientMix(uint64_t hash, uint64_t salt) {
  return (hash ^ salt) * kGoldenGamma;
}

// Two seeds for each size, then a table for 1/32 more keys.
inline constexpr uint64_t kQuotientSeedsPerSize = 2;
inline constexpr uint64_t kQuotientSizes = 16;
inline constexpr uint64_t kQuotientAttempts = kQuotientSeedsPerSize * kQuotientSizes;

// The number of keys that the table of an attempt is made for; no overflow below 2^62 keys.
constexpr uint64_t KeysOfAttempt(uint64_t keys, uint64_t attempt) {
  return keys + attempt / kQuotientSeedsPerSize * (keys / 32 + 1);
}

// `suspects` are hashes that met a fingerprint like theirs when their turn came. Those that no
// earlier occurrence put there, each once, in order: all occurrences of such a hash are suspects.
// Sorts `suspects` and adds to `bytes` what this takes.
inline std::vector<uint64_t> NeverStored(std::vector<uint64_t>& suspects,
                                         std::span<const uint64_t> hashes, uint64_t& bytes) {
  if (suspects.empty()) return {};
  struct Entry {
    uint64_t hash;
    uint64_t stored_or_later;  // occurrences that were no suspects
  };
  std::ranges::sort(suspects);
  std::vector<Entry> entries;
  // Sixteen bits for each suspect, so that nearly all other hashes go no further.
  std::vector<uint64_t> marks(suspects.size() / 4 + 1);
  const uint64_t mark_bits = marks.size() * 64;
  for (const uint64_t hash : suspects) {
    if (!entries.empty() && entries.back().hash == hash) {
      --entries.back().stored_or_later;  // modulo 2^64, until all occurrences are counted
      continue;
    }
    entries.push_back({hash, ~uint64_t{0}});
    const uint64_t bit = FastRange64(Mix64(hash), mark_bits);
    marks[bit / 64] |= uint64_t{1} << (bit % 64);
  }
  for (const uint64_t hash : hashes) {
    const uint64_t bit = FastRange64(Mix64(hash), mark_bits);
    if ((marks[bit / 64] >> (bit % 64) & 1) == 0) continue;
    const auto entry = std::ranges::lower_bound(entries, hash, {}, &Entry::hash);
    if (entry != entries.end() && entry->hash == hash) ++entry->stored_or_later;
  }
  std::vector<uint64_t> never_stored;
  for (const Entry& entry : entries) {
    if (entry.stored_or_later == 0) never_stored.push_back(entry.hash);
  }
  bytes += marks.size() * sizeof(uint64_t) + entries.capacity() * sizeof(Entry) +
           never_stored.capacity() * sizeof(uint64_t);
  return never_stored;
}

// Stores each distinct hash once; false if one found no room. `Writer` has PlaceOf(hash),
// Prefetch(place), Contains(place) and Insert(place), which says whether there was room. Adds to
// `stored` the number of keys that had room, and to `bytes` the most that was held at once.
template <class Writer>
bool InsertDistinct(const Writer& writer, std::span<const uint64_t> hashes, bool prefetch,
                    uint64_t& stored, uint64_t& bytes) {
  // A hash that comes again finds its own fingerprint; so do the few that share the fingerprint of
  // another one. They are told apart at the end.
  std::vector<uint64_t> suspects;
  constexpr size_t kAhead = 32;
  decltype(writer.PlaceOf(0)) ahead[kAhead] = {};
  const size_t n = hashes.size();
  const auto look_ahead = [&](size_t i) {
    if (i >= n) return;
    ahead[i % kAhead] = writer.PlaceOf(hashes[i]);
    if (prefetch) writer.Prefetch(ahead[i % kAhead]);
  };
  for (size_t i = 0; i < kAhead; ++i) look_ahead(i);
  for (size_t i = 0; i < n; ++i) {
    const auto place = ahead[i % kAhead];
    look_ahead(i + kAhead);
    if (writer.Contains(place)) {
      suspects.push_back(hashes[i]);
    } else if (!writer.Insert(place)) {
      return false;
    } else {
      ++stored;
    }
  }
  bytes += suspects.capacity() * sizeof(uint64_t);
  for (const uint64_t hash : NeverStored(suspects, hashes, bytes)) {
    if (!writer.Insert(writer.PlaceOf(hash))) return false;
    ++stored;
  }
  return true;
}

// `create(keys, attempt)` makes an empty filter F for `keys` keys, `fill(filter, bytes)` stores the
// distinct ones of the given hashes and says whether all had room; `bytes` grows by what it held
// besides the filter. Where hashes repeat, the table is made once more for the number that is known
// then.
template <class F, class Create, class Fill>
Result<F> BuildByAttempts(uint64_t given_keys, const Create& create, const Fill& fill) try {
  uint64_t keys = given_keys;
  uint64_t peak_bytes = 0;
  for (uint64_t attempt = 0; attempt < kQuotientAttempts; ++attempt) {
    Result<F> filter = create(KeysOfAttempt(keys, attempt), attempt);
    if (!filter) return filter;
    uint64_t bytes = 0;
    const bool filled = fill(*filter, bytes);
    peak_bytes = std::max(peak_bytes, filter->AllocatedBytes() + bytes);
    if (!filled) continue;
    const uint64_t stored = filter->stored();
    if (keys == given_keys && stored < keys - keys / 64) {
      keys = stored;
      attempt = ~uint64_t{0};  // the next one is the first again
      continue;
    }
    filter->SetReport({attempt + 1, stored, peak_bytes});
    return filter;
  }
  return Error{fmt::format("a key found no room in {} attempts with tables for up to {} keys",
                           kQuotientAttempts, KeysOfAttempt(keys, kQuotientAttempts - 1))};
} catch (const std::bad_alloc&) {
  return Error{kOutOfMemory};
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_QUOTIENT_BUILD_H_
