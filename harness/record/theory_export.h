#ifndef FILTERBENCH_HARNESS_RECORD_THEORY_EXPORT_H_
#define FILTERBENCH_HARNESS_RECORD_THEORY_EXPORT_H_

#include <span>

#include <nlohmann/json.hpp>

#include "harness/record/sample.h"

namespace filterbench {

// theory.json (results/README.md), the only place from which figures take formulas:
//   curves         FPR for many keys, at 2..24 bits per key in steps of 0.25, and the bound that no
//                  filter can cross
//   small_tables   FPR of the classic and the double-hashing filter against the bits of the table
//   slots_per_key  slots that tables are given, against the number of keys
//   block_reads    what a read of an LSM tree costs
// Of the whole catalogue that takes some ten seconds, since laws of some filters are equations to
// be solved.
nlohmann::json TheoryCurves();

// Of the filters of a run; slots_per_key of the parameters that were built for two or more numbers
// of keys, from the least to the largest of these.
nlohmann::json TheoryCurves(std::span<const Sample> samples);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_THEORY_EXPORT_H_
