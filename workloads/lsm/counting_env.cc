#include "workloads/lsm/counting_env.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <leveldb/slice.h>
#include <leveldb/status.h>

#include "workloads/lsm/files.h"

namespace filterbench::lsm {
namespace {

using leveldb::Slice;
using leveldb::Status;

constexpr uint64_t kFooterBytes = 48;        // two handles, padding, and a magic number
constexpr uint64_t kBlockTrailerBytes = 5;   // type of compression, and a checksum

std::string Why(int error) { return std::generic_category().message(error); }

// A number of a LevelDB file, seven bits a byte; nothing where the bytes end before it does.
std::optional<uint64_t> TakeVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};
std::optional<BlockHandle> TakeHandle(std::string_view& bytes) {
  const auto offset = TakeVarint(bytes);
  const auto size = TakeVarint(bytes);
  if (!offset || !size) return std::nullopt;
  return BlockHandle{*offset, *size};
}

// The one entry of a metaindex block, of a table with a filter: "filter.<policy>" -> its handle.
std::optional<BlockHandle> FilterHandleOf(std::string_view metaindex) {
  const auto shared = TakeVarint(metaindex);
  const auto key_bytes = TakeVarint(metaindex);
  const auto value_bytes = TakeVarint(metaindex);
  if (shared != 0u || !key_bytes || !value_bytes) return std::nullopt;
  if (*key_bytes > metaindex.size() || *value_bytes > metaindex.size() - *key_bytes) {
    return std::nullopt;
  }
  if (!metaindex.starts_with("filter.")) return std::nullopt;
  metaindex = metaindex.substr(*key_bytes, *value_bytes);
  return TakeHandle(metaindex);
}

// The number in ".../000123.ldb"; 0 where it is no table's name.
uint64_t TableNumber(const std::string& path) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  if (name.extension() != ".ldb" && name.extension() != ".sst") return 0;
  const std::string stem = name.stem();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(stem.data(), stem.data() + stem.size(), number);
  return error == std::errc() && end == stem.data() + stem.size() ? number : 0;
}

// Memory for direct reads, one per thread, as large as the largest of them.
char* AlignedBuffer(uint64_t bytes) {
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  thread_local std::unique_ptr<char, Free> buffer;
  thread_local uint64_t capacity = 0;
  if (bytes > capacity) {
    buffer.reset(static_cast<char*>(std::aligned_alloc(kDirectAlignment, bytes)));
    capacity = buffer != nullptr ? bytes : 0;
  }
  return buffer.get();
}

// Bytes read, fewer than asked only at the end of the file; nothing on an error, which errno says.
// `unit`: of direct reads, whose last one before the end of the file may be short, after which the
// next would not be aligned.
std::optional<uint64_t> ReadAt(int fd, uint64_t offset, char* to, uint64_t bytes, uint64_t unit) {
  uint64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd, to + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    done += static_cast<uint64_t>(got);
    if (got == 0 || done % unit != 0) break;
  }
  return done;
}

std::optional<uint64_t> ReadDirectlyAt(int fd, uint64_t offset, char* to, uint64_t bytes) {
  const uint64_t begin = offset / kDirectAlignment * kDirectAlignment;
  const uint64_t end =
      (offset + bytes + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
  char* buffer = AlignedBuffer(end - begin);
  if (buffer == nullptr) {
    errno = ENOMEM;
    return std::nullopt;
  }
  const auto got = ReadAt(fd, begin, buffer, end - begin, kDirectAlignment);
  if (!got) return std::nullopt;
  const uint64_t skipped = offset - begin;
  const uint64_t useful = *got > skipped ? std::min(*got - skipped, bytes) : 0;
  std::memcpy(to, buffer + skipped, useful);
  return useful;
}

}  // namespace

TableReads operator-(TableReads a, const TableReads& b) {
  a.data_reads -= b.data_reads;
  a.data_bytes -= b.data_bytes;
  a.filter_reads -= b.filter_reads;
  a.filter_bytes -= b.filter_bytes;
  a.index_reads -= b.index_reads;
  a.index_bytes -= b.index_bytes;
  a.data_ns -= b.data_ns;
  return a;
}

struct CountingEnv::FileCounts {
  std::atomic<uint64_t> data_reads = 0;
  std::atomic<uint64_t> data_bytes = 0;
  std::atomic<uint64_t> filter_reads = 0;
  std::atomic<uint64_t> filter_bytes = 0;
  std::atomic<uint64_t> index_reads = 0;
  std::atomic<uint64_t> index_bytes = 0;
  std::atomic<uint64_t> data_ns = 0;

