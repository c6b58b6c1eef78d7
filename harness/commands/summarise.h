#ifndef FILTERBENCH_HARNESS_COMMANDS_SUMMARISE_H_
#define FILTERBENCH_HARNESS_COMMANDS_SUMMARISE_H_

// filterbench summarise, and what follows from the samples of any run.

#include <vector>

#include <nlohmann/json.hpp>

#include "filters/result.h"
#include "harness/commands/command_line.h"
#include "harness/record/run_directory.h"
#include "harness/record/sample.h"

namespace filterbench {

// Summary and theory of a run, from its manifest and samples; returns the summary.
Result<nlohmann::json> WriteWhatFollows(RunDirectory& directory, const nlohmann::json& manifest,
                                        const std::vector<Sample>& samples);

void AddSummarise(CommandLine& line);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_SUMMARISE_H_
