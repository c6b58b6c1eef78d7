#include "filters/cuckoo/cuckoo.h"

#include <algorithm>
#include <bit>

#include "filters/cuckoo/pair_writer-inl.h"
#include "filters/cuckoo/tag_filter-inl.h"
#include "filters/theory/cuckoo.h"

namespace filterbench {
namespace {

constexpr double kTheoryLoad = 0.95;

// What a build fills with the first seed nearly always: below the thresholds of two choices of
// buckets of 2, 4 and 8, 0.8970, 0.9804 and 0.9979 (Dietzfelbinger and Weidling 2007; Fernholz and
// Ramachandran 2007).
double LoadOf(const CuckooScheme::Params& params) {
  constexpr double kDefaultLoads[] = {0.84, 0.95, 0.98};
  return params.load != 0 ? params.load : kDefaultLoads[static_cast<int>(params.slots)];
}

uint64_t Allowed(uint64_t buckets, const CuckooScheme::Params& params) {
  return params.partner == CuckooScheme::PartnerKind::kXor ? std::bit_ceil(buckets) : buckets;
}

}  // namespace

uint64_t CuckooScheme::UnitsFor(uint64_t n, const Params& params) {
  const double slots = static_cast<double>(SlotsPerUnit(params));
  return Allowed(UnitsAtLoad(static_cast<double>(n), slots, LoadOf(params)), params);
}

uint64_t CuckooScheme::UnitsToInsert(uint64_t n, const Params& params) {
  constexpr InsertLoad kLoads[] = {{0.85, 0.8970, 1.4}, kFourSlotsInsertLoad, {0.98, 0.9979, 0.4}};
  if (n <= SlotsPerUnit(params)) return 1;
  Params safe = params;
  safe.load = kLoads[static_cast<int>(params.slots)].For(n, LoadOf(params));
  return UnitsFor(n, safe);
}

uint64_t CuckooScheme::Grown(uint64_t buckets, const Params& params) {
  return Allowed(buckets + std::max<uint64_t>(1, buckets / 100), params);
}

template <class Use>
decltype(auto) CuckooScheme::WithWriter(const View& view, std::byte* table, Use&& use) {
  return view.Specialize([&]<class V>(const V& sized) { return use(PairWriter<V>(sized, table)); });
}

Result<uint64_t> CuckooScheme::CountTags(const View& view) {
  return view.Specialize([&]<class V>(const V& sized) {
    uint64_t free_slots = 0;
    for (uint64_t i = 0; i < view.buckets; ++i) {
      free_slots += V::Bucket::CountFree(view.table + i * V::Bucket::kBytes);
    }
    return sized.buckets * V::Bucket::kSlots - free_slots;
  });
}

FprEstimate CuckooScheme::Fpr(const View& view, uint64_t stored) {
  const int tag_bits = TagBits({.fingerprint_bits = view.fingerprint_bits});
  return theory::CuckooFpr(stored, view.buckets, tag_bits,
                           view.partner == PartnerKind::kXor ? theory::CuckooPairs::kDistinct
                                                             : theory::CuckooPairs::kInvolution);
}

std::optional<double> CuckooScheme::TheoryFpr(double bits_per_key) {
  return theory::CuckooFpr(bits_per_key * kTheoryLoad, kTheoryLoad, 4);
}

template class TagFilter<CuckooScheme>;

}  // namespace filterbench
