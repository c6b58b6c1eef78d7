#ifndef FILTERBENCH_FILTERS_PAGES_H_
#define FILTERBENCH_FILTERS_PAGES_H_

// Which pages the tables of filters are made of, where the one who builds them wants to choose.

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace filterbench {

enum class Pages {
  kSmall,        // the machine's smallest, also where it would make others of them by itself
  kTransparent,  // the kernel is asked for huge pages and gives them if it can
  kHugetlb,      // huge pages that the administrator has set aside; without them there is no table
};
inline constexpr std::string_view kPagesNames[] = {"4k", "thp", "hugetlb"};

// How the error of AlignedTable::Allocate begins where huge pages were not set aside. It ends with
// the command that does it.
inline constexpr std::string_view kNoHugePages = "no huge pages reserved: ";

// While it lives, every AlignedTable that this thread makes lies on such pages, whatever its size:
// each has a mapping of its own. Nothing: as without (filters/table.h).
class ScopedPages {
 public:
  explicit ScopedPages(std::optional<Pages> pages)
      : outer_pages_(std::exchange(pages_, pages)), outer_tables_(std::exchange(tables_, 0)) {}
  ~ScopedPages() {
    pages_ = outer_pages_;
    tables_ = outer_tables_;
  }
  ScopedPages(const ScopedPages&) = delete;
  ScopedPages& operator=(const ScopedPages&) = delete;

  // Tables made since the innermost scope of this thread began. None: what was built takes its
  // memory elsewhere, and nobody chose its pages.
  static uint64_t tables() { return tables_; }

  // For AlignedTable.
  static std::optional<Pages> pages() { return pages_; }
  static void CountTable() { ++tables_; }

 private:
  static inline thread_local std::optional<Pages> pages_;
  static inline thread_local uint64_t tables_ = 0;

  std::optional<Pages> outer_pages_;
  uint64_t outer_tables_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_PAGES_H_
