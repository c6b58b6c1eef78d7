#ifndef FILTERBENCH_HARNESS_TEMPORARY_DIRECTORY_H_
#define FILTERBENCH_HARNESS_TEMPORARY_DIRECTORY_H_

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace filterbench {

// A directory that lives as long as the object, where the system wants temporary files (TMPDIR).
// The constructor throws std::runtime_error where there can be none.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error) throw std::runtime_error("no temporary directory: TMPDIR is none");
    std::string name = (parent / "filterbench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::runtime_error("no temporary directory " + name + ": " + std::strerror(errno));
    }
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_TEMPORARY_DIRECTORY_H_
