#include "harness/machine/system_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "harness/machine/cpuid.h"

namespace filterbench {
namespace {

constexpr std::string_view kCpuinfo = "/proc/cpuinfo";
constexpr std::string_view kBlanks = " \t\r\n\v\f";

// Far above the kernel's largest NR_CPUS (8192 on x86-64), so that a damaged list such as
// "0-4000000000" is refused instead of filling memory.
constexpr int kMaxCpuId = 1 << 16;

std::string ErrorText(int error) { return std::generic_category().message(error); }

}  // namespace

SystemFiles::SystemFiles(const std::filesystem::path& root)
    : root_(root), is_live_(root.lexically_normal() == "/") {
  if (!is_live_) return;
  static const std::string foreign_processor = [this] {
    utsname names = {};
    const Fact<std::string> cpuinfo = Read(kCpuinfo);
    if (!cpuinfo.known() || uname(&names) != 0) return std::string();
    return ForeignProcessor(cpuinfo.value(), names.machine, ReadCpuSignature());
  }();
  foreign_processor_ = foreign_processor;
}

bool SystemFiles::IsForeign(std::string_view path) const {
  return !foreign_processor_.empty() &&
         (path == kCpuinfo || path.starts_with("/sys/devices/system/cpu") ||
          path.starts_with("/sys/devices/cpu"));
}

std::filesystem::path SystemFiles::Resolve(std::string_view path) const {
  return root_ / std::filesystem::path(path).relative_path();
}

bool SystemFiles::Exists(std::string_view path) const {
  if (IsForeign(path)) return false;
  std::error_code error;
  return std::filesystem::exists(Resolve(path), error);
}

Fact<std::string> SystemFiles::Read(std::string_view path) const {
  if (IsForeign(path)) return Fact<std::string>::Unknown(foreign_processor_);
  // Non-blocking: a pipe or device put in the place of a file must not stop the run.
  const int file = open(Resolve(path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return Fact<std::string>::Unknown(fmt::format("cannot open {}: {}", path, ErrorText(errno)));
  }
  std::string text;
  char buffer[16384];
  int error = 0;
  while (true) {
    const ssize_t count = read(file, buffer, sizeof(buffer));
    if (count > 0) {
      text.append(buffer, static_cast<size_t>(count));
    } else if (count == 0) {
      break;
    } else if (errno != EINTR) {
      error = errno;
      break;
    }
  }
  close(file);
  if (error != 0) {
    return Fact<std::string>::Unknown(fmt::format("cannot read {}: {}", path, ErrorText(error)));
  }
  if (text.empty()) return Fact<std::string>::Unknown(fmt::format("{} is empty", path));
  return Fact<std::string>::Known(std::string(TrimBlanks(text)));
}

Fact<std::string> SystemFiles::ReadText(std::string_view path) const {
  const Fact<std::string> text = Read(path);
  if (!text.known() || !text.value().empty()) return text;
  return Fact<std::string>::Unknown(fmt::format("{} is blank", path));
}

Fact<int64_t> SystemFiles::ReadInteger(std::string_view path) const {
  const Fact<std::string> text = Read(path);
  if (!text.known()) return Fact<int64_t>::Unknown(text.reason());
  const std::optional<int64_t> value = ParseInteger(text.value());
  if (!value) {
    return Fact<int64_t>::Unknown(
        fmt::format("{} holds '{:.40}' instead of an integer", path, text.value()));
  }
  return Fact<int64_t>::Known(*value);
}

Fact<std::vector<int>> SystemFiles::ReadCpuList(std::string_view path) const {
  using Cpus = Fact<std::vector<int>>;
  const Fact<std::string> text = Read(path);
  if (!text.known()) return Cpus::Unknown(text.reason());
  std::optional<std::vector<int>> cpus = ParseCpuList(text.value());
  if (!cpus) {
    return Cpus::Unknown(
        fmt::format("{} holds '{:.40}' instead of a CPU list", path, text.value()));
  }
  return Cpus::Known(*std::move(cpus));
}

Fact<std::vector<std::string>> SystemFiles::List(std::string_view directory) const {
  using Names = Fact<std::vector<std::string>>;
  if (IsForeign(directory)) return Names::Unknown(foreign_processor_);
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(Resolve(directory), error), end;
       !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return Names::Unknown(fmt::format("cannot list {}: {}", directory, ErrorText(error.value())));
  }
  std::sort(names.begin(), names.end());
  return Names::Known(std::move(names));
}

std::string_view TrimBlanks(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::vector<std::string_view> SplitAtBlanks(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = text.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::vector<std::string_view> SplitLines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::optional<int64_t> ParseInteger(std::string_view text, int base) {
  text = TrimBlanks(text);
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> ParseDecimal(std::string_view text) {
  text = TrimBlanks(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  text = TrimBlanks(text);
  std::vector<int> cpus;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view range = text.substr(0, comma);
    const size_t dash = range.find('-');
    const std::optional<int64_t> first = ParseInteger(range.substr(0, dash));
    const std::optional<int64_t> last =
        dash == std::string_view::npos ? first : ParseInteger(range.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > kMaxCpuId) return std::nullopt;
    for (int64_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    if (comma + 1 == text.size()) return std::nullopt;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::optional<std::string_view> FindColonValue(std::string_view text, std::string_view key) {
  for (const std::string_view line : SplitLines(text)) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    if (TrimBlanks(line.substr(0, colon)) == key) return TrimBlanks(line.substr(colon + 1));
  }
  return std::nullopt;
}

Fact<int64_t> FindKibibytesAsBytes(const Fact<std::string>& text, std::string_view key,
                                   std::string_view path) {
  if (!text.known()) return Fact<int64_t>::Unknown(text.reason());
  const std::optional<std::string_view> line = FindColonValue(text.value(), key);
  if (!line) return Fact<int64_t>::Unknown(fmt::format("{} has no line {}", path, key));
  const std::vector<std::string_view> words = SplitAtBlanks(*line);
  const std::optional<int64_t> kibibytes =
      words.size() == 2 && words[1] == "kB" ? ParseInteger(words[0]) : std::nullopt;
  if (!kibibytes || *kibibytes < 0 || *kibibytes > std::numeric_limits<int64_t>::max() / 1024) {
    return Fact<int64_t>::Unknown(
        fmt::format("{}: {} is '{:.40}' instead of a number of kB", path, key, *line));
  }
  return Fact<int64_t>::Known(*kibibytes * 1024);
}

}  // namespace filterbench
