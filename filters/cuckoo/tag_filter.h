#ifndef FILTERBENCH_FILTERS_CUCKOO_TAG_FILTER_H_
#define FILTERBENCH_FILTERS_CUCKOO_TAG_FILTER_H_

// A filter that keeps a short tag of each key in one of a few slots and moves stored tags to make
// room. What the cuckoo filters share is here: sizes, seeds and retries, duplicates, the count of
// what is stored, the wire format. A `Scheme` says where a tag may lie and how it gets there:
//
//   kInfo, Params, kKnobs, View     as in filters/filter.h
//   kWireVersion                    of the fields below and of the table
//   kUnits                          what the table is made of: "buckets"
//   UnitBytes(params), SlotsPerUnit(params)
//   UnitsFor(n, params)             for a build of n keys, at least 1; any number up to 2^56
//   UnitsToInsert(n, params)        the same where keys come one by one and no seed can be replaced
//   Grown(units, params)            the next size where no seed worked
//   AllowsUnits(units, params)      whether a table may have this size
//   MakeView(params, table, units, salt, prefetch)
//   WithWriter(view, table, use)    calls `use` with what changes the table:
//     PlaceOf(hash) -> Place, Prefetch(place), Contains(place)
//     Insert(place), Erase(place)   false, and nothing changed, if that is impossible
//   CountTags(view)                 of a table from elsewhere: the tags in it, or what is wrong
//   Fpr(view, stored), TheoryFpr(bits_per_key)
//   AddDetails(view, stored, details)
//
// The definitions are in tag_filter-inl.h, for the one file of a scheme that instantiates them; its
// kernel file specialises Kernels().

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "filters/filter.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

template <class SchemeT>
class TagFilter : public SchemeT {
 public:
  using Scheme = SchemeT;
  using typename Scheme::Params;
  using typename Scheme::View;

  static constexpr uint64_t kMaxTableBytes = uint64_t{1} << 37;  // 2^40 bits

  // Each distinct hash is stored once, however often it is given. Where the keys do not fit into
  // the table that `load` asks for, kSeedsPerSize seeds are tried, then the same with the next
  // larger table, kSizes sizes in all; then there is an error.
  static Result<TagFilter> Build(std::span<const uint64_t> hashes, const Params& params);
  static constexpr uint64_t kSeedsPerSize = 4;
  static constexpr uint64_t kSizes = 8;

  // Empty; accepts `keys` distinct keys with a probability of 99 % or more.
  static Result<TagFilter> Create(uint64_t keys, const Params& params);
  // Empty, of a given size.
  static Result<TagFilter> WithUnits(uint64_t units, const Params& params);

  static Result<TagFilter> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Stores one more copy at every call, so that each Insert can be taken back by one Erase. kFull,
  // and nothing changed, if a bounded search finds no free slot.
  InsertStatus Insert(uint64_t hash);

  // Removes one copy. Only for a hash that was inserted or built in and not erased since: any
  // other one may share its tag and places with a key, which would then be denied.
  EraseStatus Erase(uint64_t hash);

  View view() const {
    return Scheme::MakeView(params_, table_.data(), units_, salt_, PrefetchPays(table_.size()));
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
  static std::optional<double> TheoryFpr(double bits_per_key);

  uint64_t units() const { return units_; }
  uint64_t slots() const { return units_ * Scheme::SlotsPerUnit(params_); }
  // Tags stored now, and their share of the slots.
  uint64_t stored() const { return stored_; }
  double Load() const { return static_cast<double>(stored_) / static_cast<double>(slots()); }

 private:
  static constexpr uint64_t kMaxAttempts = kSeedsPerSize * kSizes;

  TagFilter(const Params& params, uint64_t units, uint64_t attempt, AlignedTable table);

  // Empties the table and changes to the seed of another attempt.
  void Restart(uint64_t attempt);
  // Stores all distinct hashes; false if one found no slot.
  bool Fill(std::span<const uint64_t> hashes);

  Params params_;
  uint64_t units_;
  uint64_t attempt_;  // which seed, from 0
  uint64_t salt_;
  uint64_t stored_ = 0;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CUCKOO_TAG_FILTER_H_
