#include "harness/process/isolated.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
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

// Where a program that was started anew finds the way back; its input is its standard input.
constexpr int kServedFd = 3;

// Files of the harness are none of its business: a record that is written to by chance is lost.
void CloseAllBut(int fd) {
  close_range(STDERR_FILENO + 1, static_cast<unsigned>(fd) - 1, 0);
  close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
}

void TakeInputFrom(int fd) {
  if (fd < 0 || fd == STDIN_FILENO) return;
  dup2(fd, STDIN_FILENO);
  close(fd);
}

void BecomeChild(pid_t parent) {
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
}

[[noreturn]] void Work(int fd, uint64_t token,
                       const std::function<void(const SendMessage& send)>& work) {
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

[[noreturn]] void StartAnew(int fd, int input_fd, uint64_t token,
                            const std::vector<std::string>& arguments) {
  TakeInputFrom(input_fd);
  lseek(STDIN_FILENO, 0, SEEK_SET);
  if (fd != kServedFd) dup2(fd, kServedFd);
  fcntl(kServedFd, F_SETFD, 0);
  CloseAllBut(kServedFd);
  std::vector<std::string> words = {"filterbench"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv("/proc/self/exe", argv.data());
  WriteMessage(kServedFd, token, kThrew,
               fmt::format("the program cannot be started again: {}", strerror(errno)));
  _exit(1);
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

// Hears the child out and buries it.
IsolatedResult Supervise(pid_t child, int pipe_end, uint64_t token, const IsolatedOptions& options,
                         const std::function<void(std::string_view message)>& receive) {
  Inbox inbox(token);
  IsolatedResult result{IsolatedEnd::kCrashed, "", 0};
  auto heard = Clock::now();
  int status = 0;
  bool reaped = false;
  for (bool open = true; open;) {
    constexpr int kTickMilliseconds = 50;
    pollfd waiting{pipe_end, POLLIN, 0};
    const int ready = poll(&waiting, 1, kTickMilliseconds);
    if (options.should_stop()) {
      result = {IsolatedEnd::kStopped, "stopped", 0};
      break;
    }
    if (ready > 0) {
      char buffer[1 << 16];
      const ssize_t size = read(pipe_end, buffer, sizeof(buffer));
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
        result = {IsolatedEnd::kDone, "", 0};
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
                fmt::format("did not return within {:g} s", options.silence_limit_seconds), 0};
      break;
    }
  }
  close(pipe_end);

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
    if (!was_alive && WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  }
  return result;
}


// `start` is what the child does, with its end of the pipe.
IsolatedResult RunChild(const IsolatedOptions& options, uint64_t token,
                        const std::function<void(int fd)>& start,
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
    BecomeChild(parent);
    start(pipe_ends[1]);
  }
  close(pipe_ends[1]);
  return Supervise(child, pipe_ends[0], token, options, receive);
}

}  // namespace

IsolatedResult RunIsolated(const IsolatedOptions& options,
                           const std::function<void(const SendMessage& send)>& work,
                           const std::function<void(std::string_view message)>& receive) {
  const uint64_t token = DrawToken();
  return RunChild(
      options, token,
      [&](int fd) {
        CloseAllBut(fd);
        TakeInputFrom(open("/dev/null", O_RDONLY));
        Work(fd, token, work);
      },
      receive);
}

IsolatedResult RunIsolatedProgram(const IsolatedOptions& options,
                                  const std::vector<std::string>& arguments,
                                  std::string_view input,
                                  const std::function<void(std::string_view message)>& receive) {
  const uint64_t token = DrawToken();
  const int input_fd = memfd_create("filterbench-input", MFD_CLOEXEC);
  if (input_fd < 0) throw std::system_error(errno, std::generic_category(), "memfd_create");
  bool written = write(input_fd, &token, sizeof(token)) == sizeof(token);
  for (size_t at = 0; written && at < input.size();) {
    const ssize_t size = write(input_fd, input.data() + at, input.size() - at);
    written = size > 0;
    at += written ? static_cast<size_t>(size) : 0;
  }
  if (!written) {
    const int error = errno;
    close(input_fd);
    throw std::system_error(error, std::generic_category(), "memfd");
  }
  const IsolatedResult result = RunChild(
      options, token, [&](int fd) { StartAnew(fd, input_fd, token, arguments); }, receive);
  close(input_fd);
  return result;
}

void ServeIsolated(
    const std::function<void(std::string_view input, const SendMessage& send)>& work) {
  struct stat way_back;
  if (fstat(kServedFd, &way_back) != 0 || !S_ISFIFO(way_back.st_mode)) return;
  std::string input;
  char buffer[1 << 16];
  for (ssize_t size; (size = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0;) {
    input.append(buffer, static_cast<size_t>(size));
  }
  uint64_t token = 0;
  if (input.size() < sizeof(token)) return;
  std::memcpy(&token, input.data(), sizeof(token));
  fcntl(kServedFd, F_SETFD, FD_CLOEXEC);
  TakeInputFrom(open("/dev/null", O_RDONLY));
  Work(kServedFd, token, [&](const SendMessage& send) {
    work(std::string_view(input).substr(sizeof(token)), send);
  });
}

}  // namespace filterbench
