#include "harness/record/run_directory.h"

#include <system_error>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "harness/record/document.h"
#include "harness/record/summary.h"
#include "harness/record/validate.h"

namespace filterbench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr char kComplete[] = "COMPLETE";

Error At(const fs::path& file, const std::string& problem) {
  return Error{fmt::format("{}: {}", file.string(), problem)};
}

std::optional<Error> WriteDocument(const fs::path& file, std::string_view schema,
                                   const json& document) {
  if (auto error = ValidateDocument(schema, document)) return At(file, error->message);
  return ReplaceFile(file, document.dump(1) + "\n");
}

}  // namespace

std::string RunDirectoryName(const RunName& name) {
  // Shards of a sweep begin in the same second, on nodes that do not see each other's directories.
  const std::string shard =
      name.shard ? fmt::format("-shard-{}-of-{}", name.shard->index + 1, name.shard->count) : "";
  return fmt::format("{:%Y%m%dT%H%M%SZ}-{}{}-{:.8}{}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(
                         std::chrono::floor<std::chrono::seconds>(name.start))),
                     name.git_commit.empty() ? "nogit" : name.git_commit.substr(0, 12),
                     name.git_dirty ? "-dirty" : "", name.spec_hash, shard);
}

Result<RunDirectory> RunDirectory::Create(const fs::path& results_root, std::string_view machine,
                                          const RunName& name) {
  const fs::path parent = results_root / machine;
  if (machine.empty() || machine.front() == '.' || machine.find('/') != machine.npos) {
    return At(parent, "is no place for a run: the machine's name must be the name of a directory");
  }
  std::error_code code;
  std::filesystem::create_directories(parent, code);
  if (code) return At(parent, "cannot create: " + code.message());
  const fs::path directory = parent / RunDirectoryName(name);
  if (!std::filesystem::create_directory(directory, code)) {
    return At(directory, code ? "cannot create: " + code.message()
                              : "exists already; a run is never overwritten");
  }
  Result<AppendFile> samples =
      AppendFile::Open(directory / "samples.jsonl", AppendFile::Existing::kMustNot);
  if (!samples) return Error{samples.error()};
  return RunDirectory(directory, std::move(*samples));
}

Result<RunDirectory> RunDirectory::Open(const fs::path& directory) {
  std::error_code code;
  const fs::path absolute = std::filesystem::canonical(directory, code);
  if (code) return At(directory, "cannot open: " + code.message());
  const fs::path samples_path = absolute / "samples.jsonl";
  Result<AppendFile> samples = AppendFile::Open(samples_path, AppendFile::Existing::kMust);
  if (!samples) return Error{samples.error()};
  RunDirectory run(absolute, std::move(*samples));
  // After the lock was taken: whoever held it may just have finished.
  if (std::filesystem::exists(absolute / kComplete, code)) {
    return At(absolute, "is complete: there is nothing to resume");
  }
  const Result<uint64_t> torn_bytes = run.samples_.CutTornLine();
  if (!torn_bytes) return Error{torn_bytes.error()};
  if (*torn_bytes > 0) {
    run.repairs_.push_back(fmt::format(
        "{}: cut off {} bytes of a last line that was not finished; its sample is measured again",
        samples_path.string(), *torn_bytes));
  }
  return run;
}

bool RunDirectory::has_manifest() const {
  std::error_code code;
  return std::filesystem::exists(path_ / "manifest.json", code);
}

Result<json> RunDirectory::ReadManifest() const {
  const fs::path file = path_ / "manifest.json";
  const Result<std::string> text = ReadWholeFile(file);
  if (!text) return Error{text.error()};
  Result<json> manifest = ParseStrictJson(*text);
  if (!manifest) return At(file, manifest.error());
  if (auto error = ValidateDocument("manifest", *manifest)) return At(file, error->message);
  return manifest;
}

std::optional<Error> RunDirectory::WriteManifest(const json& manifest) {
  const fs::path file = path_ / "manifest.json";
  if (has_manifest()) return At(file, "exists already; it is written once");
  if (auto error = ValidateDocument("manifest", manifest)) return At(file, error->message);
  const std::pair<const char*, std::string> names[] = {{"run", name()}, {"machine", machine()}};
  for (const auto& [field, expected] : names) {
    if (manifest[field] != expected) {
      return At(file, fmt::format("{}: is {}, the directory says {}", field,
                                  manifest[field].dump(), expected));
    }
  }
  return WriteDocument(file, "manifest", manifest);
}

void RunDirectory::Discard() {
  std::error_code ignored;
  std::filesystem::remove(path_ / "samples.jsonl", ignored);
  std::filesystem::remove(path_, ignored);  // not where something lies in it
}

std::optional<Error> RunDirectory::AppendSample(const Sample& sample) {
  const fs::path file = path_ / "samples.jsonl";
  if (complete_) return At(path_, "is complete: no sample can be added");
  if (!has_manifest()) return At(file, "there is no manifest.json yet, which must come first");
  const json document = SampleToJson(sample);
  if (auto error = ValidateDocument("sample", document)) {
    return At(file, fmt::format("sample {}: {}", sample.sequence, error->message));
  }
  return samples_.AppendLine(document.dump());
}

std::optional<Error> RunDirectory::WriteSummary(const json& summary) {
  if (auto error = WriteDocument(path_ / "summary.json", "summary", summary)) return error;
  return ReplaceFile(path_ / "summary.csv", SummaryCsv(summary));
}

std::optional<Error> RunDirectory::WriteTheory(const json& theory) {
  return WriteDocument(path_ / "theory.json", "theory", theory);
}

std::optional<Error> RunDirectory::MarkComplete() {
  if (auto error = samples_.Sync()) return error;
  if (auto error = ValidateRun(path_)) return error;
  if (auto error = CreateMark(path_ / kComplete)) return error;
  complete_ = true;
  return std::nullopt;
}

}  // namespace filterbench
