#ifndef FILTERBENCH_FILTERS_RIBBON_RIBBON_H_
#define FILTERBENCH_FILTERS_RIBBON_RIBBON_H_

// Ribbon filter, standard and homogeneous, for rows of 64 and 128 bits.
//
// Idea: each key is a linear equation over GF(2) whose coefficients lie in `width` consecutive
// slots of a table with r bits per slot; the table is a solution of the system. The `standard`
// filter compares r bits with r bits of the hash and can fail to be built for a seed; the
// `homogeneous` one asks for zeros, cannot fail, and pays with more slots.
// Source: Dillinger and Walzer, "Ribbon filter: practically smaller than Bloom and Xor", 2021.
// Eight columns are stored as a byte per slot, the rest by columns in blocks of 64 slots
// (interleaved, as in RocksDB's Standard128, with shorter blocks): see RibbonShape.
// Limits: no insertion after the build, which takes ten times a Bloom filter's time and memory for
// the matrix; slots per key grow with log(n) for the standard filter. When it loses: where filters
// are built more often than asked, and where a small table is no advantage.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/ribbon/banding.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"

namespace filterbench {

// What a hash asks of the table. All of it follows from the hash and the salt of the attempt.
struct RibbonHash {
  static constexpr uint64_t kMixMultiplier = 0xd1342543de82ef95;
  // Odd, so that products are bijections, and of 32 bits, since vectors multiply by those in half
  // the instructions: mixed hashes are well mixed above, these only have to break linearity.
  static constexpr uint64_t kRowMultiplier = 0x9e3779b1;
  static constexpr uint64_t kHighRowMultiplier = 0x85ebca77;
  static constexpr uint64_t kResultMultiplier = 0xc2b2ae3d;

  static constexpr uint64_t Fold(uint64_t x) { return x ^ x >> 32; }

  // Different for every attempt of every seed.
  static constexpr uint64_t Salt(uint64_t seed, uint64_t attempt) {
    return Mix64(Mix64(seed) + attempt * kGoldenGamma);
  }

  // A bijection, so that equal values are equal hashes. A multiplication after the salt, since two
  // hashes that differ by the same amount for all salts would share their start in all attempts.
  static constexpr uint64_t Mix(uint64_t hash, uint64_t salt) {
    return (hash ^ salt) * kMixMultiplier;
  }
  // In [0, starts).
  static constexpr uint64_t Start(uint64_t mixed, uint64_t starts) {
    return FastRange64(mixed, starts);
  }

  constexpr explicit RibbonHash(uint64_t mixed)
      : low(Fold(mixed) * kRowMultiplier), high(Fold(low) * kHighRowMultiplier) {}
  constexpr RibbonHash(uint64_t low_bits, uint64_t high_bits) : low(low_bits), high(high_bits) {}

  // Bit i is the coefficient of slot start + i.
  template <class Row>
  constexpr Row CoefficientRow() const {
    return Combine<Row>(low | 1, high);
  }
  // The coefficients where columns are bytes: each 64 bits of the hash are taken in the order that
  // makes masks of bytes in the fewest instructions (see kFirstByteCoefficient).
  template <class Row>
  constexpr Row ByteCoefficientRow() const {
    return Combine<Row>(FromByteOrder(low | kFirstByteCoefficient), FromByteOrder(high));
  }

  // In byte order, the coefficient of slot 8 * i + j of 64 is bit 7 - i of byte j: a shift of all
  // bits by i to the left brings those of eight slots to the tops of the slots' own bytes.
  static constexpr uint64_t kFirstByteCoefficient = 0x80;
  static constexpr uint64_t FromByteOrder(uint64_t bits) {
    return __builtin_bswap64(TransposeBits8x8(bits));
  }

  // One bit per column, the first column lowest.
  template <class Row>
  constexpr uint32_t ResultRow() const {
    // Bits whose carries come from all 24 lower ones, also of the first column.
    return static_cast<uint32_t>(
        (((sizeof(Row) == 8 ? low : high) & 0xffffffff) * kResultMultiplier) >> 24);
  }

  uint64_t low;
  uint64_t high;

