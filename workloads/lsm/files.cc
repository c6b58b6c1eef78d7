#include "workloads/lsm/files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "workloads/workload.h"

namespace filterbench::lsm {
namespace {

namespace fs = std::filesystem;

Error SystemError(const fs::path& path, const char* what, int number) {
  return Error{fmt::format("{}: {}: {}", path.string(), what, std::strerror(number))};
}

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }
  // The error of closing, which may be the first to tell of a write that failed.
  int Close() { return close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

 private:
  int number_;
};

Descriptor OpenRetrying(const fs::path& path, int flags) {
  int number;
  do {
    number = open(path.c_str(), flags | O_CLOEXEC, 0644);
  } while (number < 0 && errno == EINTR);
  return Descriptor(number);
}

// Of names that are relative to the directory of the process, the parent path is empty.
std::optional<Error> SyncDirectoryOf(const fs::path& path) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const Descriptor descriptor = OpenRetrying(directory, O_RDONLY | O_DIRECTORY);
  if (descriptor.get() < 0) return SystemError(directory, "cannot be opened", errno);
  if (fsync(descriptor.get()) != 0) return SystemError(directory, "cannot be synced", errno);
  return std::nullopt;
}

class SystemWritable final : public WritableFile {
 public:
  SystemWritable(fs::path path, Descriptor descriptor, bool durable)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), durable_(durable) {}

  std::optional<Error> Append(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_.get(), bytes.data(), bytes.size());
      if (written < 0) {
        if (errno == EINTR) continue;
        return SystemError(path_, "cannot be written", errno);
      }
      bytes = bytes.subspan(static_cast<size_t>(written));
    }
    return std::nullopt;
  }

  std::optional<Error> SyncAndClose() override {
    if (durable_ && fsync(descriptor_.get()) != 0) {
      return SystemError(path_, "cannot be synced", errno);
    }
    if (const int number = descriptor_.Close(); number != 0) {
      return SystemError(path_, "cannot be closed", number);
    }
    return std::nullopt;
  }

 private:
  const fs::path path_;
  Descriptor descriptor_;
  const bool durable_;
};

class SystemReadable final : public ReadableFile {
 public:
  SystemReadable(fs::path path, Descriptor descriptor, uint64_t size)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size) {}

  uint64_t size() const override { return size_; }

  std::optional<Error> Read(uint64_t offset, std::span<std::byte> buffer) const override {
    const uint64_t first = offset;
    while (!buffer.empty()) {
      const ssize_t got = pread(descriptor_.get(), buffer.data(), buffer.size(),
                                static_cast<off_t>(offset));
      if (got < 0) {
        if (errno == EINTR) continue;
        return SystemError(path_, "cannot be read", errno);
      }
      if (got == 0) {
        return Error{fmt::format("{}: ends at {}, {} bytes at {} were to be read", path_.string(),
                                 offset, offset - first + buffer.size(), first)};
      }
      offset += static_cast<uint64_t>(got);
      buffer = buffer.subspan(static_cast<size_t>(got));
    }
    return std::nullopt;
  }

  void DropFromPageCache() const override {
    // Only clean pages are forgotten.
    fdatasync(descriptor_.get());
    posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_DONTNEED);
  }

 private:
  const fs::path path_;
  const Descriptor descriptor_;
  const uint64_t size_;
};

class SystemFiles final : public Files {
 public:
  explicit SystemFiles(bool durable) : durable_(durable) {}

  Result<std::unique_ptr<WritableFile>> CreateNew(const fs::path& path) override {
    Descriptor descriptor = OpenRetrying(path, O_WRONLY | O_CREAT | O_EXCL);
    if (descriptor.get() < 0) return SystemError(path, "cannot be created", errno);
    return std::unique_ptr<WritableFile>(
        std::make_unique<SystemWritable>(path, std::move(descriptor), durable_));
  }

  Result<std::unique_ptr<ReadableFile>> OpenForReading(const fs::path& path,
                                                       bool direct_io) override {
    Descriptor descriptor = OpenRetrying(path, O_RDONLY | (direct_io ? O_DIRECT : 0));
    if (descriptor.get() < 0) {
      if (direct_io && errno == EINVAL) {
        return Error{fmt::format("{}{}: its file system has no direct reading (O_DIRECT); choose "
                                 "another one by TMPDIR, or `reads` cached",
                                 kNotHere, path.string())};
      }
      return SystemError(path, "cannot be opened", errno);
    }
    struct stat status;
    if (fstat(descriptor.get(), &status) != 0) return SystemError(path, "has no size", errno);
    if (!S_ISREG(status.st_mode)) return Error{path.string() + ": is no file"};
    return std::unique_ptr<ReadableFile>(std::make_unique<SystemReadable>(
        path, std::move(descriptor), static_cast<uint64_t>(status.st_size)));
  }

  std::optional<Error> Rename(const fs::path& from, const fs::path& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) {
      return SystemError(from, "cannot be renamed", errno);
    }
    return durable_ ? SyncDirectoryOf(to) : std::nullopt;
  }

  std::optional<Error> Remove(const fs::path& path) override {
    if (unlink(path.c_str()) != 0) return SystemError(path, "cannot be removed", errno);
    return std::nullopt;
  }

  Result<std::vector<std::string>> List(const fs::path& directory) override {
    std::error_code error;
    std::vector<std::string> names;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
      names.push_back(entry->path().filename().string());
    }
    if (error) return Error{fmt::format("{}: {}", directory.string(), error.message())};
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  const bool durable_;
};

}  // namespace

std::unique_ptr<Files> SystemFileCalls(bool durable) {
  return std::make_unique<SystemFiles>(durable);
}

}  // namespace filterbench::lsm
