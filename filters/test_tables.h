#ifndef FILTERBENCH_FILTERS_TEST_TABLES_H_
#define FILTERBENCH_FILTERS_TEST_TABLES_H_

// Tables as tests want them: at the edge of pages that may not be touched, larger than memory,
// or not at all.

#include <optional>
#include <utility>

namespace filterbench {

enum class TestTables {
  kGuardBefore,  // the first byte follows a page that may not be touched
  kGuardBehind,  // the last cache line of the slack precedes one
  kRefused,      // there is no memory: the error says how many bytes were asked for
  kSparse,       // takes memory where it is touched and none in advance, small pages at a time
};

// While it lives, every AlignedTable that this thread makes is such a one.
class ScopedTestTables {
 public:
  explicit ScopedTestTables(TestTables tables) : outer_(std::exchange(tables_, tables)) {}
  ~ScopedTestTables() { tables_ = outer_; }
  ScopedTestTables(const ScopedTestTables&) = delete;
  ScopedTestTables& operator=(const ScopedTestTables&) = delete;

  // For AlignedTable.
  static std::optional<TestTables> tables() { return tables_; }

 private:
  static inline thread_local std::optional<TestTables> tables_;

  std::optional<TestTables> outer_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_TEST_TABLES_H_
