#ifndef FILTERBENCH_FILTERS_SIMD_PREFETCH_H_
#define FILTERBENCH_FILTERS_SIMD_PREFETCH_H_

#include <cstdint>

namespace filterbench {

// Whether batched lookups gain from prefetching in a table of this size. In a table that lies in
// the core's own caches the prefetches cost 0.2 to 0.6 ns per key and bring nothing: the
// out-of-order window hides the second-level cache. The answer depends on the machine's caches.
bool PrefetchPays(uint64_t table_bytes);

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_SIMD_PREFETCH_H_
