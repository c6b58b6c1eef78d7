#include "harness/machine/oom.h"

#include <fmt/format.h>

#include "harness/machine/system_files.h"

namespace filterbench {

Fact<int64_t> ReadOomKills(const std::filesystem::path& root) {
  const Fact<std::string> text = SystemFiles(root).Read("/proc/vmstat");
  if (!text.known()) return Fact<int64_t>::Unknown(text.reason());
  for (const std::string_view line : SplitLines(text.value())) {
    const std::vector<std::string_view> words = SplitAtBlanks(line);
    if (words.size() != 2 || words[0] != "oom_kill") continue;
    if (const auto count = ParseInteger(words[1])) return Fact<int64_t>::Known(*count);
  }
  return Fact<int64_t>::Unknown("/proc/vmstat has no line oom_kill");
}

}  // namespace filterbench
