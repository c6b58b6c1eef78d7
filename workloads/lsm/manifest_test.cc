#include "workloads/lsm/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "filters/hash.h"
#include "workloads/lsm/testing.h"

namespace filterbench::lsm {
namespace {

using ::testing::HasSubstr;

const Manifest kManifest = {
    .next_number = 12,
    .levels = {{{11, 900, 800, "bloom{\"bits_per_key\":10}"}, {9, 5, 4, ""}},
               {},
               {{3, 7, 6, "x"}}}};

TEST(Manifest, ReadsWhatWasWritten) {
  MemoryFiles files;
  ASSERT_EQ(WriteManifest(files, "d", {}), std::nullopt);
  ASSERT_EQ(WriteManifest(files, "d", kManifest), std::nullopt);
  const Result<Manifest> manifest = ReadManifest(files, "d");
  ASSERT_TRUE(manifest) << manifest.error();
  EXPECT_EQ(*manifest, kManifest);
  EXPECT_EQ(files.files.size(), 1u);
}

TEST(Manifest, EveryFlippedBitAndEveryCutIsReported) {
  MemoryFiles files;
  ASSERT_EQ(WriteManifest(files, "d", kManifest), std::nullopt);
  std::string& bytes = files.files.at("d/MANIFEST")->bytes;
  const std::string sound = bytes;
  for (size_t bit = 0; bit < 8 * sound.size(); ++bit) {
    bytes = sound;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    const Result<Manifest> manifest = ReadManifest(files, "d");
    ASSERT_FALSE(manifest) << bit;
    EXPECT_THAT(manifest.error(), HasSubstr("d/MANIFEST: damaged"));
  }
  for (size_t size = 0; size < sound.size(); ++size) {
    bytes = sound.substr(0, size);
    EXPECT_FALSE(ReadManifest(files, "d")) << size;
  }
}

TEST(Manifest, WhatMakesNoSenseIsReportedThoughItsChecksumHolds) {
  const std::string file = R"({"number":1,"file_bytes":1,"data_bytes":1,"filter":""})";
  for (const std::string& body :
       {std::string("{}"), std::string("[]"), std::string("{"), std::string(),
        std::string(R"({"next_number":-1,"levels":"x"})"),
        R"({"next_number":1,"levels":[[)" + file + "]]}",
        R"({"next_number":2,"levels":[[)" + file + "," + file + "]]}"}) {
    MemoryFiles files;
    files.files["d/MANIFEST"] = std::make_shared<MemoryFiles::Content>(MemoryFiles::Content{
        fmt::format("filterbench lsm manifest 1 {:016x}\n{}", HashBytes(body, 0), body)});
    const Result<Manifest> manifest = ReadManifest(files, "d");
    ASSERT_FALSE(manifest) << body;
    EXPECT_THAT(manifest.error(), HasSubstr("d/MANIFEST: damaged"));
  }
}

}  // namespace
}  // namespace filterbench::lsm
