#ifndef FILTERBENCH_FILTERS_THEORY_ROTATED_MASKS_H_
#define FILTERBENCH_FILTERS_THEORY_ROTATED_MASKS_H_

// The false-positive rate of a filter of 64-bit words whose keys have one of a table of masks,
// rotated.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "filters/fpr.h"
#include "filters/theory/block_loads.h"

namespace filterbench::theory {

// A key sets the bits of a mask, uniform among those given, rotated by 0..63 bits, in a word that
// is uniform. The mean is exact: for each mask as a query, inclusion-exclusion over its bits; which
// of them a key hits is counted over all masks and rotations. The deviation of words that hold one
// key is exact, too; that of fuller ones is as if keys had four to five independent bits.
class RotatedMaskLaw {
 public:
  // Masks of 1 to kMaxMaskBits bits. Takes some 0.2 s for 1024 of them.
  static constexpr int kMaxMaskBits = 5;
  explicit RotatedMaskLaw(std::span<const uint64_t> masks);

  FprEstimate Fpr(uint64_t n, uint64_t words) const;
  // The limit for many keys.
  double Fpr(double bits_per_key) const;

 private:
  static constexpr size_t kSets = size_t{1} << kMaxMaskBits;

  RatesByLoad UpTo(double mean_load) const;

  size_t masks_;
  std::vector<double> missed_;  // by mask and set of its bits: that a key misses the set
  std::vector<double> signs_;   // of inclusion-exclusion; 0 for sets that the mask has not
  double square_of_one_key_ = 0;
};

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_ROTATED_MASKS_H_