 private:
  template <class Row>
  static constexpr Row Combine(uint64_t low_row, uint64_t high_row) {
    if constexpr (sizeof(Row) == 8) {
      return low_row;
    } else {
      return static_cast<Row>(high_row) << 64 | low_row;
    }
  }
};

// All that lookups need, of any ribbon filter.
struct RibbonTable {
  const uint64_t* words;
  uint64_t starts;  // 0 where no key was built in
  uint64_t salt;
  RibbonShape shape;
  bool prefetch;  // batched lookups prefetch their lines first
};

// A view that knows the width and the system. Lookups in an empty table have no meaning.
template <class RowType, bool kIsHomogeneous>
struct RibbonView : RibbonTable {
  using Row = RowType;
  static constexpr bool kHomogeneous = kIsHomogeneous;
  static constexpr uint64_t kRowSlots = 8 * sizeof(Row);
  static constexpr uint64_t kPieces = sizeof(Row) / 8 + 1;  // blocks that a row spans

  bool MayContain(uint64_t hash) const noexcept {
    const uint64_t mixed = RibbonHash::Mix(hash, salt);
    const RibbonHash equation(mixed);
    return AgreesFromPlane(0, RibbonHash::Start(mixed, starts), equation,
                           kHomogeneous ? 0 : equation.template ResultRow<Row>());
  }

  // Whether the row at `start` agrees in all columns but those of the first planes.
  bool AgreesFromPlane(uint32_t plane, uint64_t start, const RibbonHash& equation,
                       uint32_t result) const noexcept {
    const uint32_t planes = shape.planes();
    for (; plane < planes; ++plane) {
      const auto* slots =
          reinterpret_cast<const unsigned char*>(words + shape.PlaneWord(plane)) + start;
      uint64_t sum = SelectedBytes(slots, equation.low | RibbonHash::kFirstByteCoefficient);
      if constexpr (sizeof(Row) == 16) sum ^= SelectedBytes(slots + 64, equation.high);
      sum ^= sum >> 32;
      sum ^= sum >> 16;
      sum ^= sum >> 8;
      if (static_cast<uint8_t>(sum ^ result >> (RibbonShape::kPlaneColumns * plane)) != 0) {
        return false;
      }
    }
    if (shape.max_word_columns() == 0) return true;
    return AgreesInWords(start,
                         planes == 0 ? equation.template CoefficientRow<Row>()
                                     : equation.template ByteCoefficientRow<Row>(),
                         result >> (RibbonShape::kPlaneColumns * planes));
  }

 private:
  // The XOR of those of 64 bytes that the coefficients select, in any byte of the result.
  static uint64_t SelectedBytes(const unsigned char* bytes, uint64_t byte_ordered) noexcept {
    constexpr uint64_t kLowBits = 0x0101010101010101;
    uint64_t sum = 0;
    for (int i = 0; i < 8; ++i) {
      uint64_t word;
      std::memcpy(&word, bytes + 8 * i, sizeof(word));
      const uint64_t selected = byte_ordered >> (7 - i) & kLowBits;
      sum ^= word & ((selected << 8) - selected);
    }
    return sum;
  }

  bool AgreesInWords(uint64_t start, Row row, uint32_t result) const noexcept {
    const uint64_t block = start / RibbonShape::kBlockSlots;
    const uint64_t offset = start % RibbonShape::kBlockSlots;

    // The row cut at the borders of blocks. Where the offset is 0 the last piece is empty: 64 is no
    // valid shift, 1 + 63 are two.
    uint64_t piece[kPieces];
    piece[0] = static_cast<uint64_t>(row) << offset;
    for (uint64_t i = 1; i < kPieces; ++i) {
      const uint64_t before = static_cast<uint64_t>(row >> (64 * (i - 1)));
      piece[i] = before >> 1 >> (63 - offset);
      if (i + 1 < kPieces) piece[i] |= static_cast<uint64_t>(row >> (64 * i - 1) >> 1) << offset;
    }

    const uint64_t* column[kPieces];
    for (uint64_t i = 0; i < kPieces; ++i) column[i] = words + shape.WordIndex(block + i);
    // The first block decides how many columns the key has.
    const uint32_t columns = shape.word_columns() + (block >= shape.first_wide_block ? 1 : 0);
    for (uint32_t c = 0; c < columns; ++c) {
      uint64_t sum = 0;
      for (uint64_t i = 0; i < kPieces; ++i) sum ^= column[i][c] & piece[i];
      if ((static_cast<uint32_t>(__builtin_parityll(sum)) ^ (result >> c & 1)) != 0) return false;
    }
    return true;
  }
};

class Ribbon {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "ribbon",
      .summary = "solution of a banded linear system with 64 or 128 coefficients per key",
      .source = "Dillinger, Walzer 2021",
      .fpr_formula =
          "mean over starts of 2^-columns (Dillinger, Walzer 2021, section 2), plus the "
          "share of starts in solved regions where homogeneous (section 3)",
      .hash_bits = 64,
  };

