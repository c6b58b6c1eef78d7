#ifndef FILTERBENCH_FILTERS_RIBBON_BANDING_H_
#define FILTERBENCH_FILTERS_RIBBON_BANDING_H_

// The solver that ribbon filters share: a system of linear equations over GF(2) in which the
// coefficients of an equation lie in `width` consecutive slots.
//
// Idea: Gaussian elimination on the fly. A row is reduced by the rows that stand at its leading
// slot until it finds a free one; the matrix stays a band, each slot holds at most one row, and a
// row that vanishes tells at once whether its equation agrees with the others. Afterwards back
// substitution from the last slot to the first gives every column of the solution.
// Source: Dillinger and Walzer, "Ribbon filter: practically smaller than Bloom and Xor", 2021,
// section 2 (Algorithm 1, "rapid incremental boolean banding").

#include <bit>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "filters/result.h"
#include "filters/table.h"

namespace filterbench {

using RibbonRow128 = unsigned __int128;

// Where the solution lies, two kinds of areas one after the other.
// Every eight columns are a plane of one byte per slot, column c in bit c of the byte: a row's
// bytes are contiguous wherever it starts, its coefficients select bytes, and their XOR is the sum
// of all eight columns at once. The remaining columns are words of 64 slots, those of a block of 64
// slots side by side. All blocks from `first_wide_block` on have one column more than those before,
// so that a window of blocks never has fewer columns than its first block.
struct RibbonShape {
  static constexpr uint64_t kBlockSlots = 64;
  static constexpr uint32_t kPlaneColumns = 8;

  uint64_t blocks = 0;
  uint32_t columns = 0;           // of the narrow blocks, or of all
  uint64_t first_wide_block = 0;  // `blocks` where all are equal
  // Of the last block, slots that no row reaches and that planes leave out; a multiple of 8.
  uint64_t unused_slots = 0;

  constexpr uint64_t slots() const { return blocks * kBlockSlots; }
  constexpr uint64_t used_slots() const { return slots() - unused_slots; }
  constexpr uint32_t planes() const { return columns / kPlaneColumns; }
  constexpr uint64_t PlaneWord(uint32_t plane) const {
    return plane * used_slots() / sizeof(uint64_t);
  }
  // Columns in words, of the narrow blocks and of the wide.
  constexpr uint32_t word_columns() const { return columns % kPlaneColumns; }
  constexpr uint32_t max_word_columns() const {
    return word_columns() + (first_wide_block < blocks ? 1 : 0);
  }
  constexpr uint64_t WordIndex(uint64_t block) const {
    return PlaneWord(planes()) + block * word_columns() +
           (block > first_wide_block ? block - first_wide_block : 0);
  }
  constexpr uint64_t words() const { return WordIndex(blocks); }
  constexpr uint32_t max_columns() const { return columns + (first_wide_block < blocks ? 1 : 0); }

  bool operator==(const RibbonShape&) const = default;
};

// The 8 x 8 bits of a word, bit j of byte i and bit i of byte j exchanged.
// Source: Warren, "Hacker's Delight", 2nd edition, section 7-3.
constexpr uint64_t TransposeBits8x8(uint64_t x) {
  uint64_t swapped = (x ^ x >> 7) & 0x00aa00aa00aa00aa;
  x ^= swapped ^ swapped << 7;
  swapped = (x ^ x >> 14) & 0x0000cccc0000cccc;
  x ^= swapped ^ swapped << 14;
  swapped = (x ^ x >> 28) & 0x00000000f0f0f0f0;
  return x ^ swapped ^ swapped << 28;
}

// Row is uint64_t or RibbonRow128; bit i of a row is the coefficient of slot start + i.
template <class Row>
class Banding {
 public:
  static constexpr uint64_t kWidth = 8 * sizeof(Row);

  enum class Outcome {
    kIndependent,   // the row is now part of the matrix
    kRedundant,     // it follows from the others and agrees with them
    kInconsistent,  // it contradicts the others; the matrix is unchanged
  };

  // An empty matrix. Without results, all right-hand sides are zero and no memory is spent on them.
  static Result<Banding> Allocate(uint64_t slots, bool with_results);

  // Forgets all rows.
  void Clear();

  // Adds the equation row * solution[start, start + kWidth) = result, one bit of `result` per
  // column. The row must be odd, and its last one within the matrix. An independent row takes a
  // slot of its own, which `taken` learns.
  template <bool kWithResults>
  Outcome Add(uint64_t start, Row row, uint32_t result, uint64_t* taken = nullptr) {
    Row* rows = rows_.As<Row>();
    [[maybe_unused]] uint32_t* results = results_.As<uint32_t>();
    for (uint64_t slot = start;;) {
      const Row pivot = rows[slot];
      if (pivot == 0) {
        rows[slot] = row;
        if constexpr (kWithResults) results[slot] = result;
        if (taken != nullptr) *taken = slot;
        return Outcome::kIndependent;
      }
      row ^= pivot;
      if constexpr (kWithResults) result ^= results[slot];
      if (row == 0) return result == 0 ? Outcome::kRedundant : Outcome::kInconsistent;
      const int shift = TrailingZeros(row);
      row >>= shift;
      slot += shift;
    }
  }

  // Takes back the last row that was added and is not yet taken back, which has this slot.
  void Remove(uint64_t slot) {
    rows_.As<Row>()[slot] = 0;
    if (with_results_) results_.As<uint32_t>()[slot] = 0;
  }

  // Makes room for so many slots at least; rows stay. An error where memory is short.
  std::optional<Error> Grow(uint64_t slots);

  // Whether the row is a sum of rows of the matrix.
  bool InSpan(uint64_t start, Row row) const;

  // Back substitution into shape.words() words; the shape has as many slots as the matrix, or less
  // where all rows end before. Slots
  // without a row are free: they become 0, or with `random_free` a pseudo-random function of
  // (salt, slot, column).
  void Solve(const RibbonShape& shape, bool random_free, uint64_t salt, uint64_t* words) const;

  uint64_t slots() const { return slots_; }
  bool with_results() const { return with_results_; }
  const Row* rows() const { return rows_.As<Row>(); }
  const uint32_t* results() const { return results_.As<uint32_t>(); }
  uint64_t AllocatedBytes() const { return rows_.allocated_bytes() + results_.allocated_bytes(); }

 private:
  Banding() = default;

  static int TrailingZeros(Row row) {
    if constexpr (sizeof(Row) == 8) {
      return std::countr_zero(row);
    } else {
      const auto low = static_cast<uint64_t>(row);
      return low != 0 ? std::countr_zero(low)
                      : 64 + std::countr_zero(static_cast<uint64_t>(row >> 64));
    }
  }

  uint64_t slots_ = 0;
  bool with_results_ = false;
  AlignedTable rows_;
  AlignedTable results_;
};

extern template class Banding<uint64_t>;
extern template class Banding<RibbonRow128>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_RIBBON_BANDING_H_
