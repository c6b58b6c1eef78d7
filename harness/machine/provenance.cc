#include "harness/machine/provenance.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <hwy/highway.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <system_error>
#include <vector>

#include "harness/machine/git_revision.h"
#include "harness/machine/system_files.h"

#if !defined(FILTERBENCH_COMPILER_FLAGS) || !defined(FILTERBENCH_BUILD_TYPE) || \
    !defined(FILTERBENCH_BENCHMARK_VERSION)
#error "the build must define FILTERBENCH_COMPILER_FLAGS, _BUILD_TYPE and _BENCHMARK_VERSION"
#endif

namespace filterbench {
namespace {

using nlohmann::json;

std::string CompilerName() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
#error "unknown compiler"
#endif
}

std::string Version(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

void PutNonEmpty(json& object, const std::string& field, const std::string& value) {
  if (value.empty()) {
    PutUnknown(object, field, "the build system did not say");
  } else {
    object[field] = value;
  }
}

void PutGitRevision(json& provenance) {
  const std::string commit = FILTERBENCH_GIT_COMMIT;
  if (commit.empty()) {
    const std::string reason = FILTERBENCH_GIT_REASON;
    PutUnknown(provenance, "git_commit", reason);
    PutUnknown(provenance, "git_dirty", reason);
    return;
  }
  provenance["git_commit"] = commit;
  provenance["git_dirty"] = FILTERBENCH_GIT_DIRTY != 0;
}

}  // namespace

Fact<std::string> FileXxh3(const std::filesystem::path& path) {
  constexpr size_t kChunkBytes = size_t{1} << 20;
  const auto fail = [&path](const char* what) {
    return Fact<std::string>::Unknown(fmt::format("cannot {} {}: {}", what, path.string(),
                                                  std::generic_category().message(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (file == nullptr) return fail("open");
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              XXH3_freeState);
  if (state == nullptr) return Fact<std::string>::Unknown("no memory for hashing");
  XXH3_64bits_reset(state.get());
  std::vector<char> chunk(kChunkBytes);
  while (const size_t count = std::fread(chunk.data(), 1, chunk.size(), file.get())) {
    XXH3_64bits_update(state.get(), chunk.data(), count);
  }
  if (std::ferror(file.get()) != 0) return fail("read");
  return Fact<std::string>::Known(fmt::format("{:016x}", XXH3_64bits_digest(state.get())));
}

json ReadProvenance() {
  json provenance;
  PutGitRevision(provenance);
  provenance["compiler"] = CompilerName();
  provenance["flags"] = std::string(TrimBlanks(FILTERBENCH_COMPILER_FLAGS));
  PutNonEmpty(provenance, "build_type", FILTERBENCH_BUILD_TYPE);
#if defined(NDEBUG)
  provenance["assertions"] = false;
#else
  provenance["assertions"] = true;
#endif
  provenance["c_library"] = fmt::format("glibc {}", gnu_get_libc_version());

  json& libraries = provenance["libraries"];
  libraries["highway"] = Version(HWY_MAJOR, HWY_MINOR, HWY_PATCH);
  PutNonEmpty(libraries, "google_benchmark", FILTERBENCH_BENCHMARK_VERSION);
  libraries["xxhash"] = Version(XXH_VERSION_MAJOR, XXH_VERSION_MINOR, XXH_VERSION_RELEASE);
  libraries["fmt"] = Version(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
  libraries["nlohmann_json"] = Version(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                       NLOHMANN_JSON_VERSION_PATCH);
  libraries["hwloc"] = HWLOC_VERSION;

  PutFact(provenance, "binary_xxh3", FileXxh3("/proc/self/exe"));
  return provenance;
}

}  // namespace filterbench
