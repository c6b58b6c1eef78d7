#include "workloads/lookup_keys.h"

#include <utility>

namespace filterbench {

LookupKeys::LookupKeys(const KeySet& key_set, uint64_t n, uint64_t size, double negative_share,
                       uint64_t seed)
    : n_(n) {
  const uint64_t length =
      LookupsWithoutRepeats(size, negative_share, /*present=*/size, key_set.size() - n);
  LookupIndices lookups = MakeLookups(n, key_set.size(), length, negative_share, seed);
  negatives_ = lookups.negatives;
  indices_ = std::move(lookups.indices);
  for (const uint64_t index : indices_) {
    if (key_set.is_bytes()) {
      key_set.AppendBytes(index, arena_);
    } else {
      words_.push_back(key_set.U64(index));
    }
  }
}

}  // namespace filterbench
