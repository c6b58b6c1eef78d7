#include "harness/commands/summarise.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "harness/record/summary.h"
#include "harness/record/theory_export.h"
#include "harness/record/validate.h"

namespace filterbench {
namespace {

using nlohmann::json;

// `complete`: whoever calls knows that nothing is missing; all files are checked first.
int SummariseRun(const std::string& path, bool complete) {
  Result<RunDirectory> directory = RunDirectory::Open(path);
  if (!directory) return Complain(directory.error(), kExitUsage);
  for (const std::string& repair : directory->repairs()) fmt::print(stderr, "{}\n", repair);
  const Result<SamplesFile> samples = directory->ReadSamples();
  if (!samples) return Complain(samples.error(), kExitUsage);
  const Result<json> manifest = directory->ReadManifest();
  if (!manifest) return Complain(manifest.error(), kExitUsage);
  const Result<json> summary = WriteWhatFollows(*directory, *manifest, samples->samples);
  if (!summary) return Complain(summary.error(), kExitIncomplete);
  if (complete) {
    if (const auto error = WhyIncomplete(*manifest, samples->samples)) {
      return Complain(directory->path().string() + ": " + error->message, kExitIncomplete);
    }
    if (const auto error = directory->MarkComplete()) {
      return Complain(error->message, kExitIncomplete);
    }
  }
  fmt::print("{}\n", directory->path().string());
  return kExitOk;
}

}  // namespace

Result<json> WriteWhatFollows(RunDirectory& directory, const json& manifest,
                              const std::vector<Sample>& samples) {
  json summary = Summarise(manifest, samples);
  if (auto error = directory.WriteSummary(summary)) return *error;
  if (auto error = directory.WriteTheory(TheoryCurves(samples))) return *error;
  return summary;
}

void AddSummarise(CommandLine& line) {
  struct Arguments {
    std::string run;
    bool complete = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* summarise = line.app.add_subcommand(
      "summarise", "Write summary and theory of an unfinished run anew, from its samples");
  summarise->add_option("run", arguments->run, "Directory of the run")->required();
  summarise->add_flag("--complete", arguments->complete,
                      "It is all of its sweep: mark it as complete");
  summarise->callback([&line, arguments] {
    line.exit_code = SummariseRun(arguments->run, arguments->complete);
  });
}

}  // namespace filterbench
