// What was flushed survives whatever call of the file system fails, and whatever the store was
// doing then.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "workloads/lsm/store.h"
#include "workloads/lsm/testing.h"

namespace filterbench::lsm {
namespace {

using Model = std::map<std::string, std::string>;
using Fails = FaultyFiles::Fails;

constexpr int kKeys = 24;
const std::filesystem::path kDirectory = "d";

std::string KeyOf(int i) { return fmt::format("key{:03}", i); }

StoreOptions OptionsOf(Shape shape, Files& files) {
  static const AlwaysYes policy;
  return {.shape = shape,
          .block_bytes = 256,
          .level0_files = 2,
          .size_ratio = 2,
          .level1_bytes = 120,
          .file_bytes = 60,
          .min_threshold = 2,
          .max_threshold = 3,
          .policy_of = [](int, bool) { return &policy; },
          .files = &files};
}

Result<Model> Contents(Store& store) {
  Model contents;
  const auto error = store.Scan({}, nullptr, [&](std::string_view key, std::string_view value) {
    contents.emplace(key, value);
    return true;
  });
  if (error) return *error;
  return contents;
}

// What a script came to.
struct Outcome {
  // Contents that the store may have after it is opened again: those of the last flush that
  // succeeded, and of every later one that was tried.
  std::vector<Model> possible{Model{}};
  bool opened = false;
};

// Puts, deletions, flushes and compactions. Goes on after errors, as an application may.
void RunScript(Shape shape, Files& files, Outcome& outcome) {
  Result<std::unique_ptr<Store>> opened = Store::Open(kDirectory, OptionsOf(shape, files));
  if (!opened) return;
  outcome.opened = true;
  Store& store = **opened;
  Model model;
  const auto flushed = [&](const std::optional<Error>& error) {
    if (!error) outcome.possible.clear();
    outcome.possible.push_back(model);
  };
  for (int round = 0; round < 7; ++round) {
    for (int i = 0; i < 6; ++i) {
      const std::string key = KeyOf((round * 5 + i * 7) % kKeys);
      if ((round + i) % 4 == 3) {
        ASSERT_EQ(store.Delete(key), std::nullopt);
        model.erase(key);
      } else {
        const std::string value = fmt::format("{}/{}", round, i);
        ASSERT_EQ(store.Put(key, value), std::nullopt);
        model[key] = value;
      }
    }
    flushed(round == 4 ? store.CompactAll() : store.Flush());
    if (round == 5) (void)store.RebuildFilters();
    // Answers of the store that goes on: an error, or right.
    const Result<Model> contents = Contents(store);
    if (contents) {
      ASSERT_EQ(*contents, model) << "round " << round;
    }
    for (int i = 0; i < kKeys; ++i) {
      std::string value;
      const Result<bool> found = store.Get(KeyOf(i), &value, nullptr);
      if (!found) continue;
      const auto at = model.find(KeyOf(i));
      ASSERT_EQ(*found, at != model.end()) << KeyOf(i);
      if (*found) {
        ASSERT_EQ(value, at->second) << KeyOf(i);
      }
    }
  }
}

std::set<std::string> NamesOf(MemoryFiles& files) {
  const Result<std::vector<std::string>> names = files.List(kDirectory);
  return {names->begin(), names->end()};
}

// Opened with sound files: one of the possible contents, key by key too; nothing left over; and it
// can be written.
void ExpectSound(Shape shape, MemoryFiles& files, const Outcome& outcome) {
  Result<std::unique_ptr<Store>> opened = Store::Open(kDirectory, OptionsOf(shape, files));
  ASSERT_TRUE(opened) << opened.error();
  Store& store = **opened;
  const Result<Model> contents = Contents(store);
  ASSERT_TRUE(contents) << contents.error();
  ASSERT_NE(std::find(outcome.possible.begin(), outcome.possible.end(), *contents),
            outcome.possible.end());
  for (int i = 0; i < kKeys; ++i) {
    std::string value;
    const Result<bool> found = store.Get(KeyOf(i), &value, nullptr);
    ASSERT_TRUE(found) << found.error();
    const auto at = contents->find(KeyOf(i));
    ASSERT_EQ(*found, at != contents->end()) << KeyOf(i);
    if (*found) {
      ASSERT_EQ(value, at->second);
    }
  }
  EXPECT_TRUE(store.warnings().empty());

  const auto expect_nothing_left_over = [&] {
    std::set<std::string> names = {"MANIFEST"};
    for (size_t run = 0; run < store.runs().size(); ++run) {
      for (const Table* table : store.tables(run)) {
        names.insert(fmt::format("{:06}.table", table->facts().number));
      }
    }
    ASSERT_EQ(NamesOf(files), names);
  };
  expect_nothing_left_over();
  ASSERT_EQ(store.Put("new", "value"), std::nullopt);
  const std::optional<Error> error = store.CompactAll();
  ASSERT_EQ(error, std::nullopt) << error->message;
  expect_nothing_left_over();
}

struct Case {
  Shape shape;
  Fails fails;
  bool kills;
};

class Crash : public ::testing::TestWithParam<Case> {};

TEST_P(Crash, AnyCallMayFail) {
  const Case& c = GetParam();
  uint64_t calls = 0;
  {
    MemoryFiles sound;
    FaultyFiles counted(sound);
    Outcome outcome;
    ASSERT_NO_FATAL_FAILURE(RunScript(c.shape, counted, outcome));
    ASSERT_EQ(outcome.possible.size(), 1u);
    ASSERT_NO_FATAL_FAILURE(ExpectSound(c.shape, sound, outcome));
    calls = counted.calls();
  }
  ASSERT_GT(calls, 100u);
  for (uint64_t call = 1; call <= calls; ++call) {
    SCOPED_TRACE(fmt::format("call {} of {}", call, calls));
    MemoryFiles files;
    FaultyFiles faulty(files, {.at = call, .fails = c.fails, .kills = c.kills});
    Outcome outcome;
    ASSERT_NO_FATAL_FAILURE(RunScript(c.shape, faulty, outcome));
    ASSERT_TRUE(faulty.failed());
    if (c.kills) files.LoseUnsynced();
    ASSERT_NO_FATAL_FAILURE(ExpectSound(c.shape, files, outcome));
  }
}

// Opening is interrupted itself, over and over, each time one call later.
TEST_P(Crash, OpeningMayFailToo) {
  const Case& c = GetParam();
  MemoryFiles files;
  Outcome outcome;
  {
    FaultyFiles sound(files);
    ASSERT_NO_FATAL_FAILURE(RunScript(c.shape, sound, outcome));
  }
  // As a crash leaves it: unfinished files of every kind.
  for (const std::string name : {"MANIFEST.new", "000900.table"}) {
    files.files[(kDirectory / name).string()] =
        std::make_shared<MemoryFiles::Content>(MemoryFiles::Content{"torn", true});
  }
  bool failed = true;
  for (uint64_t call = 1; failed; ++call) {
    SCOPED_TRACE(fmt::format("call {}", call));
    FaultyFiles faulty(files, {.at = call, .fails = c.fails, .kills = c.kills});
    const auto opened = Store::Open(kDirectory, OptionsOf(c.shape, faulty));
    failed = faulty.failed();
    // A store goes without a filter that cannot be read, but not in silence.
    ASSERT_EQ(opened.has_value() && (*opened)->warnings().empty(), !failed);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectSound(c.shape, files, outcome));
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Shape shape : {Shape::kFiles, Shape::kLeveled, Shape::kSizeTiered}) {
    for (const Fails fails : {Fails::kUndone, Fails::kHalf, Fails::kDone}) {
      for (const bool kills : {false, true}) cases.push_back({shape, fails, kills});
    }
  }
  return cases;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  constexpr const char* kFailsNames[] = {"undone", "half", "done"};
  return fmt::format("{}_{}_{}", kShapeNames[static_cast<size_t>(info.param.shape)],
                     kFailsNames[static_cast<size_t>(info.param.fails)],
                     info.param.kills ? "killed" : "goes_on");
}

INSTANTIATE_TEST_SUITE_P(, Crash, ::testing::ValuesIn(Cases()), NameOf);

}  // namespace
}  // namespace filterbench::lsm