  void AddTo(TableReads& sum) const {
    sum.data_reads += data_reads;
    sum.data_bytes += data_bytes;
    sum.filter_reads += filter_reads;
    sum.filter_bytes += filter_bytes;
    sum.index_reads += index_reads;
    sum.index_bytes += index_bytes;
    sum.data_ns += data_ns;
  }
};

class CountingEnv::TableFile final : public leveldb::RandomAccessFile {
 public:
  TableFile(CountingEnv& env, std::string path, uint64_t number, uint64_t size, int fd,
            int direct_fd, std::shared_ptr<FileCounts> counts)
      : env_(env),
        path_(std::move(path)),
        number_(number),
        size_(size),
        fd_(fd),
        direct_fd_(direct_fd),
        counts_(std::move(counts)) {}
  ~TableFile() override {
    ::close(fd_);
    if (direct_fd_ >= 0) ::close(direct_fd_);
  }

  Status Read(uint64_t offset, size_t n, Slice* result, char* scratch) const override {
    const bool direct = direct_fd_ >= 0 && env_.direct_now_.load(std::memory_order_relaxed);
    const bool timed = env_.time_reads_.load(std::memory_order_relaxed);
    const auto begin = timed ? std::chrono::steady_clock::now()
                             : std::chrono::steady_clock::time_point{};
    const auto got = direct ? ReadDirectlyAt(direct_fd_, offset, scratch, n)
                            : ReadAt(fd_, offset, scratch, n, 1);
    if (!got) {
      *result = Slice();
      return Status::IOError(path_, fmt::format("offset {}: {}", offset, Why(errno)));
    }
    *result = Slice(scratch, *got);
    Count(offset, {scratch, *got}, timed ? std::chrono::steady_clock::now() - begin
                                         : std::chrono::nanoseconds{});
    return Status::OK();
  }

 private:
  // What was read is told by where it lies, which footer and metaindex say; a table is opened by
  // reading these, in this order, before anything else of it is read.
  void Count(uint64_t offset, std::string_view bytes, std::chrono::nanoseconds took) const {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    if (offset + kFooterBytes >= size_) {
      std::string_view footer = bytes;
      if (const auto metaindex = TakeHandle(footer)) metaindex_offset_.store(metaindex->offset);
    } else if (offset == metaindex_offset_.load(kRelaxed)) {
      if (const auto filter = FilterHandleOf(bytes)) filter_offset_.store(filter->offset);
    } else if (offset == filter_offset_.load(kRelaxed)) {
      counts_->filter_reads.fetch_add(1, kRelaxed);
      counts_->filter_bytes.fetch_add(bytes.size(), kRelaxed);
      OnFilterBlock observer;
      {
        const std::lock_guard lock(env_.mutex_);
        observer = env_.observer_;
      }
      if (observer && bytes.size() > kBlockTrailerBytes) {
        observer(number_, bytes.substr(0, bytes.size() - kBlockTrailerBytes));
      }
      return;
    } else if (offset < metaindex_offset_.load(kRelaxed)) {
      counts_->data_reads.fetch_add(1, kRelaxed);
      counts_->data_bytes.fetch_add(bytes.size(), kRelaxed);
      counts_->data_ns.fetch_add(static_cast<uint64_t>(took.count()), kRelaxed);
      env_.last_data_file_.store(number_, kRelaxed);
      return;
    }
    counts_->index_reads.fetch_add(1, kRelaxed);
    counts_->index_bytes.fetch_add(bytes.size(), kRelaxed);
  }

  CountingEnv& env_;
  const std::string path_;
  const uint64_t number_;
  const uint64_t size_;
  const int fd_;
  const int direct_fd_;  // -1: none
  const std::shared_ptr<FileCounts> counts_;
  mutable std::atomic<uint64_t> metaindex_offset_ = UINT64_MAX;
  mutable std::atomic<uint64_t> filter_offset_ = UINT64_MAX;
};

class CountingEnv::PlainWritableFile final : public leveldb::WritableFile {
 public:
  PlainWritableFile(CountingEnv& env, std::string path, std::unique_ptr<leveldb::WritableFile> file)
      : env_(env),
        path_(std::move(path)),
        is_table_(TableNumber(path_) != 0),
        file_(std::move(file)) {}

  Status Append(const Slice& data) override {
    if (env_.refuse_writing_) return Status::IOError(path_, "writing is refused");
    if (is_table_) env_.table_bytes_written_ += data.size();
    return file_->Append(data);
  }
  Status Close() override { return file_->Close(); }
  Status Flush() override { return file_->Flush(); }
  Status Sync() override { return file_->Flush(); }

 private:
  CountingEnv& env_;
  const std::string path_;
  const bool is_table_;
  const std::unique_ptr<leveldb::WritableFile> file_;
};

struct CountingEnv::Scheduled {
  CountingEnv* env;
  void (*work)(void*);
  void* argument;
};

