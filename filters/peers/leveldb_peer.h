#ifndef FILTERBENCH_FILTERS_PEERS_LEVELDB_PEER_H_
#define FILTERBENCH_FILTERS_PEERS_LEVELDB_PEER_H_

// LevelDB's own Bloom filter, called through its library: what NewBloomFilterPolicy makes.
//
// Idea: the peer that LevelDbBloom is compared with, in bytes, answers and time. Keys are the eight
// bytes of a hash or of an integer, or byte strings; the library hashes them.
// Source: libleveldb, leveldb/filter_policy.h.
// Limits: 2^31 - 1 keys, all at once; a lookup is a virtual call. When it loses: to LevelDbBloom,
// which differs in nothing but the call and the division.

#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include "filters/filter.h"
#include "filters/table.h"

namespace filterbench {

class LevelDbPeer {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "leveldb_peer",
      .summary = "LevelDB's Bloom filter, called through its library",
      .source = "libleveldb, NewBloomFilterPolicy",
      .fpr_formula = "that of leveldb_bloom",
      .hash_bits = 32,
  };

  struct Params {
    uint32_t bits_per_key = 10;
    uint64_t seed = 0;  // LevelDB's hash has a fixed one: changes nothing
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, uint32_t>{"bits_per_key", &Params::bits_per_key, 1, 128,
                             "what NewBloomFilterPolicy is given"},
  };

  struct View {
    const leveldb::FilterPolicy* policy;
    const char* filter;
    size_t filter_bytes;

    bool MayContainBytes(std::string_view key) const noexcept {
      return policy->KeyMayMatch(leveldb::Slice(key.data(), key.size()),
                                 leveldb::Slice(filter, filter_bytes));
    }
    // `value`: an integer key, or the hash of a key that was hashed before.
    bool MayContain(uint64_t value) const noexcept {
      return MayContainBytes({reinterpret_cast<const char*>(&value), sizeof(value)});
    }
  };

  static Result<LevelDbPeer> Build(std::span<const uint64_t> values, const Params& params);
  static Result<LevelDbPeer> BuildFromBytes(ByteKeys keys, const Params& params);
  static Result<LevelDbPeer> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  View view() const {
    return {policy_.get(), reinterpret_cast<const char*>(table_.data()), table_.size()};
  }
  bool MayContain(uint64_t value) const noexcept { return view().MayContain(value); }
  bool MayContainBytes(std::string_view key) const noexcept { return view().MayContainBytes(key); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

 private:
  LevelDbPeer(const Params& params, uint64_t keys, AlignedTable table);
  template <class KeyAt>
  static Result<LevelDbPeer> BuildFrom(size_t n, const Params& params, const KeyAt& key_at);

  Params params_;
  uint64_t keys_;
  std::unique_ptr<const leveldb::FilterPolicy> policy_;
  AlignedTable table_;  // a copy of what the library made
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_PEERS_LEVELDB_PEER_H_
