// A run's files through accidents: kills, full disks, two processes, damage from outside.

#include "harness/record/run_directory.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/record/summary.h"
#include "harness/record/testing.h"
#include "harness/temporary_directory.h"
#include "harness/record/validate.h"

namespace filterbench {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using record_testing::MakeFailure;
using record_testing::MakeManifest;
using record_testing::MakePoint;
using record_testing::MakeSample;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const RunName kName = {
    .start = std::chrono::system_clock::time_point(std::chrono::milliseconds(1796052001999)),
    .git_commit = "0123456789abcdef0123456789abcdef01234567",
    .git_dirty = false,
    .spec_hash = "89abcdef01234567"};
constexpr char kMachine[] = "a-machine-2c-1a2b3c4d";

std::string Text(const std::optional<Error>& error) { return error ? error->message : ""; }

std::string Slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Spill(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<Sample> MakeSamples() {
  std::vector<Sample> samples = {MakeSample(0), MakeSample(1, MakePoint("blocked_bloom", 10000)),
                                 MakeSample(2, MakePoint(), 1)};
  samples.push_back(MakeFailure(SampleStatus::kSkipped, "no time left", 3, MakePoint("ribbon")));
  return samples;
}

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectory CreateRun() {
    Result<RunDirectory> run = RunDirectory::Create(root(), kMachine, kName);
    EXPECT_TRUE(run) << run.error();
    EXPECT_EQ(Text(run->WriteManifest(MakeManifest(run->name(), kMachine))), "");
    return std::move(*run);
  }

  // All files but COMPLETE.
  RunDirectory CreateFinishedRun() {
    RunDirectory run = CreateRun();
    for (const Sample& sample : MakeSamples()) EXPECT_EQ(Text(run.AppendSample(sample)), "");
    EXPECT_EQ(Text(run.WriteSummary(Summarise(*run.ReadManifest(), MakeSamples()))), "");
    EXPECT_EQ(Text(run.WriteTheory(theory_)), "");
    return run;
  }

  fs::path root() const { return temporary_.path() / "some" / "results"; }
  fs::path directory() const { return root() / kMachine / RunDirectoryName(kName); }

  TemporaryDirectory temporary_;
  // Slow to make, and made in another test.
  const json theory_ = {
      {"schema", "filterbench/theory/1"},
      {"curves",
       {{{"filter", nullptr},
         {"label", "log2(1/FPR)"},
         {"source", "a source"},
         {"points", {{{"bits_per_key", 2.0}, {"fpr", 0.25}}}}}}}};
};

TEST(RunDirectoryName, SaysWhenWhatAndHow) {
  RunName name = kName;
  EXPECT_EQ(RunDirectoryName(name), "20261130T152001Z-0123456789ab-89abcdef");
  name.git_dirty = true;
  EXPECT_EQ(RunDirectoryName(name), "20261130T152001Z-0123456789ab-dirty-89abcdef");
  name.git_commit = "";
  name.git_dirty = false;
  EXPECT_EQ(RunDirectoryName(name), "20261130T152001Z-nogit-89abcdef");
  name.shard = Shard{.index = 0, .count = 3};
  EXPECT_EQ(RunDirectoryName(name), "20261130T152001Z-nogit-89abcdef-shard-1-of-3");
}

TEST_F(RunDirectoryTest, ShardsThatBeginInTheSameSecondHaveTheirOwnDirectories) {
  RunName name = kName;
  for (const uint64_t index : {0, 1, 2}) {
    name.shard = Shard{.index = index, .count = 3};
    const Result<RunDirectory> run = RunDirectory::Create(root(), kMachine, name);
    EXPECT_TRUE(run) << run.error();
  }
}

TEST_F(RunDirectoryTest, AWholeRun) {
  {
    RunDirectory run = CreateFinishedRun();
    EXPECT_EQ(run.path(), directory());
    EXPECT_EQ(run.name(), RunDirectoryName(kName));
    EXPECT_EQ(run.machine(), kMachine);
    EXPECT_FALSE(fs::exists(directory() / "COMPLETE"));
    EXPECT_EQ(Text(run.MarkComplete()), "");
    EXPECT_THAT(Text(run.AppendSample(MakeSample(9))), HasSubstr("is complete"));
  }
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory())) {
    names.insert(entry.path().filename());
  }
  EXPECT_EQ(names, (std::set<std::string>{"COMPLETE", "manifest.json", "samples.jsonl",
                                          "summary.csv", "summary.json", "theory.json"}));
  EXPECT_EQ(fs::file_size(directory() / "COMPLETE"), 0u);
  const Result<SamplesFile> file = ReadSamples(directory());
  ASSERT_TRUE(file) << file.error();
  EXPECT_EQ(file->samples, MakeSamples());
  EXPECT_EQ(file->torn_bytes, 0u);
  EXPECT_THAT(RunDirectory::Open(directory()).error(),
              AllOf(HasSubstr(directory().string()), HasSubstr("is complete")));
}

