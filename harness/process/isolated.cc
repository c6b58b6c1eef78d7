#include "harness/process/isolated.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
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

#include "harness/utf8.h"

namespace filterbench {
namespace {

using Clock = std::chrono::steady_clock;

// What stands before each message. The token is drawn for each child: what its code writes into the
// pipe by mistake is told from what it was asked to send.
struct Header {
  uint64_t token;
  uint32_t kind;
  uint32_t size;
};
enum Kind : uint32_t { kMessage, kDone, kThrew };
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

void WriteMessage(int fd, uint64_t token, Kind kind, std::string_view message) {
  const Header header{token, kind, static_cast<uint32_t>(message.size())};
  WriteAll(fd, &header, sizeof(header));
  WriteAll(fd, message.data(), message.size());
}

// Files of the harness are none of its business: a record that is written to by chance is lost.
void CloseAllBut(int fd) {
  close_range(STDERR_FILENO + 1, static_cast<unsigned>(fd) - 1, 0);
  close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
  if (const int null = open("/dev/null", O_RDONLY); null >= 0 && null != STDIN_FILENO) {
    dup2(null, STDIN_FILENO);
    close(null);
  }
}

[[noreturn]] void RunChild(int fd, uint64_t token, pid_t parent,
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
  CloseAllBut(fd);
  Kind end = kDone;
  std::string reason;
  try {
    work([=](std::string_view message) { WriteMessage(fd, token, kMessage, message); });
  } catch (const std::exception& error) {
    end = kThrew;
    reason = error.what();
  } catch (...) {
    end = kThrew;
    reason = "something that is no std::exception";
  }
  std::fflush(nullptr);
  WriteMessage(fd, token, end, reason);
  _exit(0);
}

// What came out of the pipe so far, cut into messages.
class Inbox {
 public:
  enum class State { kOpen, kDone, kThrew, kGarbage };

  explicit Inbox(uint64_t token) : token_(token) {}

  void Append(const char* data, size_t size) { bytes_.append(data, size); }

  // Hands on what is complete; `delivered` becomes true if there was anything.
  State Deliver(const std::function<void(std::string_view)>& receive, bool& delivered) {
    while (bytes_.size() >= sizeof(Header)) {
      Header header;
      std::memcpy(&header, bytes_.data(), sizeof(header));
      if (header.token != token_ || header.kind > kThrew || header.size > kMaxMessageBytes) {
        return State::kGarbage;
      }
      if (bytes_.size() < sizeof(header) + header.size) break;
      const std::string message = bytes_.substr(sizeof(header), header.size);
      bytes_.erase(0, sizeof(header) + header.size);
      delivered = true;
      if (header.kind == kDone) return State::kDone;
      if (header.kind == kThrew) {
        what_ = message;
        return State::kThrew;
      }
      receive(message);
    }
    return State::kOpen;
  }

  const std::string& what() const { return what_; }

 private:
  uint64_t token_;
  std::string bytes_;
  std::string what_;
};

uint64_t DrawToken() {
  uint64_t token = 0;
  if (getrandom(&token, sizeof(token), 0) != sizeof(token)) {
    token = static_cast<uint64_t>(Clock::now().time_since_epoch().count()) * 0x9e3779b97f4a7c15;
  }
  return token;
}

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
  const uint64_t token = DrawToken();
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    throw std::system_error(error, std::generic_category(), "fork");
  }
  if (child == 0) {
    close(pipe_ends[0]);
    RunChild(pipe_ends[1], token, parent, work);
  }
  close(pipe_ends[1]);

  Inbox inbox(token);
  IsolatedResult result{IsolatedEnd::kCrashed, ""};
  auto heard = Clock::now();
  int status = 0;
  bool reaped = false;
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
    } else if (reaped) {
      open = false;  // dead, and all that it sent is read; somebody else holds the pipe
    }
    reaped = reaped || waitpid(child, &status, WNOHANG) == child;
    bool delivered = false;
    switch (inbox.Deliver(receive, delivered)) {
      case Inbox::State::kOpen:
        break;
      case Inbox::State::kDone:
        result = {IsolatedEnd::kDone, ""};
        open = false;
        break;
      case Inbox::State::kThrew:
        result.reason = "threw: " + ToValidUtf8(inbox.what());
        open = false;
        break;
      case Inbox::State::kGarbage:
        result.reason = "wrote into files that are not its own";
        open = false;
        break;
    }
    if (delivered) heard = Clock::now();
    const double silent_seconds = std::chrono::duration<double>(Clock::now() - heard).count();
    if (open && silent_seconds > options.silence_limit_seconds) {
      result = {IsolatedEnd::kTimedOut,
                fmt::format("did not return within {:g} s", options.silence_limit_seconds)};
      break;
    }
  }
  close(pipe_ends[0]);

  // It may have closed the pipe and live on. One that is dying gets the time to say how.
  constexpr int kGraceTicks = 40;
  const bool dies_by_itself = result.end == IsolatedEnd::kCrashed && result.reason.empty();
  for (int tick = 0; dies_by_itself && !reaped && tick < kGraceTicks; ++tick) {
    poll(nullptr, 0, 50);
    reaped = waitpid(child, &status, WNOHANG) == child;
  }
  const bool was_alive = !reaped;
  kill(-child, SIGKILL);  // with what it may have left behind in its group
  if (!reaped) {
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (dies_by_itself) {
    result.reason = was_alive ? "closed the way back and did not return" : HowItEnded(status);
  }
  return result;
}

}  // namespace filterbench
