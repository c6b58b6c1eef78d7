#ifndef FILTERBENCH_WORKLOADS_KEYS_H_
#define FILTERBENCH_WORKLOADS_KEYS_H_

// Sets of keys, addressed by index. Keys with an index below n are in the filter, those from n on
// are absent by construction: key i is a bijection of (i, seed), so that no two indices share a key
// and neither set needs a check or much memory.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filters/hash.h"
#include "filters/result.h"

namespace filterbench {

enum class KeyKind {
  kMixed,       // 64-bit integers: a bijective mix of the index
  kSequential,  // 64-bit integers: first + index, as row ids are
  kBytes,       // byte strings of one length, unique by construction
  kFile,        // the lines of a file
};
inline constexpr std::string_view kKeyKindNames[] = {"mixed", "sequential", "bytes", "file"};

// What keys a point is about; a plain value.
struct KeySetSpec {
  KeyKind kind = KeyKind::kMixed;
  uint32_t length_bytes = 0;  // kBytes only
  std::string path;           // kFile only, as the user wrote it
  std::string digest;         // kFile only: XXH3-64 of the file, 16 hex digits
  bool operator==(const KeySetSpec&) const = default;
};

// Byte strings that own their memory.
struct ByteKeyArena {
  std::vector<char> bytes;
  std::vector<uint64_t> offsets{0};

  void Append(std::string_view key) {
    bytes.insert(bytes.end(), key.begin(), key.end());
    offsets.push_back(bytes.size());
  }
  ByteKeys keys() const { return {bytes.data(), offsets.data(), offsets.size() - 1}; }
};

class KeySet {
 public:
  // Reads the file of a kFile set, whose digest must be that of the spec unless that is empty;
  // other kinds cannot fail for length_bytes in 8..4096. The keys of a file are shuffled with
  // `seed`, so that the first n of them are a sample of it.
  static Result<KeySet> Open(const KeySetSpec& spec, uint64_t seed);

  // As it was opened, a file with its digest.
  const KeySetSpec& spec() const { return spec_; }
  bool is_bytes() const { return spec_.kind == KeyKind::kBytes || spec_.kind == KeyKind::kFile; }
  // How many keys there are, absent ones included; 2^63 for generated sets.
  uint64_t size() const;

  // Integer key at an index; only where !is_bytes().
  uint64_t U64(uint64_t index) const;
  // Appends the byte string at an index; only where is_bytes().
  void AppendBytes(uint64_t index, ByteKeyArena& arena) const;

  // The hash of the key at an index: XXH3-64 with `hash_seed`.
  uint64_t Hash(uint64_t index, uint64_t hash_seed) const;

  KeySet() = default;  // kMixed, with the seed 0

 private:
  KeySet(KeySetSpec spec, uint64_t seed) : spec_(std::move(spec)), seed_(seed) {}

  KeySetSpec spec_;
  uint64_t seed_ = 0;
  std::shared_ptr<const ByteKeyArena> lines_;  // kFile: distinct lines in shuffled order
};

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_KEYS_H_
