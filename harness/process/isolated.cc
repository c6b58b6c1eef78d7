#include "harness/process/isolated.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <system_error>

#include <fmt/format.h>

namespace filterbench {
namespace {

using Clock = std::chrono::steady_clock;

// Each message is its length in four bytes, then its bytes. These two lengths are the child's last
// words: that it is done, or (with the reason behind it as a message of its own) that it threw.
constexpr uint32_t kDone = UINT32_MAX;
constexpr uint32_t kThrew = UINT32_MAX - 1;
constexpr uint32_t kMaxMessageBytes = 1 << 24;

void WriteAll(int fd, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1);  // nobody listens any more
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void WriteMessage(int fd, std::string_view message) {
  const auto size = static_cast<uint32_t>(message.size());
  WriteAll(fd, &size, sizeof(size));
  WriteAll(fd, message.data(), message.size());
}

[[noreturn]] void RunChild(int fd, pid_t parent,
                           const std::function<void(const SendMessage& send)>& work) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before that was said
  // Where memory ends, the system is to take this process and not its parent.
  if (std::FILE* file = std::fopen("/proc/self/oom_score_adj", "w")) {
    std::fputs("1000", file);
    std::fclose(file);
  }
  // Stopping is the parent's business.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_DFL);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  uint32_t end = kDone;
  std::string reason;
  try {
    work([fd](std::string_view message) { WriteMessage(fd, message); });
  } catch (const std::exception& error) {
    end = kThrew;
    reason = error.what();
  } catch (...) {
    end = kThrew;
    reason = "something that is no std::exception";
  }
  std::fflush(nullptr);
  WriteAll(fd, &end, sizeof(end));
  if (end == kThrew) WriteMessage(fd, reason);
  _exit(0);
}

// What came out of the pipe so far, cut into messages.
class Inbox {
 public:
  enum class State { kOpen, kDone, kThrew, kGarbage };

  void Append(const char* data, size_t size) { bytes_.append(data, size); }

  State Deliver(const std::function<void(std::string_view)>& receive) {
    while (bytes_.size() >= sizeof(uint32_t)) {
      uint32_t size;
      std::memcpy(&size, bytes_.data(), sizeof(size));
      if (size == kDone) return State::kDone;
      if (size == kThrew) {
        threw_ = true;
        bytes_.erase(0, sizeof(size));
        continue;
      }
      if (size > kMaxMessageBytes) return State::kGarbage;
      if (bytes_.size() < sizeof(size) + size) break;
      const std::string message = bytes_.substr(sizeof(size), size);
      bytes_.erase(0, sizeof(size) + size);
      if (threw_) {
        what_ = message;
        return State::kThrew;
      }
      receive(message);
    }
    return State::kOpen;
  }

  const std::string& what() const { return what_; }

 private:
  std::string bytes_;
  bool threw_ = false;
  std::string what_;
};

std::string HowItEnded(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format("crashed: signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
  }
  return fmt::format("ended the process with exit code {}", WEXITSTATUS(status));
}

}  // namespace

IsolatedResult RunIsolated(const IsolatedOptions& options,
                           const std::function<void(const SendMessage& send)>& work,
                           const std::function<void(std::string_view message)>& receive) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "pipe");
  std::fflush(nullptr);  // or the child would write once more what is buffered
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    throw std::system_error(error, std::generic_category(), "fork");
  }
  if (child == 0) {
    close(pipe_ends[0]);
    RunChild(pipe_ends[1], parent, work);
  }
  close(pipe_ends[1]);

  Inbox inbox;
  IsolatedResult result{IsolatedEnd::kCrashed, ""};
  auto heard = Clock::now();
  for (bool open = true; open;) {
    constexpr int kTickMilliseconds = 50;
    pollfd waiting{pipe_ends[0], POLLIN, 0};
    const int ready = poll(&waiting, 1, kTickMilliseconds);
    if (options.should_stop()) {
      result = {IsolatedEnd::kStopped, "stopped"};
      break;
    }
    if (ready > 0) {
      char buffer[1 << 16];
      const ssize_t size = read(pipe_ends[0], buffer, sizeof(buffer));
      if (size < 0 && errno == EINTR) continue;
      open = size > 0;
      if (size > 0) inbox.Append(buffer, static_cast<size_t>(size));
      heard = Clock::now();
    }
    switch (inbox.Deliver(receive)) {
      case Inbox::State::kOpen:
        break;
      case Inbox::State::kDone:
        result = {IsolatedEnd::kDone, ""};
        open = false;
        break;
      case Inbox::State::kThrew:
        result.reason = "threw: " + inbox.what();
        open = false;
        break;
      case Inbox::State::kGarbage:
        result.reason = "wrote over the memory of its process";
        open = false;
        break;
    }
    const double silent_seconds = std::chrono::duration<double>(Clock::now() - heard).count();
    if (open && silent_seconds > options.silence_limit_seconds) {
      result = {IsolatedEnd::kTimedOut,
                fmt::format("did not return within {:g} s", options.silence_limit_seconds)};
      break;
    }
  }
  close(pipe_ends[0]);

  // Its whole group, before it is reaped: the number cannot have gone to another process yet.
  const bool needs_kill = !(result.end == IsolatedEnd::kCrashed && result.reason.empty());
  if (needs_kill) {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!needs_kill) kill(-child, SIGKILL);  // what it may have left behind
  if (result.end == IsolatedEnd::kCrashed && result.reason.empty()) {
    result.reason = HowItEnded(status);
  }
  return result;
}

}  // namespace filterbench
