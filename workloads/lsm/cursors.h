#ifndef FILTERBENCH_WORKLOADS_LSM_CURSORS_H_
#define FILTERBENCH_WORKLOADS_LSM_CURSORS_H_

// Cursors over more than one file.

#include <memory>
#include <string_view>
#include <vector>

#include "workloads/lsm/table.h"

namespace filterbench::lsm {

// Over files that do not overlap, in the order of their keys: at the first entry that is not less
// than `first`. A file is not read before the cursor comes to it. The blocks read are added to
// `counters`, which outlives it, as the tables do.
std::unique_ptr<Table::Cursor> SeekInRun(std::vector<const Table*> tables, std::string_view first,
                                         ReadCounters& counters);

// Over the entries of all cursors, from the newest to the oldest: of a key that several have, the
// entry of the first of these. Ends at the first error.
std::unique_ptr<Table::Cursor> Merge(std::vector<std::unique_ptr<Table::Cursor>> newest_first);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_CURSORS_H_
