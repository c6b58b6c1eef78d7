#ifndef FILTERBENCH_WORKLOADS_LOOKUP_KEYS_H_
#define FILTERBENCH_WORKLOADS_LOOKUP_KEYS_H_

// A stream of keys that an application asks for, as it meets them: integers or strings, to be hashed
// one by one.

#include <cstdint>
#include <vector>

#include "filters/hash.h"
#include "workloads/keys.h"
#include "workloads/lookups.h"

namespace filterbench {

class LookupKeys {
 public:
  // As MakeLookups with limit key_set.size(), but shorter where an absent key would be asked twice.
  LookupKeys(const KeySet& key_set, uint64_t n, uint64_t size, double negative_share,
             uint64_t seed);

  uint64_t size() const { return indices_.size(); }
  uint64_t negatives() const { return negatives_; }
  bool is_present(uint64_t i) const { return indices_[i] < n_; }
  uint64_t index(uint64_t i) const { return indices_[i]; }

  // The hash of each key in turn (KeySet::Hash), computed from the key.
  template <class Use>
  void ForEachHash(uint64_t hash_seed, const Use& use) const {
    if (!words_.empty()) {
      for (const uint64_t key : words_) use(HashU64(key, hash_seed));
      return;
    }
    const ByteKeys keys = arena_.keys();
    for (size_t i = 0; i < keys.size; ++i) use(HashBytes(keys[i], hash_seed));
  }

 private:
  uint64_t n_;
  uint64_t negatives_;
  std::vector<uint64_t> indices_;
  std::vector<uint64_t> words_;  // of integer keys
  ByteKeyArena arena_;           // of others
};

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LOOKUP_KEYS_H_