CountingEnv::CountingEnv(bool direct_io)
    : EnvWrapper(leveldb::Env::Default()), direct_io_(direct_io) {}

// A database that was closed may have work that has just ended, but not yet returned to us.
CountingEnv::~CountingEnv() { WaitUntilIdle(); }

std::string CountingEnv::WhyNoDirectReads(const std::filesystem::path& directory) {
  std::string path = directory / "direct_XXXXXX";
  const int fd = ::mkstemp(path.data());
  if (fd < 0) return fmt::format("{}: {}", directory.string(), Why(errno));
  const int direct_fd = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  const int error = errno;
  if (direct_fd >= 0) ::close(direct_fd);
  ::close(fd);
  ::unlink(path.c_str());
  if (direct_fd >= 0) return {};
  return fmt::format("{}: O_DIRECT: {}", directory.string(), Why(error));
}

void CountingEnv::ObserveFilterBlocks(OnFilterBlock observer) {
  const std::lock_guard lock(mutex_);
  observer_ = std::move(observer);
}

TableReads CountingEnv::reads() const {
  const std::lock_guard lock(mutex_);
  TableReads sum;
  for (const auto& [number, counts] : files_) counts->AddTo(sum);
  return sum;
}

TableReads CountingEnv::reads_of(uint64_t file) const {
  const std::lock_guard lock(mutex_);
  TableReads reads;
  if (const auto found = files_.find(file); found != files_.end()) found->second->AddTo(reads);
  return reads;
}

void CountingEnv::HoldBackgroundWork(bool on) {
  const std::lock_guard lock(mutex_);
  hold_ = on;
}

void CountingEnv::RunHeldInVain() {
  refuse_writing_ = true;
  while (true) {
    std::pair<void (*)(void*), void*> next;
    {
      const std::lock_guard lock(mutex_);
      if (held_.empty()) return;
      next = held_.front();
      held_.pop_front();
    }
    next.first(next.second);
  }
}

void CountingEnv::WaitUntilIdle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return outstanding_ == 0; });
}

void CountingEnv::Schedule(void (*work)(void*), void* argument) {
  {
    const std::lock_guard lock(mutex_);
    if (hold_) {
      held_.emplace_back(work, argument);
      return;
    }
    ++outstanding_;
  }
  target()->Schedule(RunScheduled, new Scheduled{this, work, argument});
}

// Work that goes on schedules its successor before it returns, so that the count of what is
// outstanding is 0 only when nothing follows.
void CountingEnv::RunScheduled(void* scheduled) {
  const std::unique_ptr<Scheduled> owned(static_cast<Scheduled*>(scheduled));
  owned->work(owned->argument);
  const std::lock_guard lock(owned->env->mutex_);
  if (--owned->env->outstanding_ == 0) owned->env->idle_.notify_all();
}

Status CountingEnv::NewRandomAccessFile(const std::string& path,
                                        leveldb::RandomAccessFile** file) {
  *file = nullptr;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return errno == ENOENT ? Status::NotFound(path, Why(errno)) : Status::IOError(path, Why(errno));
  }
  int direct_fd = -1;
  if (direct_io_) {
    direct_fd = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (direct_fd < 0) {
      const Status status = Status::IOError(path, fmt::format("O_DIRECT: {}", Why(errno)));
      ::close(fd);
      return status;
    }
  }
  const off_t size = ::lseek(fd, 0, SEEK_END);
  const uint64_t number = TableNumber(path);
  std::shared_ptr<FileCounts> counts;
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<FileCounts>& known = files_[number];
    if (known == nullptr) known = std::make_shared<FileCounts>();
    counts = known;
  }
  *file = new TableFile(*this, path, number, static_cast<uint64_t>(size), fd, direct_fd,
                        std::move(counts));
  return Status::OK();
}

Status CountingEnv::Wrap(const std::string& path, Status status, leveldb::WritableFile** file) {
  if (!status.ok()) return status;
  *file = new PlainWritableFile(*this, path, std::unique_ptr<leveldb::WritableFile>(*file));
  return status;
}

Status CountingEnv::NewWritableFile(const std::string& path, leveldb::WritableFile** file) {
  if (refuse_writing_) {
    *file = nullptr;
    return Status::IOError(path, "writing is refused");
  }
  return Wrap(path, target()->NewWritableFile(path, file), file);
}

Status CountingEnv::NewAppendableFile(const std::string& path, leveldb::WritableFile** file) {
  if (refuse_writing_) {
    *file = nullptr;
    return Status::IOError(path, "writing is refused");
  }
  return Wrap(path, target()->NewAppendableFile(path, file), file);
}

}  // namespace filterbench::lsm
