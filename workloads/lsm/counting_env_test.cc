#include "workloads/lsm/counting_env.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "filters/hash.h"

namespace filterbench::lsm {
namespace {

class CountingEnvTest : public testing::Test {
 protected:
  CountingEnvTest()
      : directory_(std::filesystem::path(testing::TempDir()) /
                   fmt::format("counting_env_test_{}", ::getpid())) {
    std::filesystem::create_directories(directory_);
  }
  ~CountingEnvTest() override { std::filesystem::remove_all(directory_); }

  // A file of pseudo-random bytes that is no table.
  std::string Write(const std::string& name, size_t size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(Mix64(i + 1));
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return bytes;
  }
  std::string Path(const std::string& name) const { return directory_ / name; }

  static std::string Read(const leveldb::RandomAccessFile& file, uint64_t offset, size_t n) {
    std::string scratch(n, 'x');
    leveldb::Slice result;
    EXPECT_TRUE(file.Read(offset, n, &result, scratch.data()).ok());
    EXPECT_TRUE(result.empty() || result.data() == scratch.data());
    return result.ToString();
  }
  // Descriptors of this process that read the file with O_DIRECT.
  static int DirectDescriptors(const std::string& path) {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(entry, gone) != path) continue;
      const int flags = ::fcntl(std::stoi(entry.path().filename()), F_GETFL);
      count += flags >= 0 && (flags & O_DIRECT) != 0;
    }
    return count;
  }

  const std::filesystem::path directory_;
};

TEST_F(CountingEnvTest, DirectReadsAreTheBytesOfTheFileWhateverTheirAlignment) {
  if (const std::string why = CountingEnv::WhyNoDirectReads(directory_); !why.empty()) {
    GTEST_SKIP() << why;
  }
  for (const size_t size : {1, 511, 512, 4095, 4096, 4097, 70'001}) {
    const std::string bytes = Write("000005.ldb", size);
    CountingEnv env(true);
    leveldb::RandomAccessFile* opened = nullptr;
    ASSERT_TRUE(env.NewRandomAccessFile(Path("000005.ldb"), &opened).ok());
    const std::unique_ptr<leveldb::RandomAccessFile> file(opened);
    EXPECT_EQ(DirectDescriptors(Path("000005.ldb")), 1);
    for (const bool direct : {false, true}) {
      env.ReadDirectly(direct);
      for (uint64_t i = 0; i < 300; ++i) {
        const uint64_t offset = Mix64(2 * i + 1) % (size + 1);
        const uint64_t n = Mix64(2 * i + 2) % (i % 2 == 0 ? 9000 : 600);
        // A read beyond the end is as long as the file is.
        ASSERT_EQ(Read(*file, offset, n), bytes.substr(offset, n))
            << offset << " + " << n << " of " << size;
      }
    }
  }
  EXPECT_EQ(DirectDescriptors(Path("000005.ldb")), 0);
}

TEST_F(CountingEnvTest, FilesThatAreNotThereOrNotReadableAreErrors) {
  CountingEnv env(false);
  leveldb::RandomAccessFile* file = nullptr;
  EXPECT_TRUE(env.NewRandomAccessFile(Path("000007.ldb"), &file).IsNotFound());
  EXPECT_EQ(file, nullptr);
  EXPECT_NE(CountingEnv::WhyNoDirectReads(directory_ / "absent"), "");
  // A directory opens, but has no bytes to be read.
  ASSERT_TRUE(env.NewRandomAccessFile(directory_, &file).ok());
  const std::unique_ptr<leveldb::RandomAccessFile> owned(file);
  char byte = 0;
  leveldb::Slice result;
  EXPECT_TRUE(owned->Read(0, 1, &result, &byte).IsIOError());
}

TEST_F(CountingEnvTest, HeldWorkIsRunInVainAndOtherWorkIsWaitedFor) {
  CountingEnv env(false);
  struct Work {
    CountingEnv* env;
    std::string path;
    std::atomic<int> runs = 0;
    std::atomic<int> files = 0;
    static void Run(void* argument) {
      auto* work = static_cast<Work*>(argument);
      leveldb::WritableFile* file = nullptr;
      if (work->env->NewWritableFile(work->path, &file).ok()) {
        ++work->files;
        delete file;
      }
      // What it leads to is a part of it.
      if (++work->runs < 3) work->env->Schedule(Run, work);
    }
  } work{.env = &env, .path = Path("000001.ldb")};

  env.Schedule(Work::Run, &work);
  env.WaitUntilIdle();
  EXPECT_EQ(work.runs, 3);
  EXPECT_EQ(work.files, 3);

  work.runs = 0;
  env.HoldBackgroundWork(true);
  env.Schedule(Work::Run, &work);
  env.WaitUntilIdle();
  EXPECT_EQ(work.runs, 0);
  env.RunHeldInVain();
  EXPECT_EQ(work.runs, 3);
  EXPECT_EQ(work.files, 3);  // none of these

  leveldb::WritableFile* file = nullptr;
  EXPECT_FALSE(env.NewAppendableFile(Path("000001.ldb"), &file).ok());
  env.AllowWriting();
  ASSERT_TRUE(env.NewWritableFile(Path("000001.ldb"), &file).ok());
  const std::unique_ptr<leveldb::WritableFile> owned(file);
  EXPECT_TRUE(owned->Append("12345").ok());
  EXPECT_EQ(env.table_bytes_written(), 5u);
}

}  // namespace
}  // namespace filterbench::lsm
