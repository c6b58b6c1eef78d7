#ifndef FILTERBENCH_HARNESS_PROCESS_ISOLATED_H_
#define FILTERBENCH_HARNESS_PROCESS_ISOLATED_H_

// Runs work that may crash, hang or end the program in a process of its own: a fork of this one, or
// this program started anew.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace filterbench {

enum class IsolatedEnd {
  kDone,
  kCrashed,   // died, exited, or threw before it was done
  kTimedOut,  // was silent for too long, and was killed
  kStopped,   // was killed because `should_stop` said so
};

struct IsolatedResult {
  IsolatedEnd end = IsolatedEnd::kDone;
  std::string reason;  // empty if and only if done
  int signal = 0;      // that it died of by itself; 0 if of none
};

struct IsolatedOptions {
  double silence_limit_seconds = 600;  // between two messages
  std::function<bool()> should_stop = [] { return false; };
};

using SendMessage = std::function<void(std::string_view message)>;

// `work` runs in the child; each message that it sends is handed to `receive` here, in order. What
// the child writes to standard output goes to standard error. Nothing else that it does to its
// memory is seen here. Only for processes with one thread.
IsolatedResult RunIsolated(const IsolatedOptions& options,
                           const std::function<void(const SendMessage& send)>& work,
                           const std::function<void(std::string_view message)>& receive);

// The same in a fresh start of this program with `arguments` (without the program's name), so that
// the addresses of code, stack and heap are drawn anew (Mytkowicz et al. 2009: they move times by
// more than what is compared). It must call ServeIsolated, which is given `input`.
IsolatedResult RunIsolatedProgram(const IsolatedOptions& options,
                                  const std::vector<std::string>& arguments,
                                  std::string_view input,
                                  const std::function<void(std::string_view message)>& receive);

// In a program started by RunIsolatedProgram: does the work and ends the process. Elsewhere it
// returns.
void ServeIsolated(
    const std::function<void(std::string_view input, const SendMessage& send)>& work);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_PROCESS_ISOLATED_H_
