#include "harness/process/isolated.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

namespace filterbench {
namespace {

struct Seen {
  IsolatedResult result;
  std::vector<std::string> messages;
};

Seen Isolate(const std::function<void(const SendMessage&)>& work, IsolatedOptions options = {}) {
  Seen seen;
  seen.result = RunIsolated(options, work, [&](std::string_view message) {
    seen.messages.emplace_back(message);
  });
  return seen;
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
  EXPECT_EQ(seen.messages,
            (std::vector<std::string>{"one", "", large, std::string("a\0b", 3)}));
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

TEST(RunIsolatedTest, StopsWhenAsked) {
  const Seen seen = Isolate([](const SendMessage&) { for (;;) pause(); },
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
