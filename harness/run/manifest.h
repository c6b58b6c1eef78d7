#ifndef FILTERBENCH_HARNESS_RUN_MANIFEST_H_
#define FILTERBENCH_HARNESS_RUN_MANIFEST_H_

#include <nlohmann/json.hpp>

#include "harness/plan/plan.h"
#include "harness/record/run_directory.h"
#include "harness/spec/spec.h"

namespace filterbench {

// What a run is about and where it runs: manifest.json (results/README.md). `run` and `machine` are
// the names of its directories.
nlohmann::json MakeManifest(const Spec& spec, const Plan& plan, const nlohmann::json& environment,
                            const nlohmann::json& provenance, const RunDirectory& directory,
                            const std::string& time_utc);

// The spec with everything filled in: all points of the sweep, and how they are measured. The same
// in all shards of a sweep, and however much memory there is.
nlohmann::json ResolvedSpec(const Spec& spec, const Plan& plan);

// XXH3-64 of the resolved spec, 16 hex digits.
std::string SpecHash(const nlohmann::json& resolved_spec);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RUN_MANIFEST_H_