TEST_F(RunDirectoryTest, NothingIsOverwritten) {
  { CreateRun(); }
  const Result<RunDirectory> again = RunDirectory::Create(root(), kMachine, kName);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error(), directory().string() + ": exists already; a run is never overwritten");
  Result<RunDirectory> run = RunDirectory::Open(directory());
  ASSERT_TRUE(run) << run.error();
  EXPECT_THAT(Text(run->WriteManifest(MakeManifest(run->name(), kMachine))),
              HasSubstr("exists already"));
}

TEST_F(RunDirectoryTest, PlacesThatCannotBeWrittenAreNamed) {
  // A file stands where a directory is needed. Unlike a missing permission this stops root too.
  fs::create_directories(root().parent_path());
  Spill(root(), "");
  EXPECT_THAT(RunDirectory::Create(root(), kMachine, kName).error(),
              AllOf(StartsWith((root() / kMachine).string()), HasSubstr("Not a directory")));
  for (const char* machine : {"", ".", "..", "a/b", ".hidden"}) {
    EXPECT_FALSE(RunDirectory::Create(temporary_.path(), machine, kName)) << machine;
  }
  EXPECT_THAT(RunDirectory::Open("/nonexistent/run").error(), StartsWith("/nonexistent/run: "));
  EXPECT_THAT(RunDirectory::Open(temporary_.path()).error(), HasSubstr("samples.jsonl"));
}

TEST_F(RunDirectoryTest, AReadOnlyDirectoryIsNamed) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::create_directories(root());
  fs::permissions(root(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(RunDirectory::Create(root(), kMachine, kName).error(),
              AllOf(StartsWith((root() / kMachine).string()), HasSubstr("Permission denied")));
  fs::permissions(root(), fs::perms::owner_all);
}

TEST_F(RunDirectoryTest, TheManifestComesFirstAndIsOfThisRun) {
  Result<RunDirectory> run = RunDirectory::Create(root(), kMachine, kName);
  ASSERT_TRUE(run) << run.error();
  EXPECT_FALSE(run->has_manifest());
  EXPECT_THAT(Text(run->AppendSample(MakeSample())), HasSubstr("no manifest.json"));
  EXPECT_THAT(Text(run->WriteManifest(MakeManifest("another", kMachine))), HasSubstr("run: is"));
  EXPECT_THAT(Text(run->WriteManifest(MakeManifest(run->name(), "another"))),
              HasSubstr("machine: is"));
  json manifest = MakeManifest(run->name(), kMachine);
  manifest["environment"]["frequency"]["mhz"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Text(run->WriteManifest(manifest)),
              HasSubstr("manifest.json: environment.frequency.mhz: is NaN"));
  EXPECT_FALSE(run->has_manifest());
}

TEST_F(RunDirectoryTest, WhatIsNotValidIsNotWritten) {
  RunDirectory run = CreateRun();
  Sample sample = MakeSample(5);
  sample.ns_per_op[2] = std::numeric_limits<double>::infinity();
  EXPECT_THAT(Text(run.AppendSample(sample)),
              AllOf(HasSubstr("samples.jsonl: sample 5"), HasSubstr("ns_per_op[2]: is NaN")));
  sample = MakeSample(5);
  sample.filter->extra["load"] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Text(run.AppendSample(sample)), HasSubstr("filter.extra.load"));
  sample = MakeSample(5);
  sample.fpr->queries = 0;
  EXPECT_THAT(Text(run.AppendSample(sample)), HasSubstr("fpr."));
  sample = MakeFailure(SampleStatus::kSkipped, "\xff", 5);
  EXPECT_THAT(Text(run.AppendSample(sample)), HasSubstr("reason: is not UTF-8"));
  EXPECT_EQ(Slurp(directory() / "samples.jsonl"), "");
  EXPECT_THAT(Text(run.WriteSummary({{"schema", "filterbench/summary/1"}})),
              HasSubstr("summary.json: "));
  EXPECT_FALSE(fs::exists(directory() / "summary.json"));
}

