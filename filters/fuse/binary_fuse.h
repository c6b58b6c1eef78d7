#ifndef FILTERBENCH_FILTERS_FUSE_BINARY_FUSE_H_
#define FILTERBENCH_FILTERS_FUSE_BINARY_FUSE_H_

// Binary fuse filter, 3-wise and 4-wise.
//
// Idea: each key has a fingerprint and three or four slots, and the table is chosen such that the
// slots of a key sum up (XOR) to its fingerprint. The slots lie in neighbouring segments of the
// table. Its two ends are then less crowded than the rest; keys can be peeled off from there, and
// 1.125 (or 1.075) slots per key suffice where 1.23 are needed without segments.
// Source: Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", 2022. Sizes
// are those of the authors' code; what differs is that a build cannot fail for lack of luck: after
// a few seeds the table grows a little (filters/fuse/peeling.h).
// Limits: no insertion after the build, which takes some 20 bytes per key; the rate comes in steps
// of a factor 256. When it loses: below some 1e4 keys the table is no smaller than that of `xor`;
// where filters are built more often than asked, or one cache miss instead of three decides,
// blocked Bloom filters are faster, and ribbon filters are smaller still.

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

class BinaryFuse {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "binary_fuse",
      .summary = "fingerprints of 8 or 16 bits as the sum of 3 or 4 slots in neighbouring segments",
      .source = "Graf, Lemire 2022",
      .fpr_formula = "2^-fingerprint_bits (Graf, Lemire 2022, section 3)",
      .hash_bits = 64,
  };

  enum class Arity : uint8_t { k3, k4 };
  enum class FingerprintBits : uint8_t { k8, k16 };

  struct Params {
    Arity arity = Arity::k3;
    FingerprintBits fingerprint_bits = FingerprintBits::k8;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Choice{"arity", &Params::arity, std::array<std::string_view, 2>{"3", "4"},
             "slots per key; 4 makes the table smaller and lookups slower"},
      Choice{"fingerprint_bits", &Params::fingerprint_bits,
             std::array<std::string_view, 2>{"8", "16"}, "bits per slot"},
  };

  static constexpr uint64_t kMaxTableBytes = uint64_t{1} << 37;  // 2^40 bits

  // The table of either arity: segments that a key may start in, times the slots of one, and these.
  struct Shape {
    uint64_t first_slots = 0;
    uint64_t segment_slots = 0;
    uint64_t slots = 0;
    bool operator==(const Shape&) const = default;
  };

  struct View {
    const std::byte* table;
    uint64_t first_slots;  // 0 where no key was built in
    uint64_t segment_slots;
    uint64_t salt;
    Arity arity;
    FingerprintBits fingerprint_bits;
    bool prefetch;

    template <class Use>
    auto Specialize(Use&& use) const {
      if (first_slots == 0) return use(NoFingerprints{});
      const bool wide = fingerprint_bits == FingerprintBits::k16;
      if (arity == Arity::k3) return wide ? use(As<3, uint16_t>()) : use(As<3, uint8_t>());
      return wide ? use(As<4, uint16_t>()) : use(As<4, uint8_t>());
    }
    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }

   private:
    template <int kArity, class T>
    FingerprintView<FuseLayout<kArity>, T> As() const {
      return {reinterpret_cast<const T*>(table), {first_slots, segment_slots}, salt, prefetch};
    }
  };

  static Result<BinaryFuse> Build(std::span<const uint64_t> hashes, const Params& params);
  // The same with at most so many attempts, seeds and sizes together. An error if none works.
  static Result<BinaryFuse> BuildWithin(uint64_t max_attempts, std::span<const uint64_t> hashes,
                                        const Params& params);

  static Result<BinaryFuse> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  View view() const {
    return {table_.data(),   shape_.first_slots,       shape_.segment_slots,       salt_,
            params_.arity, params_.fingerprint_bits, PrefetchPays(table_.size())};
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
  // For 1e6 keys or more, 3-wise, with bits_per_key / 1.125 bits of fingerprint, whole or not.
  static std::optional<double> TheoryFpr(double bits_per_key);

  // The table for n distinct keys after so many enlargements, or why there is none. Pure.
  static Result<Shape> ShapeFor(uint64_t n, const Params& params, uint64_t enlargements);
  const Shape& shape() const { return shape_; }

 private:
  BinaryFuse(const Params& params, uint64_t keys, uint64_t attempt, const Shape& shape,
             AlignedTable table);

  Params params_;
  uint64_t keys_;     // distinct ones
  uint64_t attempt_;  // the one that worked, from 0 on
  Shape shape_;
  uint64_t salt_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_FUSE_BINARY_FUSE_H_
