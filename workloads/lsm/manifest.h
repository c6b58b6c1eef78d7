#ifndef FILTERBENCH_WORKLOADS_LSM_MANIFEST_H_
#define FILTERBENCH_WORKLOADS_LSM_MANIFEST_H_

// Which files a store consists of: one small file, replaced as a whole. Whatever else lies in the
// directory belongs to nothing.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filters/result.h"
#include "workloads/lsm/files.h"

namespace filterbench::lsm {

inline constexpr std::string_view kManifestName = "MANIFEST";
// What it is written as before it is renamed.
inline constexpr std::string_view kNewManifestName = "MANIFEST.new";

struct Manifest {
  struct File {
    uint64_t number = 0;
    uint64_t file_bytes = 0;
    uint64_t data_bytes = 0;  // of keys and values
    std::string filter;  // identity of the policy of its filter; empty: it has none

    bool operator==(const File&) const = default;
  };
  uint64_t next_number = 1;  // of a file; greater than any that was ever listed
  // levels[0] from the newest to the oldest, deeper ones in the order of their keys.
  std::vector<std::vector<File>> levels;

  bool operator==(const Manifest&) const = default;
};

// The error names the file: that it is damaged, or cannot be read.
Result<Manifest> ReadManifest(Files& files, const std::filesystem::path& directory);
// After an error either the old one is there or the new one.
std::optional<Error> WriteManifest(Files& files, const std::filesystem::path& directory,
                                   const Manifest& manifest);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_MANIFEST_H_
