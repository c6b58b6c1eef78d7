#include "harness/record/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace filterbench {
namespace {

// `what` was tried on `path` and errno says why it failed.
Error SystemError(const std::filesystem::path& path, std::string_view what, int error = errno) {
  return Error{fmt::format("{}: cannot {}: {}", path.string(), what,
                           std::generic_category().message(error))};
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  // Some file systems report a full disk no earlier than here.
  int Close() { return close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

// Makes the entries of a directory durable: a rename or a new file in it.
std::optional<Error> SyncDirectory(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory.empty() ? "." : directory;
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return SystemError(path, "open");
  // EINVAL: a file system that cannot, such as some network ones, has nothing to flush.
  if (fsync(fd.get()) != 0 && errno != EINVAL) return SystemError(path, "flush");
  return std::nullopt;
}

}  // namespace

Result<std::string> ReadWholeFile(const std::filesystem::path& path) {
  const Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return SystemError(path, "open");
  std::string content;
  std::string buffer(size_t{1} << 16, '\0');
  while (true) {
    const ssize_t count = read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return SystemError(path, "read");
    if (count == 0) return content;
    content.append(buffer, 0, static_cast<size_t>(count));
  }
}

std::optional<Error> ReplaceFile(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  Descriptor fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) return SystemError(temporary, "create");
  std::optional<Error> error;
  while (!content.empty() && !error) {
    const ssize_t count = write(fd.get(), content.data(), content.size());
    if (count >= 0) {
      content.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      error = SystemError(temporary, "write");
    }
  }
  if (!error && fsync(fd.get()) != 0) error = SystemError(temporary, "flush");
  if (fd.Close() != 0 && !error) error = SystemError(temporary, "write");
  if (!error && rename(temporary.c_str(), path.c_str()) != 0) error = SystemError(path, "replace");
  if (error) {
    unlink(temporary.c_str());
    return error;
  }
  return SyncDirectory(path.parent_path());
}

std::optional<Error> CreateMark(const std::filesystem::path& path) {
  const Descriptor fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) return SystemError(path, "create");
  if (fsync(fd.get()) != 0) return SystemError(path, "flush");
  return SyncDirectory(path.parent_path());
}

Result<AppendFile> AppendFile::Open(const std::filesystem::path& path, Existing existing) {
  const int create = existing == Existing::kMust ? 0 : O_CREAT | O_EXCL;
  const int fd = open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | create, 0666);
  if (fd < 0) return SystemError(path, existing == Existing::kMust ? "open" : "create");
  AppendFile file(path, fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return SystemError(path, "lock");
    return Error{path.string() + ": is in use by another run"};
  }
  if (existing == Existing::kMustNot) {
    if (auto error = SyncDirectory(path.parent_path())) return *error;
  }
  return file;
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) close(fd_);
}

std::optional<Error> AppendFile::AppendLine(std::string_view line) {
  struct stat before;
  if (fstat(fd_, &before) != 0) return SystemError(path_, "inspect");
  // The system would take more for hours, and all of it would be gone at the end.
  if (before.st_nlink == 0) return Error{path_.string() + ": was removed while the run went on"};
  std::string bytes(line);
  bytes += '\n';
  std::string_view rest = bytes;
  // One call, as a rule. The disk filled up in the middle of the line if it wrote less; the second
  // call then says so.
  while (!rest.empty()) {
    const ssize_t count = write(fd_, rest.data(), rest.size());
    if (count >= 0) {
      rest.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      Error error = SystemError(path_, "append");
      if (rest.size() < bytes.size() && ftruncate(fd_, before.st_size) != 0) {
        error.message += "; the torn line at its end cannot be cut off either";
      }
      return error;
    }
  }
  return std::nullopt;
}

Result<uint64_t> AppendFile::CutTornLine() {
  struct stat status;
  if (fstat(fd_, &status) != 0) return SystemError(path_, "inspect");
  // Backwards in blocks until a line feed is found.
  std::string block(4096, '\0');
  off_t end = status.st_size;
  off_t keep = 0;
  while (end > 0 && keep == 0) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(block.size()));
    const ssize_t count = pread(fd_, block.data(), static_cast<size_t>(end - begin), begin);
    if (count != end - begin) return SystemError(path_, "read", count < 0 ? errno : EIO);
    const size_t line_feed = block.rfind('\n', static_cast<size_t>(count) - 1);
    if (line_feed != std::string::npos) keep = begin + static_cast<off_t>(line_feed) + 1;
    end = begin;
  }
  if (keep != status.st_size && ftruncate(fd_, keep) != 0) {
    return SystemError(path_, "cut off its torn last line");
  }
  return static_cast<uint64_t>(status.st_size - keep);
}

std::optional<Error> AppendFile::Sync() {
  if (fsync(fd_) != 0) return SystemError(path_, "flush");
  return std::nullopt;
}

}  // namespace filterbench
