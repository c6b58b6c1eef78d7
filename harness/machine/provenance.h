// What was measured: compiler, flags, libraries, source revision and binary.

#ifndef FILTERBENCH_HARNESS_MACHINE_PROVENANCE_H_
#define FILTERBENCH_HARNESS_MACHINE_PROVENANCE_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/machine/fact.h"

namespace filterbench {

// The `provenance` object of manifest.json:
//   git_commit (40 hex digits), git_dirty      null with a reason when built outside of git
//   compiler, flags, build_type, assertions (whether assert() is compiled in), c_library
//   libraries {highway, google_benchmark, xxhash, fmt, nlohmann_json, hwloc}
//   binary_xxh3                                XXH3-64 of the running program's file, 16 hex digits
// Flags and build type are those of the whole build, as the build system hands them in.
nlohmann::json ReadProvenance();

// XXH3-64 of a file, 16 hex digits.
Fact<std::string> FileXxh3(const std::filesystem::path& path);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_PROVENANCE_H_
