#include "workloads/lsm/files.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/resource.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "workloads/workload.h"

namespace filterbench::lsm {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string Content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Text whose every part differs from its others.
std::string SomeText(size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += std::to_string(text.size()) + ' ';
  text.resize(bytes);
  return text;
}

class FilesTest : public ::testing::TestWithParam<bool> {
 protected:
  FilesTest() {
    std::string name = (fs::temp_directory_path() / "files-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    directory_ = name;
  }
  ~FilesTest() override { fs::remove_all(directory_); }

  void Write(const fs::path& path, std::string_view text) {
    auto file = files_->CreateNew(path);
    ASSERT_TRUE(file) << file.error();
    ASSERT_FALSE((*file)->Append(Bytes(text)));
    ASSERT_FALSE((*file)->SyncAndClose());
  }

  const std::unique_ptr<Files> files_ = SystemFileCalls(/*durable=*/GetParam());
  fs::path directory_;
};

INSTANTIATE_TEST_SUITE_P(DurableAndNot, FilesTest, ::testing::Bool());

TEST_P(FilesTest, ReadsWhatWasWritten) {
  const fs::path path = directory_ / "a";
  const std::string text = SomeText(3 * kDirectAlignment + 5);
  auto file = files_->CreateNew(path);
  ASSERT_TRUE(file) << file.error();
  for (size_t at = 0; at < text.size(); at += 1000) {
    ASSERT_FALSE((*file)->Append(Bytes(std::string_view(text).substr(at, 1000))));
  }
  ASSERT_FALSE((*file)->Append({}));
  ASSERT_FALSE((*file)->SyncAndClose());
  EXPECT_EQ(Content(path), text);

  const auto reader = files_->OpenForReading(path, /*direct_io=*/false);
  ASSERT_TRUE(reader) << reader.error();
  EXPECT_EQ((*reader)->size(), text.size());
  (*reader)->DropFromPageCache();
  for (const auto& [offset, bytes] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, text.size()}, {1, 10}, {text.size() - 1, 1}, {text.size(), 0}}) {
    std::string read(bytes, '\0');
    ASSERT_FALSE((*reader)->Read(offset, std::as_writable_bytes(std::span(read))));
    EXPECT_EQ(read, text.substr(offset, bytes));
  }
}

TEST_P(FilesTest, ReadsDirectly) {
  const fs::path path = directory_ / "a";
  const std::string text = SomeText(3 * kDirectAlignment);
  Write(path, text);
  const auto reader = files_->OpenForReading(path, /*direct_io=*/true);
  if (!reader) {
    ASSERT_THAT(reader.error(), StartsWith(std::string(kNotHere)));
    GTEST_SKIP() << reader.error();
  }
  struct Free {
    void operator()(char* bytes) const { std::free(bytes); }
  };
  const std::unique_ptr<char, Free> buffer(
      static_cast<char*>(std::aligned_alloc(kDirectAlignment, 2 * kDirectAlignment)));
  const std::span<char> bytes(buffer.get(), 2 * kDirectAlignment);
  ASSERT_FALSE((*reader)->Read(kDirectAlignment, std::as_writable_bytes(bytes)));
  EXPECT_EQ(std::string_view(bytes.data(), bytes.size()), text.substr(kDirectAlignment));
  EXPECT_THAT((*reader)->Read(2 * kDirectAlignment, std::as_writable_bytes(bytes))->message,
              HasSubstr("ends at"));
}

// Files of /proc are read by no device, so that no kernel reads them directly.
TEST_P(FilesTest, DirectReadsThatTheFileSystemHasNotAreNotHere) {
  const fs::path path = "/proc/self/status";
  ASSERT_TRUE(files_->OpenForReading(path, /*direct_io=*/false));
  const auto reader = files_->OpenForReading(path, /*direct_io=*/true);
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error(), StartsWith(std::string(kNotHere)));
  EXPECT_THAT(reader.error(), HasSubstr(path.string()));
}

TEST_P(FilesTest, NewFilesReplaceNone) {
  const fs::path path = directory_ / "a";
  Write(path, "first");
  const auto file = files_->CreateNew(path);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error(), HasSubstr(path.string()));
  EXPECT_EQ(Content(path), "first");
  fs::create_symlink(directory_ / "elsewhere", directory_ / "link");
  EXPECT_FALSE(files_->CreateNew(directory_ / "link"));
  EXPECT_FALSE(fs::exists(directory_ / "elsewhere"));
}

TEST_P(FilesTest, RenamesReplace) {
  Write(directory_ / "a", "first");
  Write(directory_ / "b", "second");
  ASSERT_FALSE(files_->Rename(directory_ / "b", directory_ / "a"));
  EXPECT_EQ(Content(directory_ / "a"), "second");
  EXPECT_FALSE(fs::exists(directory_ / "b"));
}

TEST_P(FilesTest, NamesMayBeRelative) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  Write("a", "text");
  const auto error = files_->Rename("a", "b");
  fs::current_path(before);
  ASSERT_FALSE(error) << error->message;
  EXPECT_EQ(Content(directory_ / "b"), "text");
}

TEST_P(FilesTest, ListsInOrderAndRemoves) {
  for (const char* name : {"c", "a", "b"}) Write(directory_ / name, name);
  EXPECT_THAT(*files_->List(directory_), ElementsAre("a", "b", "c"));
  ASSERT_FALSE(files_->Remove(directory_ / "b"));
  EXPECT_THAT(*files_->List(directory_), ElementsAre("a", "c"));
}

TEST_P(FilesTest, ErrorsNameTheFile) {
  const fs::path missing = directory_ / "missing";
  EXPECT_THAT(files_->OpenForReading(missing, false).error(), StartsWith(missing.string()));
  EXPECT_THAT(files_->OpenForReading(missing, true).error(), StartsWith(missing.string()));
  EXPECT_THAT(files_->CreateNew(missing / "a").error(), StartsWith((missing / "a").string()));
  EXPECT_THAT(files_->Rename(missing, directory_ / "a")->message, StartsWith(missing.string()));
  EXPECT_THAT(files_->Remove(missing)->message, StartsWith(missing.string()));
  EXPECT_THAT(files_->List(missing).error(), StartsWith(missing.string()));
  EXPECT_THAT(files_->OpenForReading(directory_, false).error(), StartsWith(directory_.string()));
}

TEST_P(FilesTest, WhatOthersCutOffIsAnError) {
  const fs::path path = directory_ / "a";
  Write(path, SomeText(2 * kDirectAlignment));
  const auto reader = files_->OpenForReading(path, false);
  ASSERT_TRUE(reader) << reader.error();
  fs::resize_file(path, kDirectAlignment + 7);
  std::vector<std::byte> buffer(2 * kDirectAlignment);
  const auto error = (*reader)->Read(0, buffer);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, StartsWith(path.string()));
  EXPECT_THAT(error->message, HasSubstr("ends at 4103"));
}

// The limit on the size of files stands for a full disk: the write that meets it is short, the next
// one fails.
TEST_P(FilesTest, AFullDiskIsAnErrorAfterAShortWrite) {
  const fs::path path = directory_ / "a";
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 10'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string text = SomeText(15'000);
  std::optional<Error> error;
  if (auto file = files_->CreateNew(path)) error = (*file)->Append(Bytes(text));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, StartsWith(path.string()));
  EXPECT_THAT(error->message, HasSubstr("cannot be written"));
  EXPECT_EQ(Content(path), text.substr(0, 10'000));
}

}  // namespace
}  // namespace filterbench::lsm