TEST_F(RunDirectoryTest, OneProcessAtATime) {
  auto run = std::make_unique<RunDirectory>(CreateRun());
  EXPECT_THAT(RunDirectory::Open(directory()).error(), HasSubstr("in use by another run"));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(RunDirectory::Open(directory()) ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "another process could open the run";
  // Reading needs no lock.
  EXPECT_TRUE(ReadSamples(directory()));
  const RunDirectory moved = std::move(*run);
  run.reset();
  EXPECT_FALSE(RunDirectory::Open(directory())) << "the lock was lost in a move";
}

TEST_F(RunDirectoryTest, ResumesAfterALineThatWasTornAnywhere) {
  { CreateFinishedRun(); }
  const std::string whole = Slurp(directory() / "samples.jsonl");
  const size_t last = whole.rfind('\n', whole.size() - 2) + 1;
  for (size_t length = 0; length < whole.size(); length += length < last ? 131 : 7) {
    const size_t kept = length == 0 ? 0 : whole.rfind('\n', length - 1) + 1;
    Spill(directory() / "samples.jsonl", whole.substr(0, length));
    const size_t lines = static_cast<size_t>(std::count(whole.begin(), whole.begin() + kept, '\n'));
    const Result<SamplesFile> torn = ReadSamples(directory());
    ASSERT_TRUE(torn) << torn.error();
    EXPECT_EQ(torn->samples.size(), lines);
    EXPECT_EQ(torn->torn_bytes, length - kept);

    Result<RunDirectory> run = RunDirectory::Open(directory());
    ASSERT_TRUE(run) << run.error();
    EXPECT_EQ(run->repairs().empty(), length == kept) << length;
    EXPECT_EQ(Slurp(directory() / "samples.jsonl"), whole.substr(0, kept));
    const std::vector<Sample> samples = MakeSamples();
    for (size_t i = lines; i < samples.size(); ++i) {
      ASSERT_EQ(Text(run->AppendSample(samples[i])), "");
    }
    EXPECT_EQ(Slurp(directory() / "samples.jsonl"), whole);
    EXPECT_EQ(Text(ValidateRun(directory())), "");
  }
}

TEST_F(RunDirectoryTest, AKilledRunLeavesWholeSamples) {
  { CreateRun(); }
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    Result<RunDirectory> run = RunDirectory::Open(directory());
    if (!run) _exit(1);
    for (uint64_t i = 0;; ++i) {
      if (run->AppendSample(MakeSample(i, MakePoint(), static_cast<uint32_t>(i)))) _exit(1);
    }
  }
  while (fs::file_size(directory() / "samples.jsonl") < 20000) usleep(1000);
  kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  Result<RunDirectory> run = RunDirectory::Open(directory());
  ASSERT_TRUE(run) << run.error();
  const Result<SamplesFile> file = run->ReadSamples();
  ASSERT_TRUE(file) << file.error();
  ASSERT_GT(file->samples.size(), 5u);
  for (uint64_t i = 0; i < file->samples.size(); ++i) {
    EXPECT_EQ(file->samples[i].sequence, i);
  }
}

TEST_F(RunDirectoryTest, AFullDiskIsNamedAndTearsNothing) {
  RunDirectory run = CreateRun();
  ASSERT_EQ(Text(run.AppendSample(MakeSample(0))), "");
  const std::string before = Slurp(directory() / "samples.jsonl");

  // The limit of the file size fails a write in the middle, just as a full disk does.
  struct rlimit old;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit tight = old;
  tight.rlim_cur = before.size() + 100;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const std::string append = Text(run.AppendSample(MakeSample(1, MakePoint(), 1)));
  const std::string replace = Text(run.WriteSummary(
      Summarise(*run.ReadManifest(), std::vector<Sample>(8, MakeSample()))));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, old_handler);

  EXPECT_THAT(append, AllOf(StartsWith((directory() / "samples.jsonl").string()),
                            HasSubstr("cannot append: File too large")));
  EXPECT_EQ(Slurp(directory() / "samples.jsonl"), before);
  EXPECT_THAT(replace, StartsWith((directory() / "summary").string()));
  EXPECT_FALSE(fs::exists(directory() / "summary.csv.tmp"));
  EXPECT_FALSE(fs::exists(directory() / "summary.json.tmp"));
  // Once there is room again the run goes on.
  EXPECT_EQ(Text(run.AppendSample(MakeSample(1, MakePoint(), 1))), "");
  EXPECT_EQ(run.ReadSamples()->samples.size(), 2u);
}

TEST_F(RunDirectoryTest, DevFullIsAFullDisk) {
  RunDirectory run = CreateFinishedRun();
  const std::string before = Slurp(directory() / "theory.json");
  fs::create_symlink("/dev/full", directory() / "theory.json.tmp");
  EXPECT_THAT(Text(run.WriteTheory(theory_)),
              AllOf(StartsWith((directory() / "theory.json").string()),
                    HasSubstr("No space left on device")));
  EXPECT_EQ(Slurp(directory() / "theory.json"), before);
  Result<AppendFile> full = AppendFile::Open("/dev/full", AppendFile::Existing::kMust);
  ASSERT_TRUE(full) << full.error();
  EXPECT_EQ(Text(full->AppendLine("{}")), "/dev/full: cannot append: No space left on device");
}

