#ifndef FILTERBENCH_HARNESS_RECORD_FILE_H_
#define FILTERBENCH_HARNESS_RECORD_FILE_H_

// Files that are whole or not there, and files that only grow by whole lines. Every error names the
// path and says what the system said.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "filters/result.h"

namespace filterbench {

Result<std::string> ReadWholeFile(const std::filesystem::path& path);

// Writes beside the file, flushes to the device and renames: readers see the old content or the new
// one, also after a crash of the machine.
[[nodiscard]] std::optional<Error> ReplaceFile(const std::filesystem::path& path,
                                               std::string_view content);

// Makes an empty file that must not exist yet, durable when this returns.
[[nodiscard]] std::optional<Error> CreateMark(const std::filesystem::path& path);

// A file to which lines are appended, locked for this object (flock).
class AppendFile {
 public:
  enum class Existing { kMust, kMustNot };
  static Result<AppendFile> Open(const std::filesystem::path& path, Existing existing);

  AppendFile(AppendFile&& other) noexcept
      : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}
  AppendFile& operator=(AppendFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~AppendFile();

  // `line` and a line feed in one write(2). What a failed write left behind is cut off again.
  [[nodiscard]] std::optional<Error> AppendLine(std::string_view line);
  // Cuts off what follows the last line feed; the number of bytes.
  Result<uint64_t> CutTornLine();
  // Flushes to the device.
  [[nodiscard]] std::optional<Error> Sync();

 private:
  AppendFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_FILE_H_
