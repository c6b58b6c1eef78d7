// The files of a run from anywhere: an error that names the file, or a run whose summary and tables
// obey their schemas and pass their own validation.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/fuzzer.h"
#include "harness/record/document.h"
#include "harness/record/sample.h"
#include "harness/record/samples_file.h"
#include "harness/record/summary.h"
#include "harness/record/theory_export.h"
#include "harness/record/validate.h"
#include "harness/spec/point.h"
#include "harness/temporary_directory.h"

namespace filterbench {
namespace {

using nlohmann::json;
using std::filesystem::path;

// Files of an input are apart by this line.
constexpr std::string_view kBetweenFiles = "\n====\n";

std::string_view TakeFile(std::string_view& text) {
  const size_t end = text.find(kBetweenFiles);
  const std::string_view file = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + kBetweenFiles.size());
  return file;
}

void Write(const path& file, std::string_view content) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << content;
}

// Lines of samples with the identities that their points have, which nobody meets by chance.
std::string WithRightIds(std::string_view lines) {
  std::string repaired;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    Result<json> document = ParseStrictJson(line);
    if (document && !ValidateDocument("sample", *document)) {
      if (const Result<Point> point = PointFromJson((*document)["point"])) {
        (*document)["point_id"] = PointId(*point);
      }
      repaired += document->dump();
    } else {
      repaired += line;
    }
    if (end == lines.npos) break;
    repaired += '\n';
    lines.remove_prefix(end + 1);
  }
  return repaired;
}

void RequireValid(const char* schema, const json& document) {
  const Result<json> read = ParseStrictJson(document.dump());
  FuzzRequire(read && *read == document, std::string(schema) + ": does not come back");
  if (const auto error = ValidateDocument(schema, document)) {
    FuzzRequire(false, std::string(schema) + ": " + error->message);
  }
}

void TryRun(const path& directory, std::string_view manifest_text, std::string_view samples_text,
            std::string_view summary_text) {
  Write(directory / "manifest.json", manifest_text);
  Write(directory / "samples.jsonl", samples_text);
  Write(directory / "summary.json", summary_text);
  const auto validate = [&] {
    if (const auto error = ValidateRun(directory)) {
      FuzzRequire(error->message.starts_with(directory.string()),
                  "the error names no file: " + error->message);
    }
  };
  validate();
  const Result<SamplesFile> file = ReadSamples(directory);
  const Result<json> manifest = ParseStrictJson(manifest_text);
  if (!manifest || ValidateDocument("manifest", *manifest)) return;
  if (!file || file->samples.empty()) return;
  (void)WhyIncomplete(*manifest, file->samples);
  const json summary = Summarise(*manifest, file->samples);
  RequireValid("summary", summary);
  Write(directory / "summary.json", summary.dump());
  Write(directory / "summary.csv", SummaryCsv(summary));
  validate();
}

}  // namespace
}  // namespace filterbench

FILTERBENCH_FUZZER(Run) {
  static const TemporaryDirectory directory;
  static const std::string theory = TheoryCurves(std::vector<Sample>()).dump();
  Write(directory.path() / "theory.json", theory);
  Write(directory.path() / "summary.csv", "");
  std::string_view text = FuzzText(input);
  const std::string_view manifest = TakeFile(text);
  const std::string_view samples = TakeFile(text);
  TryRun(directory.path(), manifest, samples, text);
  TryRun(directory.path(), manifest, WithRightIds(samples), text);
}
