#include "filters/simd/prefetch.h"

#include <unistd.h>

namespace filterbench {

bool PrefetchPays(uint64_t table_bytes) {
  static const uint64_t second_level_bytes = [] {
    const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes > 0 ? static_cast<uint64_t>(bytes) : uint64_t{512} << 10;
  }();
  return table_bytes > second_level_bytes;
}

}  // namespace filterbench
