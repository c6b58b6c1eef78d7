#ifndef FILTERBENCH_FILTERS_FUSE_XOR_H_
#define FILTERBENCH_FILTERS_FUSE_XOR_H_

// Xor filter: fingerprints of 8 or 16 bits as the sum of three slots.
//
// Idea: each key has a fingerprint and three slots, one in each third of the table, and the table
// is chosen such that the slots of a key sum up (XOR) to its fingerprint. 1.23 slots per key
// suffice for that, and a lookup reads three slots whatever the answer is.
// Source: Graf and Lemire, "Xor Filters: Faster and Smaller Than Bloom and Cuckoo Filters", 2020.
// What differs is that a build cannot fail for lack of luck: after a few seeds the table grows a
// little (filters/fuse/peeling.h).
// Limits: no insertion after the build, which takes some 20 bytes per key and, in tables beyond the
// caches, a few cache misses per key; the rate comes in steps of a factor 256. When it loses: from
// some 1e4 keys on `binary_fuse` is smaller, builds faster and answers alike; where one cache miss
// instead of three decides, blocked Bloom filters are faster.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/fuse/positions.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

class Xor {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "xor",
      .summary = "fingerprints of 8 or 16 bits as the sum of 3 slots anywhere in the table",
      .source = "Graf, Lemire 2020",
      .fpr_formula = "2^-fingerprint_bits (Graf, Lemire 2020, section 3)",
      .hash_bits = 64,
  };

  enum class FingerprintBits : uint8_t { k8, k16 };

  struct Params {
    FingerprintBits fingerprint_bits = FingerprintBits::k8;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"fingerprint_bits", &Params::fingerprint_bits,
             std::array<std::string_view, 2>{"8", "16"}, "bits per slot"},
  };

  static constexpr uint64_t kMaxTableBytes = uint64_t{1} << 37;  // 2^40 bits

  struct View {
    const std::byte* table;
    XorLayout layout;
    uint64_t salt;
    FingerprintBits fingerprint_bits;
    bool prefetch;

    template <class Use>
    auto Specialize(Use&& use) const {
      if (layout.block_slots == 0) return use(NoFingerprints{});
      return fingerprint_bits == FingerprintBits::k16 ? use(As<uint16_t>()) : use(As<uint8_t>());
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }

   private:
    template <class T>
    FingerprintView<XorLayout, T> As() const {
      return {reinterpret_cast<const T*>(table), layout, salt, prefetch};
    }
  };

  static Result<Xor> Build(std::span<const uint64_t> hashes, const Params& params);
  // The same with at most so many attempts, seeds and sizes together. An error if none works.
  static Result<Xor> BuildWithin(uint64_t max_attempts, std::span<const uint64_t> hashes,
                                        const Params& params);

  static Result<Xor> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  View view() const {
    return {table_.data(), layout_, salt_, params_.fingerprint_bits, PrefetchPays(table_.size())};
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  std::optional<FprEstimate> ExpectedFpr() const;
  // For many keys, with bits_per_key / 1.23 bits of fingerprint, whole or not.
  static std::optional<double> TheoryFpr(double bits_per_key);

  // The table for n distinct keys after so many enlargements, or why there is none. Pure.
  static Result<XorLayout> LayoutFor(uint64_t n, const Params& params, uint64_t enlargements);
  const XorLayout& layout() const { return layout_; }

 private:
  Xor(const Params& params, uint64_t keys, uint64_t attempt, const XorLayout& layout,
      AlignedTable table);

  Params params_;
  uint64_t keys_;     // distinct ones
  uint64_t attempt_;  // the one that worked, from 0 on
  XorLayout layout_;
  uint64_t salt_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_FUSE_XOR_H_
