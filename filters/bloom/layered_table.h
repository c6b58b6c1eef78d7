#ifndef FILTERBENCH_FILTERS_BLOOM_LAYERED_TABLE_H_
#define FILTERBENCH_FILTERS_BLOOM_LAYERED_TABLE_H_

// Layers of a growing filter, one behind the other in one table.
//
// A new layer moves the others into a table that has room for all. Layers grow by a factor, so that
// a byte is moved less than 1 / (factor - 1) + 1 times in all; in return the table of a filter is
// one, its huge pages are shared, and the wire format stores it as it is.

#include <cstdint>
#include <cstring>

#include "filters/result.h"
#include "filters/table.h"

namespace filterbench {

// The bytes of `table`, and as many zero bytes behind them.
inline Result<AlignedTable> Extended(const AlignedTable& table, uint64_t more_bytes) {
  Result<AlignedTable> extended = AlignedTable::Allocate(table.size() + more_bytes);
  if (extended && table.size() != 0) std::memcpy(extended->data(), table.data(), table.size());
  return extended;
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_LAYERED_TABLE_H_
