// For tests: a directory of recorded /proc and /sys files that stands in for another machine.

#ifndef FILTERBENCH_HARNESS_MACHINE_FIXTURE_TREE_H_
#define FILTERBENCH_HARNESS_MACHINE_FIXTURE_TREE_H_

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/temporary_directory.h"

namespace filterbench {

class FixtureTree {
 public:
  const std::filesystem::path& root() const { return directory_.path(); }

  // Paths as on a live system, "/proc/cpuinfo". The content is written as it is.
  void Write(std::string_view path, std::string_view content) const {
    const std::filesystem::path file = root() / path.substr(1);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream stream(file, std::ios::binary | std::ios::trunc);
    stream << content;
    if (!stream.flush()) ADD_FAILURE() << "cannot write " << file;
  }

  void Remove(std::string_view path) const { std::filesystem::remove_all(root() / path.substr(1)); }

  // All files, as paths on a live system.
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root())) {
      if (entry.is_regular_file()) {
        files.push_back(entry.path().string().substr(root().string().size()));
      }
    }
    return files;
  }

  std::string Content(std::string_view path) const {
    std::ifstream stream(root() / path.substr(1), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }

  struct Cache {
    int level;
    std::string type;
    std::string size;        // as in /sys: "32K"
    std::string shared_map;  // hexadecimal mask of CPUs
  };

  // The files that describe one CPU's place and caches below /sys/devices/system/cpu.
  void WriteCpu(int cpu, int core, std::string_view core_map, std::string_view package_map,
                const std::vector<Cache>& caches) const {
    const std::string directory = fmt::format("/sys/devices/system/cpu/cpu{}", cpu);
    const std::string topology = directory + "/topology/";
    Write(topology + "physical_package_id", "0\n");
    Write(topology + "core_id", fmt::format("{}\n", core));
    for (const char* file : {"thread_siblings", "core_cpus"}) {
      Write(topology + file, fmt::format("{}\n", core_map));
    }
    for (const char* file : {"core_siblings", "package_cpus"}) {
      Write(topology + file, fmt::format("{}\n", package_map));
    }
    for (size_t index = 0; index < caches.size(); ++index) {
      const std::string cache = fmt::format("{}/cache/index{}/", directory, index);
      Write(cache + "level", fmt::format("{}\n", caches[index].level));
      Write(cache + "type", caches[index].type + "\n");
      Write(cache + "size", caches[index].size + "\n");
      Write(cache + "shared_cpu_map", caches[index].shared_map + "\n");
      Write(cache + "coherency_line_size", "64\n");
      Write(cache + "ways_of_associativity", "8\n");
    }
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_FIXTURE_TREE_H_
