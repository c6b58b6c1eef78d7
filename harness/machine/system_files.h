// Reading /proc and /sys: small text files that may be missing, empty, unreadable or malformed.

#ifndef FILTERBENCH_HARNESS_MACHINE_SYSTEM_FILES_H_
#define FILTERBENCH_HARNESS_MACHINE_SYSTEM_FILES_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/machine/fact.h"

namespace filterbench {

// Paths are written as on a live system ("/proc/cpuinfo") and looked up below `root`, so that a
// directory of recorded files can stand in for another machine. Reasons name the path without the
// root: they end up in results, where a temporary directory says nothing.
class SystemFiles {
 public:
  explicit SystemFiles(const std::filesystem::path& root);

  const std::filesystem::path& root() const { return root_; }
  // True when the files describe the machine that this process runs on; only then may CPUID and
  // system calls fill in for them.
  bool is_live() const { return is_live_; }
  // Why the files tell nothing about the processor that this program runs on, although live: it
  // is emulated. Empty otherwise. Files about processors are unknown for this reason.
  const std::string& foreign_processor() const { return foreign_processor_; }

  bool Exists(std::string_view path) const;
  // The content without blanks at both ends. A file of zero bytes is unknown, one that holds only
  // a line end is a known empty text: the kernel writes an empty list as "\n".
  Fact<std::string> Read(std::string_view path) const;
  // As Read, but a blank file is unknown too: for words that are never empty.
  Fact<std::string> ReadText(std::string_view path) const;
  // One integer and nothing else.
  Fact<int64_t> ReadInteger(std::string_view path) const;
  // A CPU list such as "0-3,8", ascending and without repetitions.
  Fact<std::vector<int>> ReadCpuList(std::string_view path) const;
  // The names in a directory, sorted.
  Fact<std::vector<std::string>> List(std::string_view directory) const;

 private:
  std::filesystem::path Resolve(std::string_view path) const;
  bool IsForeign(std::string_view path) const;

  std::filesystem::path root_;
  bool is_live_;
  std::string foreign_processor_;
};

// Parsers for the whole of `text` (blanks at both ends allowed); the same in every locale.
std::optional<int64_t> ParseInteger(std::string_view text, int base = 10);
std::optional<double> ParseDecimal(std::string_view text);  // finite only
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

std::string_view TrimBlanks(std::string_view text);
std::vector<std::string_view> SplitAtBlanks(std::string_view text);
std::vector<std::string_view> SplitLines(std::string_view text);

// The value of the first line "key : value", as in /proc/cpuinfo, /proc/meminfo and
// /proc/self/status; nullopt when no line has this key.
std::optional<std::string_view> FindColonValue(std::string_view text, std::string_view key);

// The bytes of a "key:  123 kB" line, as in /proc/meminfo; `path` is named in the reason.
Fact<int64_t> FindKibibytesAsBytes(const Fact<std::string>& text, std::string_view key,
                                   std::string_view path);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_SYSTEM_FILES_H_
