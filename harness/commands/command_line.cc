#include "harness/commands/command_line.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "harness/registry/erased_filter.h"

namespace filterbench {

int Complain(const std::string& message, int exit_code) {
  fmt::print(stderr, "filterbench: {}\n", message);
  return exit_code;
}

std::string ShellWord(const std::string& text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-./=,:+@").find(static_cast<char>(c)) !=
                                       std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void PluginOption::AddTo(CLI::App* command) {
  command
      ->add_option("--plugin", paths_,
                   "Shared library with filters (filters/plugin/abi.h); may be given again")
      ->allow_extra_args(false);
}

int PluginOption::With(const std::function<int()>& command) const {
  for (const std::string& path : paths_) {
    if (const auto error = LoadPlugin(path)) return Complain(error->message, kExitUsage);
  }
  return command();
}

}  // namespace filterbench
