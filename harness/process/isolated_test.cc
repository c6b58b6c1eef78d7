#include "harness/process/isolated.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace filterbench {
namespace {

// What this program does where a test starts it anew: the input says.
[[maybe_unused]] const bool kServed = [] {
  std::ifstream file("/proc/self/cmdline");
  const std::string words((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (words.find("served-by-isolated-test") == std::string::npos) return false;
  ServeIsolated([](std::string_view input, const SendMessage& send) {
    if (input == "crash") std::raise(SIGKILL);
    if (input == "throw") throw std::runtime_error("on purpose");
    if (input == "address") {
      static int here = 0;
      int on_the_stack = 0;
      send(std::to_string(reinterpret_cast<uintptr_t>(&here)) + " " +
           std::to_string(reinterpret_cast<uintptr_t>(&on_the_stack)));
      return;
    }
    send(input);
    send(std::getenv("HOME") == nullptr ? "" : std::getenv("HOME"));
    char byte = 0;
    send(std::fread(&byte, 1, 1, stdin) == 0 ? "no input is left" : "input is left");
  });
  return true;
}();

struct Seen {
  IsolatedResult result;
  std::vector<std::string> messages;
};

Seen Isolate(const std::function<void(const SendMessage&)>& work, IsolatedOptions options = {}) {
  Seen seen;
  seen.result = RunIsolated(options, work,
                            [&](std::string_view message) { seen.messages.emplace_back(message); });
  return seen;
}

Seen StartAnew(std::string_view input, IsolatedOptions options = {}) {
  Seen seen;
  seen.result =
      RunIsolatedProgram(options, {"served-by-isolated-test"}, input,
                         [&](std::string_view message) { seen.messages.emplace_back(message); });
  return seen;
}

TEST(RunIsolatedProgramTest, InputArrivesAndAnswersComeBack) {
  std::string input(1 << 20, 'x');
  input[100] = '\0';
  const Seen seen = StartAnew(input);
  EXPECT_EQ(seen.result.end, IsolatedEnd::kDone) << seen.result.reason;
  ASSERT_EQ(seen.messages.size(), 3u);
  EXPECT_EQ(seen.messages[0], input);
  EXPECT_EQ(seen.messages[2], "no input is left");
}

TEST(RunIsolatedProgramTest, ItsEndsAreTold) {
  const Seen killed = StartAnew("crash");
  EXPECT_EQ(killed.result.end, IsolatedEnd::kCrashed);
  EXPECT_EQ(killed.result.signal, SIGKILL);
  const Seen threw = StartAnew("throw");
  EXPECT_EQ(threw.result.reason, "threw: on purpose");
  EXPECT_EQ(threw.result.signal, 0);
}

// Case F7 does not apply: nothing switches randomisation of addresses off, so nothing is executed
// again for it; a worker is started once, and must draw other addresses.

// Why it is started anew: a fork has the addresses of its parent.
TEST(RunIsolatedProgramTest, AddressesAreDrawnAnew) {
  std::ifstream file("/proc/sys/kernel/randomize_va_space");
  int mode = 0;
  if (!(file >> mode) || mode == 0) GTEST_SKIP() << "addresses are not randomised here";
  std::set<std::string> addresses;
  for (int start = 0; start < 5; ++start) {
    for (const std::string& message : StartAnew("address").messages) addresses.insert(message);
  }
  EXPECT_GT(addresses.size(), 1u);
}

TEST(RunIsolatedTest, MessagesArriveWholeAndInOrder) {
  const std::string large(1 << 20, 'x');
  const Seen seen = Isolate([&](const SendMessage& send) {
    send("one");
    send("");
    send(large);
    send(std::string_view("a\0b", 3));
  });
  EXPECT_EQ(seen.result.end, IsolatedEnd::kDone);
  EXPECT_EQ(seen.result.reason, "");
  EXPECT_EQ(seen.messages, (std::vector<std::string>{"one", "", large, std::string("a\0b", 3)}));
}

TEST(RunIsolatedTest, ACrashKeepsWhatWasSentBefore) {
  const Seen seen = Isolate([](const SendMessage& send) {
    send("before");
    std::signal(SIGSEGV, SIG_DFL);
    std::raise(SIGSEGV);
  });
  EXPECT_EQ(seen.result.end, IsolatedEnd::kCrashed);
  EXPECT_EQ(seen.result.reason, "crashed: signal 11 (Segmentation fault)");
  EXPECT_EQ(seen.messages, std::vector<std::string>{"before"});
}

TEST(RunIsolatedTest, LeavingTheProcessIsNotBeingDone) {
  const Seen seen = Isolate([](const SendMessage&) { _exit(0); });
  EXPECT_EQ(seen.result.end, IsolatedEnd::kCrashed);
  EXPECT_EQ(seen.result.reason, "ended the process with exit code 0");
}

TEST(RunIsolatedTest, AnExceptionIsAReason) {
  const Seen seen = Isolate([](const SendMessage&) { throw std::runtime_error("no such thing"); });
  EXPECT_EQ(seen.result.end, IsolatedEnd::kCrashed);
  EXPECT_EQ(seen.result.reason, "threw: no such thing");
}

TEST(RunIsolatedTest, SilenceEnds) {
  const Seen seen = Isolate(
      [](const SendMessage& send) {
        send("before");
        for (;;) pause();
      },
      {.silence_limit_seconds = 0.2});
  EXPECT_EQ(seen.result.end, IsolatedEnd::kTimedOut);
  EXPECT_EQ(seen.result.reason, "did not return within 0.2 s");
  EXPECT_EQ(seen.messages, std::vector<std::string>{"before"});
}

// Who waits for the pipe to close would wait for a grandchild that holds it.
TEST(RunIsolatedTest, WhatTheChildLeavesBehindDoesNotHoldItUp) {
  const Seen seen = Isolate(
      [](const SendMessage& send) {
        if (fork() == 0) {
          for (;;) pause();
        }
        send("parent");
      },
      {.silence_limit_seconds = 60});
  EXPECT_EQ(seen.result.end, IsolatedEnd::kDone);
}

// It would be waited for without an end.
TEST(RunIsolatedTest, ClosingThePipeIsNoWayToHang) {
  const Seen seen = Isolate([](const SendMessage& send) {
    send("before");
    for (int fd = 0; fd < 1024; ++fd) close(fd);
    for (;;) pause();
  });
  EXPECT_EQ(seen.result.end, IsolatedEnd::kCrashed);
  EXPECT_EQ(seen.result.reason, "closed the way back and did not return");
}

TEST(RunIsolatedTest, FilesOfTheParentAreOutOfReach) {
  std::FILE* mine = std::tmpfile();
  ASSERT_NE(mine, nullptr);
  const int fd = fileno(mine);
  const Seen seen = Isolate(
      [fd](const SendMessage& send) { send(write(fd, "x", 1) < 0 ? "refused" : "written"); });
  EXPECT_EQ(seen.messages, std::vector<std::string>{"refused"});
  std::fclose(mine);
}

// Bytes in every file that is open, the pipe among them: neither a message nor a sign of life.
TEST(RunIsolatedTest, GarbageInThePipeIsAReason) {
  const Seen seen = Isolate([](const SendMessage& send) {
    send("before");
    const std::string zeros(4096, '\0');
    for (int fd = 3; fd < 64; ++fd) (void)!write(fd, zeros.data(), zeros.size());
    for (;;) pause();
  });
  EXPECT_EQ(seen.result.end, IsolatedEnd::kCrashed);
  EXPECT_EQ(seen.result.reason, "wrote into files that are not its own");
  EXPECT_EQ(seen.messages, std::vector<std::string>{"before"});
}

TEST(RunIsolatedTest, AGrandchildDoesNotHideACrash) {
  const Seen seen = Isolate(
      [](const SendMessage&) {
        if (fork() == 0) {
          setsid();
          sleep(5);
          _exit(0);
        }
        std::signal(SIGSEGV, SIG_DFL);
        std::raise(SIGSEGV);
      },
      {.silence_limit_seconds = 60});
  EXPECT_EQ(seen.result.end, IsolatedEnd::kCrashed);
  EXPECT_EQ(seen.result.reason, "crashed: signal 11 (Segmentation fault)");
}

TEST(RunIsolatedTest, ReasonsAreText) {
  const Seen seen = Isolate([](const SendMessage&) { throw std::runtime_error("a\xff\xfe b"); });
  EXPECT_EQ(seen.result.reason, "threw: a\xef\xbf\xbd\xef\xbf\xbd b");
}

TEST(RunIsolatedTest, StopsWhenAsked) {
  const Seen seen = Isolate(
      [](const SendMessage&) {
        for (;;) pause();
      },
      {.silence_limit_seconds = 60, .should_stop = [] { return true; }});
  EXPECT_EQ(seen.result.end, IsolatedEnd::kStopped);
}

TEST(RunIsolatedTest, MemoryOfTheParentIsUntouched) {
  std::vector<int> mine(1000, 7);
  Isolate([&](const SendMessage&) { std::fill(mine.begin(), mine.end(), 0); });
  EXPECT_EQ(mine, std::vector<int>(1000, 7));
}

}  // namespace
}  // namespace filterbench
