#ifndef FILTERBENCH_HARNESS_RECORD_THEORY_EXPORT_H_
#define FILTERBENCH_HARNESS_RECORD_THEORY_EXPORT_H_

#include <nlohmann/json.hpp>

namespace filterbench {

// theory.json: the FPR of every filter of the catalogue for many keys, at 2..24 bits per key in
// steps of 0.25, and the bound that no filter can cross. The only place from which figures take
// formulas.
nlohmann::json TheoryCurves();

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_THEORY_EXPORT_H_