  enum class Width : uint8_t { k64, k128 };
  enum class System : uint8_t { kStandard, kHomogeneous };

  // The size is asked for in one of three ways. `columns` and `fpr` may not both be given. Either
  // of them takes the place of the default of bits_per_key; any other value of bits_per_key beside
  // them is refused.
  struct Params {
    double bits_per_key = 10;
    double fpr = 0;
    double columns = 0;
    Width width = Width::k128;
    System system = System::kStandard;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0, 32,
                           "the table has at most so many bits per key, but at least one column; "
                           "0 is unset"},
      Knob<Params, double>{"fpr", &Params::fpr, 0, 0.5,
                           "the rate is at most this (from 2^-32 on); 0 is unset"},
      Knob<Params, double>{"columns", &Params::columns, 0, 32,
                           "bits per slot (from 1 on); 7.25 gives a quarter of the blocks 8, the "
                           "others 7; 0 is unset"},
      Choice{"width", &Params::width, std::array<std::string_view, 2>{"64", "128"},
             "coefficients per key"},
      Choice{
          "system", &Params::system, std::array<std::string_view, 2>{"standard", "homogeneous"},
          "right-hand sides: bits of the hash, or zeros, which never fails and needs more slots"},
  };

  static constexpr uint32_t kMaxColumns = 32;
  static constexpr uint64_t kMaxSlots = uint64_t{1} << 36;
  static constexpr uint64_t kMaxTableBytes = uint64_t{1} << 37;  // 2^40 bits
  // A build tries so many salts, then enlarges the table and tries again.
  static constexpr uint64_t kAttemptsPerSize = 64;
  static constexpr uint64_t kMaxEnlargements = 4;

  struct View : RibbonTable {
    Width width;
    System system;

    template <class Use>
    auto Specialize(Use&& use) const {
      if (starts == 0) return use(NoKeys{});
      const bool homogeneous = system == System::kHomogeneous;
      if (width == Width::k64) {
        return homogeneous ? use(RibbonView<uint64_t, true>{*this})
                           : use(RibbonView<uint64_t, false>{*this});
      }
      return homogeneous ? use(RibbonView<RibbonRow128, true>{*this})
                         : use(RibbonView<RibbonRow128, false>{*this});
    }

    bool MayContain(uint64_t hash) const noexcept {
      return Specialize([hash](const auto& view) { return view.MayContain(hash); });
    }
  };

  // Answers no. No solution of an empty system would.
  struct NoKeys {
    bool MayContain(uint64_t) const noexcept { return false; }
  };

  static std::string Contradiction(const Params& params);
  static Result<Ribbon> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<Ribbon> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  View view() const {
    return {{table_.As<uint64_t>(), starts_, salt_, shape_, PrefetchPays(table_.size())},
            params_.width,
            params_.system};
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
  // For 1e6 keys, standard, width 128: the slots per key are those of that number of keys.
  static std::optional<double> TheoryFpr(double bits_per_key);

  // The table for n keys after so many enlargements, or why there is none. Pure; 0 blocks for no
  // keys.
  static Result<RibbonShape> ShapeFor(uint64_t n, const Params& params, uint64_t enlargements);
  // First slots that a row may have: the last row ends with the table.
  static uint64_t StartsFor(const RibbonShape& shape, Width width) {
    return shape.blocks == 0 ? 0 : shape.slots() - WidthBits(width) + 1;
  }
  static constexpr uint64_t WidthBits(Width width) { return width == Width::k64 ? 64 : 128; }

  const RibbonShape& shape() const { return shape_; }

 private:
  Ribbon(const Params& params, uint64_t n, uint64_t attempt, const RibbonShape& shape,
         AlignedTable table);

  template <class Row, bool kHomogeneous>
  static Result<Ribbon> BuildAs(std::span<const uint64_t> hashes, const Params& params);

  Params params_;
  uint64_t n_;        // keys given, duplicates included
  uint64_t attempt_;  // the one that worked, from 0 on
  RibbonShape shape_;
  uint64_t starts_;
  uint64_t salt_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_RIBBON_RIBBON_H_
