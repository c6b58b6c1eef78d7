#ifndef FILTERBENCH_HARNESS_COMMANDS_COMMAND_LINE_H_
#define FILTERBENCH_HARNESS_COMMANDS_COMMAND_LINE_H_

// What all subcommands share: the line that was given, exit codes, complaints, plug-ins.

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace filterbench {

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitWrongAnswers = 3;
inline constexpr int kExitUnfit = 4;
inline constexpr int kExitIncomplete = 5;
inline constexpr int kExitInterrupted = 130;

// The line being read. Each family of subcommands adds itself to `app`, with callbacks that leave
// their outcome in `exit_code`.
struct CommandLine {
  CLI::App& app;
  std::string words;  // as they were given, for a shell
  int exit_code = kExitOk;
};

// Says what is wrong on stderr; returns `exit_code`.
int Complain(const std::string& message, int exit_code);

// `text` as one word of a shell.
std::string ShellWord(const std::string& text);

// The option --plugin of a subcommand.
class PluginOption {
 public:
  // `command` refers to this object from then on.
  void AddTo(CLI::App* command);
  // Runs `command` with the plug-ins loaded; returns its exit code.
  int With(const std::function<int()>& command) const;

 private:
  std::vector<std::string> paths_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_COMMANDS_COMMAND_LINE_H_
