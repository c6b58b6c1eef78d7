#ifndef FILTERBENCH_FILTERS_THEORY_RIBBON_H_
#define FILTERBENCH_FILTERS_THEORY_RIBBON_H_

// Slots and false-positive rate of ribbon filters.

#include <cstdint>

#include "filters/fpr.h"

namespace filterbench::theory {

// Slots per key of a standard ribbon filter of n keys for which a seed works with a probability of
// at least 95 %: grows with log(n) (Dillinger and Walzer 2021, section 4). Plain IEEE arithmetic,
// no logarithm from a library: layouts follow from it.
double RibbonSlotsPerKey(uint64_t n, int width);

// The same for the homogeneous filter, where it decides about the FPR: 1 + (4 + columns / 4) /
// width (the authors' rule, fastfilter_cpp, HomogRibbonFilter).
double HomogeneousRibbonSlotsPerKey(double columns, int width);

// Slots beyond that, whatever the number of keys: no row starts in the last width - 1 slots, so
// that the starts of n keys are denser than n / slots.
int HomogeneousRibbonExtraSlots(int width);

// A share `wide_share` of the starts has columns + 1 columns, the others `columns`; each column
// lets half of the absent keys pass: the result bits are uniform and independent of the solution.
double RibbonFpr(int columns, double wide_share);

// The mixture for a real number of columns: its fraction is the share of wide starts.
double RibbonFpr(double columns);

// The homogeneous filter: where the rows of the keys span all of a region, every row in it has the
// sum zero, so RibbonFpr + (1 - RibbonFpr) * P(row in span) (Dillinger and Walzer 2021, section 3).
FprEstimate HomogeneousRibbonFpr(uint64_t n, int columns, double wide_share, int width);

// The bumped filter of many keys with rows of 64 bits: almost no slot is free, and each 128 slots
// of its first layer have a threshold of two bits (Dillinger, Huebschle-Schneider, Sanders, Walzer
// 2022, section 4; measured at 1e6 keys).
inline constexpr double kBumpedRibbonSlotsPerKey = 1.0005;
inline constexpr double kBumpedRibbonThresholdBitsPerKey = 2.0 / 128;

}  // namespace filterbench::theory

#endif  // FILTERBENCH_FILTERS_THEORY_RIBBON_H_
