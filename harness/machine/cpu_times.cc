#include "harness/machine/cpu_times.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace filterbench {
namespace {

// Columns of /proc/stat, the label being column 0. Columns 9 and 10 (guest, guest_nice) are
// contained in user and nice.
enum StatColumn { kUser = 1, kNice, kSystem, kIdle, kIoWait, kIrq, kSoftIrq, kSteal, kColumns };

std::optional<CpuTicks> ParseTicks(const std::vector<std::string_view>& words) {
  if (words.size() < kColumns) return std::nullopt;
  // No sum of eight of these overflows.
  constexpr int64_t kMaxTicks = int64_t{1} << 56;
  int64_t ticks[kColumns] = {};
  for (size_t column = kUser; column < kColumns; ++column) {
    const std::optional<int64_t> value = ParseInteger(words[column]);
    if (!value || *value < 0 || *value > kMaxTicks) return std::nullopt;
    ticks[column] = *value;
  }
  return CpuTicks{
      .busy = ticks[kUser] + ticks[kNice] + ticks[kSystem] + ticks[kIrq] + ticks[kSoftIrq],
      .idle = ticks[kIdle] + ticks[kIoWait],
      .steal = ticks[kSteal]};
}

// utime + stime of /proc/<pid>/stat, fields 14 and 15.
std::optional<int64_t> ParseProcessTicks(std::string_view text) {
  // Field 2 is the name of the program in parentheses, which may itself hold blanks and
  // parentheses; field 3 follows the last one.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  const std::vector<std::string_view> words = SplitAtBlanks(text.substr(name_end + 1));
  constexpr size_t kUserTime = 14 - 3;
  constexpr size_t kSystemTime = 15 - 3;
  if (words.size() <= kSystemTime) return std::nullopt;
  const std::optional<int64_t> user = ParseInteger(words[kUserTime]);
  const std::optional<int64_t> system = ParseInteger(words[kSystemTime]);
  if (!user || !system || *user < 0 || *system < 0) return std::nullopt;
  return *user + *system;
}

}  // namespace

Fact<CpuTimes> ReadCpuTimes(const SystemFiles& files) {
  const Fact<std::string> text = files.Read("/proc/stat");
  if (!text.known()) return Fact<CpuTimes>::Unknown(text.reason());
  CpuTimes times;
  for (const std::string_view line : SplitLines(text.value())) {
    if (!line.starts_with("cpu")) break;
    const std::vector<std::string_view> words = SplitAtBlanks(line);
    const std::optional<CpuTicks> ticks = ParseTicks(words);
    if (!ticks) continue;
    if (words[0] == "cpu") {
      times.all = ticks;
    } else if (const auto cpu = ParseInteger(words[0].substr(3))) {
      times.of_cpu[static_cast<int>(*cpu)] = *ticks;
    }
  }
  if (!times.all && times.of_cpu.empty()) {
    return Fact<CpuTimes>::Unknown("/proc/stat has no times of CPUs");
  }
  return Fact<CpuTimes>::Known(std::move(times));
}

Fact<std::map<int64_t, int64_t>> ReadProcessTicks(const SystemFiles& files) {
  using Ticks = Fact<std::map<int64_t, int64_t>>;
  const Fact<std::vector<std::string>> names = files.List("/proc");
  if (!names.known()) return Ticks::Unknown(names.reason());
  std::map<int64_t, int64_t> ticks_of;
  for (const std::string& name : names.value()) {
    const std::optional<int64_t> process = ParseInteger(name);
    if (!process) continue;
    const Fact<std::string> text = files.Read(fmt::format("/proc/{}/stat", name));
    if (!text.known()) continue;
    if (const auto ticks = ParseProcessTicks(text.value())) ticks_of[*process] = *ticks;
  }
  if (ticks_of.empty()) return Ticks::Unknown("/proc shows no process");
  return Ticks::Known(std::move(ticks_of));
}

}  // namespace filterbench
