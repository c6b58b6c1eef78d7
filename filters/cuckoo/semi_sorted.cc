#include "filters/cuckoo/semi_sorted.h"

#include <fmt/format.h>

#include "filters/cuckoo/pair_writer-inl.h"
#include "filters/cuckoo/tag_filter-inl.h"
#include "filters/theory/cuckoo.h"

namespace filterbench {
namespace {

constexpr double kTheoryLoad = 0.95;

}  // namespace

uint64_t SemiSortedScheme::UnitsFor(uint64_t n, const Params& params) {
  return UnitsAtLoad(static_cast<double>(n), 4, params.load);
}

uint64_t SemiSortedScheme::UnitsToInsert(uint64_t n, const Params& params) {
  if (n <= 4) return 1;
  Params safe = params;
  safe.load = kFourSlotsInsertLoad.For(n, params.load);
  return UnitsFor(n, safe);
}

template <class Use>
decltype(auto) SemiSortedScheme::WithWriter(const View& view, std::byte* table, Use&& use) {
  return view.Specialize([&]<class V>(const V& sized) { return use(PairWriter<V>(sized, table)); });
}

Result<uint64_t> SemiSortedScheme::CountTags(const View& view) {
  return view.Specialize([&]<class V>(const V& sized) -> Result<uint64_t> {
    using Bucket = typename V::Bucket;
    constexpr uint64_t kBucketMask = ~uint64_t{0} >> (64 - 8 * Bucket::kBytes);
    uint64_t tags = 0;
    for (uint64_t i = 0; i < sized.buckets; ++i) {
      const std::byte* bucket = sized.table + i * Bucket::kBytes;
      const uint64_t word = Bucket::Load(bucket) & kBucketMask;
      if (Bucket::Encode(Bucket::Decode(word)) != word) {
        return Error{fmt::format("bucket {} is not sorted", i)};
      }
      tags += Bucket::kSlots - Bucket::CountFree(bucket);
    }
    return tags;
  });
}

FprEstimate SemiSortedScheme::Fpr(const View& view, uint64_t stored) {
  return theory::CuckooFpr(stored, view.buckets, TagBits(view.fingerprint_bits),
                           theory::CuckooPairs::kInvolution);
}

std::optional<double> SemiSortedScheme::TheoryFpr(double bits_per_key) {
  return theory::CuckooFpr(bits_per_key * kTheoryLoad + 1, kTheoryLoad, 4);
}

template class TagFilter<SemiSortedScheme>;

}  // namespace filterbench
