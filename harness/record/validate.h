#ifndef FILTERBENCH_HARNESS_RECORD_VALIDATE_H_
#define FILTERBENCH_HARNESS_RECORD_VALIDATE_H_

#include <filesystem>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include "filters/result.h"
#include "harness/record/sample.h"

namespace filterbench {

// Reads back every file of a run directory, COMPLETE excepted, and checks each against its schema
// and all against each other: one run and one machine; no sample twice; the summary speaks of the
// points that were measured, with their rounds and passes; summary.csv is summary.json. The error
// names file, line (of samples.jsonl) and field.
std::optional<Error> ValidateRun(const std::filesystem::path& run_directory);

// What of its sweep a run lacks: every point has a sample of each build that every point gets, or one
// that failed. Nothing if it lacks nothing. `manifest` is a valid one.
std::optional<Error> WhyIncomplete(const nlohmann::json& manifest,
                                   std::span<const Sample> samples);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_VALIDATE_H_
