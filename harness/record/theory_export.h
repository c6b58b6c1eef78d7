#ifndef FILTERBENCH_HARNESS_RECORD_THEORY_EXPORT_H_
#define FILTERBENCH_HARNESS_RECORD_THEORY_EXPORT_H_

#include <set>
#include <string>

#include <nlohmann/json.hpp>

namespace filterbench {

// theory.json: the FPR of filters for many keys, at 2..24 bits per key in steps of 0.25, and the
// bound that no filter can cross. The only place from which figures take formulas. Of the whole
// catalogue that takes some ten seconds, since laws of some filters are equations to be solved.
nlohmann::json TheoryCurves();
nlohmann::json TheoryCurves(const std::set<std::string>& filters);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_THEORY_EXPORT_H_
