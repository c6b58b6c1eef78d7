#ifndef FILTERBENCH_WORKLOADS_LSM_COUNTING_ENV_H_
#define FILTERBENCH_WORKLOADS_LSM_COUNTING_ENV_H_

// LevelDB's view of the system, with what a measurement needs: every read of a table file is
// counted by what it reads, files can be read past the page cache, and background work waits when
// told to.
//
// Table files are read with pread: LevelDB's own Env maps them into memory, where a read cannot be
// seen. What is written is not flushed to the disk: these databases are thrown away.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <leveldb/env.h>

namespace filterbench::lsm {

// Reads of table files. A data block is what a get reads; filter blocks, indexes (with metaindex
// and footer) are read when a table is opened, and stay in memory until it is closed.
struct TableReads {
  uint64_t data_reads = 0;
  uint64_t data_bytes = 0;  // with the trailer of each block
  uint64_t filter_reads = 0;
  uint64_t filter_bytes = 0;
  uint64_t index_reads = 0;
  uint64_t index_bytes = 0;
  uint64_t data_ns = 0;     // within reads of data blocks, while TimeReads(true)

  bool operator==(const TableReads&) const = default;
};
TableReads operator-(TableReads a, const TableReads& b);

// Thread-safe, as LevelDB asks. Outlives its databases.
class CountingEnv final : public leveldb::EnvWrapper {
 public:
  // Called with the filter block of a table as LevelDB reads it, in the memory where it is kept
  // until the table is closed: addresses of filters that a policy is asked later lie in it.
  using OnFilterBlock = std::function<void(uint64_t file, std::string_view block)>;

  // `direct_io`: files can be read past the page cache, see ReadDirectly.
  explicit CountingEnv(bool direct_io);
  ~CountingEnv() override;

  // Why files in the directory cannot be read with O_DIRECT; empty if they can.
  static std::string WhyNoDirectReads(const std::filesystem::path& directory);

  // Reads from now on go past the page cache, or through it (as at first). Only with direct_io.
  void ReadDirectly(bool on) { direct_now_ = on; }
  void TimeReads(bool on) { time_reads_ = on; }
  void ObserveFilterBlocks(OnFilterBlock observer);

  TableReads reads() const;            // of all files
  TableReads reads_of(uint64_t file) const;
  uint64_t last_data_file() const { return last_data_file_; }  // of the last data block read
  uint64_t table_bytes_written() const { return table_bytes_written_; }

  // Compactions and flushes that LevelDB schedules. Held: they are not run, until RunHeldInVain
  // does so with all writing refused, upon which a compaction fails and changes nothing. Needed
  // before a database with held work is closed, since closing waits for it; AllowWriting after
  // that.
  void HoldBackgroundWork(bool on);
  void RunHeldInVain();
  void AllowWriting() { refuse_writing_ = false; }
  // Until all that was scheduled, and what that schedules, is done. Not while it is held.
  void WaitUntilIdle();

  leveldb::Status NewRandomAccessFile(const std::string& path,
                                      leveldb::RandomAccessFile** file) override;
  leveldb::Status NewWritableFile(const std::string& path, leveldb::WritableFile** file) override;
  leveldb::Status NewAppendableFile(const std::string& path,
                                    leveldb::WritableFile** file) override;
  void Schedule(void (*work)(void*), void* argument) override;
  // Writers that LevelDB slows down for the sake of compactions that are held would wait in vain.
  void SleepForMicroseconds(int) override {}

 private:
  struct FileCounts;
  class TableFile;
  class PlainWritableFile;
  struct Scheduled;

  static void RunScheduled(void* scheduled);
  leveldb::Status Wrap(const std::string& path, leveldb::Status status,
                       leveldb::WritableFile** file);

  const bool direct_io_;
  std::atomic<bool> direct_now_ = false;
  std::atomic<bool> time_reads_ = false;
  std::atomic<bool> refuse_writing_ = false;
  std::atomic<uint64_t> last_data_file_ = 0;
  std::atomic<uint64_t> table_bytes_written_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable idle_;
  bool hold_ = false;
  std::deque<std::pair<void (*)(void*), void*>> held_;
  uint64_t outstanding_ = 0;
  OnFilterBlock observer_;
  std::map<uint64_t, std::shared_ptr<FileCounts>> files_;  // by number, closed ones too
};

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_COUNTING_ENV_H_
