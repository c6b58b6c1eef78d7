#ifndef FILTERBENCH_WORKLOADS_LSM_FILES_H_
#define FILTERBENCH_WORKLOADS_LSM_FILES_H_

// The few calls of the file system that a store makes, in one place: errors name the file, and
// tests put faults between any two of them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "filters/result.h"

namespace filterbench::lsm {

// Offsets, lengths and memory of direct reads are multiples of this.
inline constexpr uint64_t kDirectAlignment = 4096;

class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual std::optional<Error> Append(std::span<const std::byte> bytes) = 0;
  virtual std::optional<Error> SyncAndClose() = 0;
};

class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;
  // Exactly these bytes into `buffer`, which is aligned to kDirectAlignment where the file was
  // opened for direct reading, as are offset and length, except where the file ends.
  virtual std::optional<Error> Read(uint64_t offset, std::span<std::byte> buffer) const = 0;
  // Asks the kernel to forget the file's pages; they may stay where others use them.
  virtual void DropFromPageCache() const = 0;
};

class Files {
 public:
  virtual ~Files() = default;

  virtual Result<std::unique_ptr<WritableFile>> CreateNew(const std::filesystem::path& path) = 0;
  virtual Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::filesystem::path& path,
                                                               bool direct_io) = 0;
  // Replaces what is at `to`; durable once it returns.
  virtual std::optional<Error> Rename(const std::filesystem::path& from,
                                      const std::filesystem::path& to) = 0;
  virtual std::optional<Error> Remove(const std::filesystem::path& path) = 0;
  virtual Result<std::vector<std::string>> List(const std::filesystem::path& directory) = 0;
};

// The system's own. Without a flush to the disk after each file where `durable` is false: quicker
// for stores that are thrown away.
std::unique_ptr<Files> SystemFileCalls(bool durable);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_FILES_H_
