#include "workloads/lookup_keys.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

namespace filterbench {
namespace {

TEST(LookupKeys, HashesAreThoseOfTheKeySet) {
  for (const KeySetSpec& spec : {KeySetSpec{}, KeySetSpec{.kind = KeyKind::kSequential},
                                 KeySetSpec{.kind = KeyKind::kBytes, .length_bytes = 20}}) {
    const KeySet key_set = *KeySet::Open(spec, 7);
    const LookupKeys keys(key_set, 100, 1000, 0.3, 5);
    EXPECT_EQ(keys.size(), 1000u);
    EXPECT_EQ(keys.negatives(), 300u);
    uint64_t i = 0;
    uint64_t absent = 0;
    keys.ForEachHash(99, [&](uint64_t hash) {
      EXPECT_EQ(hash, key_set.Hash(keys.index(i), 99));
      EXPECT_EQ(keys.is_present(i), keys.index(i) < 100);
      absent += keys.is_present(i) ? 0 : 1;
      ++i;
    });
    EXPECT_EQ(i, 1000u);
    EXPECT_EQ(absent, 300u);
  }
}

// A filter errs for the same key again: asking it twice would be no further trial.
TEST(LookupKeys, NoAbsentKeyIsAskedTwice) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("lookup-keys-" + std::to_string(getpid()));
  {
    std::ofstream lines(path);
    for (int i = 0; i < 120; ++i) lines << "line " << i << "\n";
  }
  const KeySet key_set =
      *KeySet::Open({.kind = KeyKind::kFile, .path = path.string()}, 7);
  std::filesystem::remove(path);
  const LookupKeys keys(key_set, 100, 1000, 0.5, 5);
  EXPECT_EQ(keys.size(), 40u);
  EXPECT_EQ(keys.negatives(), 20u);
  std::set<uint64_t> absent;
  for (uint64_t i = 0; i < keys.size(); ++i) {
    if (!keys.is_present(i)) absent.insert(keys.index(i));
  }
  EXPECT_EQ(absent.size(), 20u);
}

}  // namespace
}  // namespace filterbench
