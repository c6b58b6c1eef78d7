#ifndef FILTERBENCH_HARNESS_PROCESS_ISOLATED_H_
#define FILTERBENCH_HARNESS_PROCESS_ISOLATED_H_

// Runs work that may crash, hang or end the program in a process of its own, a fork of this one.

#include <functional>
#include <string>
#include <string_view>

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

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_PROCESS_ISOLATED_H_
