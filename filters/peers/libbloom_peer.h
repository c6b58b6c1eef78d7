#ifndef FILTERBENCH_FILTERS_PEERS_LIBBLOOM_PEER_H_
#define FILTERBENCH_FILTERS_PEERS_LIBBLOOM_PEER_H_

// The Bloom filter of libbloom, called through its library.
//
// Idea: a C library as an application would use it: bloom_init for a number of keys and a rate,
// then bloom_add and bloom_check. Two MurmurHash2 calls over the key make a start and a step of 32
// bits, probe i is start + i step mod 2^32 mod bits. Keys are the eight bytes of a hash or of an
// integer, or byte strings.
// Source: libbloom 1.6 (Virkki), bloom.h.
// Limits: at least 1000 keys, fewer than 2^31 bits; sizes are `int`. When it loses: on time, two
// hash calls, a call and a division to each lookup (km_bloom has nearly the same rate from one
// hash).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include <bloom.h>

#include "filters/filter.h"

namespace filterbench {

class LibBloomPeer {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "libbloom_peer",
      .summary = "the Bloom filter of libbloom, called through its library",
      .source = "libbloom 1.6, bloom_init, bloom_add, bloom_check",
      .fpr_formula = "classic rate of positions word mod m (Bose et al. 2008), plus what pairs of "
                     "progressions of 32-bit words share (after Dillinger, Manolios 2004)",
      .hash_bits = 64,
  };

  struct Params {
    double bits_per_key = 10;
    uint64_t seed = 0;  // libbloom's hash has a fixed one: changes nothing
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 1, 64,
                           "sets the rate that bloom_init is given: 2^(-bits_per_key ln 2)"},
  };

  struct View {
    bloom* filter;

    bool MayContainBytes(std::string_view key) const noexcept {
      return bloom_check(filter, key.data(), static_cast<int>(key.size())) == 1;
    }
    // `value`: an integer key, or the hash of a key that was hashed before.
    bool MayContain(uint64_t value) const noexcept {
      return MayContainBytes({reinterpret_cast<const char*>(&value), sizeof(value)});
    }
  };

  // Sized for `keys` keys, for 1000 if they are fewer, holding none.
  static Result<LibBloomPeer> Create(uint64_t keys, const Params& params);
  static Result<LibBloomPeer> Build(std::span<const uint64_t> values, const Params& params);
  static Result<LibBloomPeer> BuildFromBytes(ByteKeys keys, const Params& params);
  static Result<LibBloomPeer> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused; each key beyond the number that Create was given raises the FPR.
  InsertStatus Insert(uint64_t value);
  // In one thread, whatever `threads` says: bloom_add is not safe in several.
  void InsertAll(std::span<const uint64_t> values, unsigned threads = 1);

  View view() const { return {filter_.get()}; }
  bool MayContain(uint64_t value) const noexcept { return view().MayContain(value); }
  bool MayContainBytes(std::string_view key) const noexcept { return view().MayContainBytes(key); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return Table().size() + sizeof(bloom) + sizeof(View); }
  uint64_t AllocatedBytes() const { return Table().size() + sizeof(bloom) + sizeof(*this); }
  // The member `bf` is private by its comment; the library has no other way to its bits.
  std::span<const std::byte> Table() const {
    return {reinterpret_cast<const std::byte*>(filter_->bf), static_cast<size_t>(filter_->bytes)};
  }
  Details GetDetails() const;
  std::optional<FprEstimate> ExpectedFpr() const;
  static std::optional<double> TheoryFpr(double bits_per_key);

 private:
  struct Free {
    void operator()(bloom* filter) const;
  };
  using Handle = std::unique_ptr<bloom, Free>;

  LibBloomPeer(const Params& params, uint64_t capacity, uint64_t keys, Handle filter);
  void Add(const void* key, size_t bytes);

  Params params_;
  uint64_t capacity_;  // keys that were asked for
  uint64_t keys_;      // keys added
  Handle filter_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_PEERS_LIBBLOOM_PEER_H_
