#ifndef FILTERBENCH_HARNESS_RECORD_RUN_DIRECTORY_H_
#define FILTERBENCH_HARNESS_RECORD_RUN_DIRECTORY_H_

// The directory of one run: results/<machine>/<UTC time>-<git12>[-dirty]-<spec hash 8>/, and
// [-shard-<I>-of-<N>] where the run is a part of a sweep. What is
// written is checked against its schema first, so that a file is either right or not there, and
// finished samples stay readable after a kill at any moment.
//
// Every error names the path.

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/result.h"
#include "harness/record/file.h"
#include "harness/record/sample.h"
#include "harness/record/samples_file.h"
#include "harness/spec/shard.h"

namespace filterbench {

// What a run is called by.
struct RunName {
  std::chrono::system_clock::time_point start;
  std::string git_commit;  // 12 hex digits or more; empty where it is not known ("nogit")
  bool git_dirty = false;
  std::string spec_hash;  // 8 characters or more
  std::optional<Shard> shard = std::nullopt;
};

// "20261130T152001Z-0123456789ab-dirty-89abcdef"; a shard's ends with "-shard-1-of-3"
std::string RunDirectoryName(const RunName& name);

// Holds the run for this process: a second RunDirectory on the same directory, in this process or
// in another one of this machine, is refused until this one is destroyed.
class RunDirectory {
 public:
  // Makes the directory, and its parents; one that exists is never touched.
  static Result<RunDirectory> Create(const std::filesystem::path& results_root,
                                     std::string_view machine, const RunName& name);
  // An unfinished run, to go on with it. Cuts off a torn last line of the samples.
  static Result<RunDirectory> Open(const std::filesystem::path& directory);

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.filename().string(); }
  std::string machine() const { return path_.parent_path().filename().string(); }
  // What Open had to repair: sentences for the user, mostly none.
  const std::vector<std::string>& repairs() const { return repairs_; }

  bool has_manifest() const;
  Result<nlohmann::json> ReadManifest() const;
  Result<SamplesFile> ReadSamples() const { return filterbench::ReadSamples(path_); }

  // Once, before the first sample.
  [[nodiscard]] std::optional<Error> WriteManifest(const nlohmann::json& manifest);
  // Removes a run that got no manifest: it would be none, and could not be resumed either.
  void Discard();
  // Appends one line. After an error the file ends with the last whole line.
  [[nodiscard]] std::optional<Error> AppendSample(const Sample& sample);
  // Until then a loss of power may take samples; a kill takes none.
  [[nodiscard]] std::optional<Error> SyncSamples() { return samples_.Sync(); }
  // Writes summary.json and summary.csv; may be repeated.
  [[nodiscard]] std::optional<Error> WriteSummary(const nlohmann::json& summary);
  [[nodiscard]] std::optional<Error> WriteTheory(const nlohmann::json& theory);

  // Reads all files back and checks them (ValidateRun); only then the run is complete.
  [[nodiscard]] std::optional<Error> MarkComplete();

 private:
  RunDirectory(std::filesystem::path path, AppendFile samples)
      : path_(std::move(path)), samples_(std::move(samples)) {}

  std::filesystem::path path_;
  AppendFile samples_;  // holds the lock
  std::vector<std::string> repairs_;
  bool complete_ = false;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_RUN_DIRECTORY_H_