// Each row damages one file of a finished run; the error must name the file and the field.
TEST_F(RunDirectoryTest, DamageKeepsARunFromBeingComplete) {
  RunDirectory run = CreateFinishedRun();
  struct Damage {
    const char* file;
    const char* from;  // the first occurrence; empty: the end of the file
    const char* to;
    const char* message;
  };
  for (const Damage& damage : {
           Damage{"manifest.json", "\"seed\": 1", "\"seed\": \"1\"", "seed: must be of type"},
           Damage{"manifest.json", "\"seed\": 1", "\"seed\": 1, \"seed\": 2", "occurs twice"},
           Damage{"manifest.json", "\"seed\"", "\"sead\"", "seed: is missing"},
           Damage{"samples.jsonl", "1.25", "NaN", ":1: is not JSON"},
           Damage{"samples.jsonl", "1.25", "1e999", ":1: is not JSON"},
           Damage{"samples.jsonl", "1.25", "-1.25", ":1: ns_per_op[0]: must be above 0"},
           Damage{"samples.jsonl", "1.25", "\"1,25\"", ":1: ns_per_op[0]: must be of type number"},
           Damage{"samples.jsonl", "\"round\":0,", "", ":1: round: is missing"},
           Damage{"samples.jsonl", "\"round\":1", "\"round\":0", ":3: round: the point has two"},
           Damage{"samples.jsonl", "\"sequence\":3", "\"sequence\":0", ":4: sequence: 0 occurs"},
           Damage{"samples.jsonl", "\n", "\n\n", ":2: is not JSON"},
           Damage{"samples.jsonl", "", "{\"torn", ":5: the last line is cut off"},
           Damage{"summary.json", "\"confidence\": 0.", "\"confidence\": 7.", "confidence: must"},
           Damage{"summary.json", "\"rounds\": 2", "\"rounds\": 3", "points[0].rounds: is 3"},
           Damage{"summary.json", "\"passes\": 6", "\"passes\": 5", "points[0].passes: is 5"},
           Damage{"summary.json", "\"machine\": \"a-", "\"machine\": \"b-", "machine: is"},
           Damage{"summary.json", "\"point_id\": \"", "\"point_id\": \"0123", "point_id: must"},
           Damage{"summary.json", "\"median\"", "\"Median\"", "median"},
           Damage{"summary.csv", "filter", "fitler", "is not what follows"},
           Damage{"theory.json", "0.25", "0.0", "curves[0].points[0].fpr: must be above 0"},
       }) {
    const fs::path path = directory() / damage.file;
    const std::string whole = Slurp(path);
    const size_t at = *damage.from == '\0' ? whole.size() : whole.find(damage.from);
    ASSERT_NE(at, std::string::npos) << damage.from;
    std::string damaged = whole;
    Spill(path, damaged.replace(at, std::string(damage.from).size(), damage.to));
    EXPECT_THAT(Text(run.MarkComplete()),
                AllOf(StartsWith(path.string() + ":"), HasSubstr(damage.message)));
    fs::remove(path);
    EXPECT_THAT(Text(run.MarkComplete()),
                AllOf(StartsWith(path.string() + ":"), HasSubstr("No such file")));
    Spill(path, whole);
    EXPECT_FALSE(fs::exists(directory() / "COMPLETE"));
  }
  EXPECT_EQ(Text(run.MarkComplete()), "");
}

TEST_F(RunDirectoryTest, ARunWithoutSamplesIsNotComplete) {
  RunDirectory run = CreateRun();
  ASSERT_EQ(Text(run.WriteSummary(Summarise(*run.ReadManifest(), {}))), "");
  ASSERT_EQ(Text(run.WriteTheory(theory_)), "");
  EXPECT_THAT(Text(run.MarkComplete()), HasSubstr("there is no sample"));
}

TEST_F(RunDirectoryTest, APointThatTheSummaryForgotIsMissed) {
  RunDirectory run = CreateFinishedRun();
  const std::vector<Sample> samples = MakeSamples();
  const json summary = Summarise(*run.ReadManifest(), std::span(samples).first(3));
  ASSERT_EQ(Text(run.WriteSummary(summary)), "");
  EXPECT_THAT(Text(run.MarkComplete()), AllOf(HasSubstr("summary.json: points: the point"),
                                              HasSubstr("is missing")));
}

}  // namespace
}  // namespace filterbench
