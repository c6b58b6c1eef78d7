#include "workloads/key_bytes.h"

#include <algorithm>
#include <cstring>

#include "filters/hash.h"

namespace filterbench {

std::string KeyBytes(const KeySet& key_set, uint64_t index) {
  if (key_set.is_bytes()) {
    ByteKeyArena arena;
    key_set.AppendBytes(index, arena);
    return std::string(arena.bytes.begin(), arena.bytes.end());
  }
  const uint64_t key = key_set.U64(index);
  std::string bytes(sizeof(key), '\0');
  for (size_t i = 0; i < sizeof(key); ++i) {
    bytes[i] = static_cast<char>(key >> (8 * (sizeof(key) - 1 - i)));
  }
  return bytes;
}

std::string ValueOf(std::string_view key, uint64_t bytes) {
  std::string value(bytes, '\0');
  uint64_t word = HashBytes(key, bytes);
  for (size_t i = 0; i < value.size(); ++i) {
    if (i % sizeof(word) == 0) word = Mix64(word + kGoldenGamma);
    value[i] = static_cast<char>(word >> (8 * (i % sizeof(word))));
  }
  return value;
}

}  // namespace filterbench
