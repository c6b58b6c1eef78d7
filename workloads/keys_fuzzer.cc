// Key files from anywhere: an error that names the file, or distinct keys that are all lines of it.

#include "workloads/keys.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "filters/fuzzer.h"

namespace filterbench {
namespace {

// A file that is nowhere but in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> content) : fd_(memfd_create("keys", MFD_CLOEXEC)) {
    FuzzRequire(fd_ >= 0, "no file in memory");
    while (!content.empty()) {
      const ssize_t written = write(fd_, content.data(), content.size());
      FuzzRequire(written > 0, "no file in memory");
      content = content.subspan(static_cast<size_t>(written));
    }
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(fd_); }
  std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

 private:
  int fd_;
};

// Whether the text has this line; a line's end is LF, CRLF or the end of the text.
bool HasLine(std::string_view text, std::string_view line) {
  for (size_t at = text.find(line); at != text.npos; at = text.find(line, at + 1)) {
    std::string_view after = text.substr(at + line.size());
    if (after.starts_with('\r')) after.remove_prefix(1);
    if ((at == 0 || text[at - 1] == '\n') && (after.empty() || after[0] == '\n')) return true;
  }
  return false;
}

}  // namespace
}  // namespace filterbench

FILTERBENCH_FUZZER(Keys) {
  FuzzInput rest(input);
  const uint64_t seed = rest.Number<uint8_t>();
  const MemoryFile file(rest.rest());
  const std::string_view text = FuzzText(rest.rest());
  const KeySetSpec spec{.kind = KeyKind::kFile, .length_bytes = 0, .path = file.path(),
                        .digest = ""};
  const Result<KeySet> set = KeySet::Open(spec, seed);
  if (!set) {
    FuzzRequire(set.error().starts_with(spec.path), "the error names no file");
    return;
  }
  FuzzRequire(set->size() > 0, "a set without keys");
  FuzzRequire(set->spec().digest.size() == 16, "digest");
  ByteKeyArena arena;
  for (uint64_t i = 0; i < set->size(); ++i) {
    set->AppendBytes(i, arena);
    FuzzRequire(set->Hash(i, seed) == HashBytes(arena.keys()[i], seed), "another hash");
  }
  std::set<std::string_view> seen;
  for (uint64_t i = 0; i < set->size(); ++i) {
    const std::string_view key = arena.keys()[i];
    FuzzRequire(!key.empty() && key.find('\n') == key.npos, "no line");
    FuzzRequire(seen.insert(key).second, "a key stands twice");
    if (set->size() <= 64) FuzzRequire(HasLine(text, key), "a key that no line is");
  }
  // Opened again by its digest, in another order, it has the same keys.
  const Result<KeySet> again = KeySet::Open(set->spec(), seed + 1);
  FuzzRequire(again && again->size() == set->size(), "opened again it is another set");
}
