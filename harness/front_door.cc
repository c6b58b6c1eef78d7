#include "harness/front_door.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace filterbench {
namespace {

namespace fs = std::filesystem;

// Not the first one of PATH: a virtual environment there lacks the system's packages.
constexpr const char* kSystemPython = "/usr/bin/python3";

constexpr PythonCommand kCommands[] = {
    {"compare", "scripts.compare", "Tell whether run B is worse than run A of the same machine"},
    {"compare-cpus", "scripts.compare_cpus", "Set runs of several machines side by side, in ratios"},
    {"merge", "scripts.merge", "Put the shards of a sweep together into one run"},
    {"submit", "scripts.submit", "Run a sweep on a Slurm cluster, in shards"},
    {"figures", "plots.draw", "Draw the figures of runs, for a paper, slides or the screen"},
    {"advise", "scripts.advise", "Tell which filter costs least for what you ask of it"},
    {"claims", "scripts.claims", "Check the published claims of the field on what was measured"},
    {"report", "plots.report.page", "Write what runs found as one page for a browser"},
    {"keep", "scripts.keep", "Keep a run among the reference runs of results/"},
};

// Empty where it is not set: an empty value means nothing else.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Where the module lies in the tree: plots.draw is plots/draw.py.
std::string FileOf(std::string_view module) {
  std::string file(module);
  std::replace(file.begin(), file.end(), '.', '/');
  return file + ".py";
}

bool HasModule(const fs::path& tree, std::string_view module) {
  std::error_code ignored;
  return fs::is_regular_file(tree / FileOf(module), ignored);
}

}  // namespace

std::span<const PythonCommand> PythonCommands() { return kCommands; }

const PythonCommand* FindPythonCommand(std::string_view name) {
  for (const PythonCommand& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

Result<fs::path> SourceTree(std::string_view module, const std::string& home,
                            const fs::path& program) {
  if (!home.empty()) {
    std::error_code error;
    const fs::path tree = fs::absolute(home, error);
    if (!error && HasModule(tree, module)) return tree;
    return Error{fmt::format("FILTERBENCH_HOME is {}, which has no {}", home, FileOf(module))};
  }
  const fs::path directory = program.parent_path();
  for (const fs::path& tree : {directory.parent_path().parent_path(), directory.parent_path()}) {
    if (HasModule(tree, module)) return tree;
  }
  return Error{
      fmt::format("no {} one or two directories above {}: this command needs the source tree; "
                  "FILTERBENCH_HOME says where it is",
                  FileOf(module), directory.string())};
}

Error BecomePython(const PythonCommand& command, std::span<char* const> arguments) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) {
    return Error{fmt::format("/proc/self/exe: {}: where this program lies is not known",
                             error.message())};
  }
  const Result<fs::path> tree = SourceTree(command.module, Variable("FILTERBENCH_HOME"), program);
  if (!tree) return Error{tree.error()};

  std::string search_path = tree->string();
  if (const std::string more = Variable("PYTHONPATH"); !more.empty()) search_path += ":" + more;
  setenv("PYTHONPATH", search_path.c_str(), 1);
  // A directory `scripts` or a file `numpy.py` where the user happens to be is not ours.
  setenv("PYTHONSAFEPATH", "1", 1);
  setenv("FILTERBENCH", program.c_str(), 1);

  std::string interpreter = Variable("FILTERBENCH_PYTHON");
  if (interpreter.empty()) interpreter = kSystemPython;
  std::string module(command.module);
  std::string dash_m = "-m";
  std::vector<char*> call = {interpreter.data(), dash_m.data(), module.data()};
  call.insert(call.end(), arguments.begin(), arguments.end());
  call.push_back(nullptr);
  std::fflush(nullptr);
  execvp(interpreter.c_str(), call.data());
  return Error{fmt::format("{}: cannot be run: {}; FILTERBENCH_PYTHON names another interpreter",
                           interpreter, std::strerror(errno))};
}

}  // namespace filterbench
