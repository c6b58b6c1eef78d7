// Which pages a table lies on.

#ifndef FILTERBENCH_HARNESS_MACHINE_TABLE_PAGES_H_
#define FILTERBENCH_HARNESS_MACHINE_TABLE_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/machine/fact.h"
#include "harness/machine/system_files.h"

namespace filterbench {

struct PagesOfTable {
  // Of the mapping that the table lies in: 4 KiB also where transparent huge pages back it.
  Fact<uint64_t> page_bytes = Fact<uint64_t>::Unknown("");
  // Of the memory that the table covers, rounded to huge pages: what is marked for transparent or
  // made of reserved huge pages, and what lies on either.
  Fact<uint64_t> huge_page_bytes_asked = Fact<uint64_t>::Unknown("");
  Fact<uint64_t> huge_page_bytes = Fact<uint64_t>::Unknown("");
};

// Reads /proc/self/smaps (proc(5)). The kernel counts huge pages by mapping: where other memory
// shares one with the table and the count cannot be told apart, it is unknown.
PagesOfTable ReadPagesOfTable(std::span<const std::byte> table, const SystemFiles& files);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_TABLE_PAGES_H_
