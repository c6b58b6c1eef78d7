// Back substitution is compiled once per Highway target: it is plain C++, but most of it is parity,
// and whether the processor counts bits makes a factor of two.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "filters/ribbon/banding.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.
#include <algorithm>
#include <cstring>
#include <utility>

#include "filters/hash.h"
#include "filters/ribbon/banding.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace filterbench {
namespace HWY_NAMESPACE {

HWY_INLINE uint64_t Parity(uint64_t x) { return hwy::PopCount(x) & 1; }
HWY_INLINE uint64_t Parity(RibbonRow128 x) {
  return Parity(static_cast<uint64_t>(x) ^ static_cast<uint64_t>(x >> 64));
}

// The columns [first_column, first_column + kColumns) of the blocks [begin, end), from the last
// slot to the first. Bit j of state[c] is the solution of column c at slot current + j: at the
// first slot of a block its low 64 bits are the block's word.
template <class Row, int kColumns>
void SolveColumns(const Row* HWY_RESTRICT rows, const uint32_t* HWY_RESTRICT results,
                  const uint64_t* free_salt, const RibbonShape& shape, uint64_t begin, uint64_t end,
                  uint32_t first_column, Row* state_in_out, uint64_t* HWY_RESTRICT words) {
  Row state[kColumns];
  std::copy_n(state_in_out, kColumns, state);
  for (uint64_t block = end; block-- > begin;) {
    for (uint64_t slot = (block + 1) * RibbonShape::kBlockSlots;
         slot-- > block * RibbonShape::kBlockSlots;) {
      const Row row = rows[slot];
      uint64_t bits = results != nullptr ? results[slot] : 0;  // 0 where the slot has no row
      if (free_salt != nullptr && row == 0) bits = Mix64(*free_salt + slot);
      bits >>= first_column;
      for (int c = 0; c < kColumns; ++c) {
        const Row later = state[c] << 1;
        state[c] = later | ((Parity(static_cast<Row>(later & row)) ^ (bits >> c)) & 1);
      }
    }
    if (first_column < shape.planes() * RibbonShape::kPlaneColumns) {
      uint64_t* out = words + shape.PlaneWord(first_column / RibbonShape::kPlaneColumns) +
                      block * (RibbonShape::kBlockSlots / sizeof(uint64_t));
      const uint64_t unused = block + 1 == shape.blocks ? shape.unused_slots / 8 : 0;
      for (uint64_t byte = 0; byte + unused < 8; ++byte) {
        uint64_t bits = 0;  // of 8 slots, a byte per column
        for (int c = 0; c < kColumns; ++c) {
          bits |= (static_cast<uint64_t>(state[c]) >> (8 * byte) & 0xff) << (8 * c);
        }
        out[byte] = TransposeBits8x8(bits);
      }
    } else {
      uint64_t* out = words + shape.WordIndex(block);
      for (int c = 0; c < kColumns; ++c) out[c] = static_cast<uint64_t>(state[c]);
    }
  }
  std::copy_n(state, kColumns, state_in_out);
}

inline constexpr int kColumnsAtOnce = RibbonShape::kPlaneColumns;

template <class Row, int kColumns = kColumnsAtOnce, class... Args>
void SolveSomeColumns(int columns, Args... args) {
  if constexpr (kColumns > 0) {
    if (columns == kColumns) {
      SolveColumns<Row, kColumns>(args...);
    } else {
      SolveSomeColumns<Row, kColumns - 1>(columns, args...);
    }
  }
}

template <class Row>
void SolveAll(const Row* rows, const uint32_t* results, const uint64_t* free_salt,
              const RibbonShape& shape, uint64_t* words) {
  for (uint32_t first = 0; first < shape.max_columns(); first += kColumnsAtOnce) {
    Row states[kColumnsAtOnce] = {};
    Row* state = states;
    const auto columns_here = [&](uint32_t columns) {
      return columns > first ? std::min<int>(kColumnsAtOnce, static_cast<int>(columns - first)) : 0;
    };
    // The wide blocks come last in the table, so first here; the additional column ends with them.
    SolveSomeColumns<Row>(columns_here(shape.max_columns()), rows, results, free_salt, shape,
                          shape.first_wide_block, shape.blocks, first, state, words);
    SolveSomeColumns<Row>(columns_here(shape.columns), rows, results, free_salt, shape, uint64_t{0},
                          shape.first_wide_block, first, state, words);
  }
}

void Solve64(const uint64_t* rows, const uint32_t* results, const uint64_t* free_salt,
             const RibbonShape& shape, uint64_t* words) {
  SolveAll(rows, results, free_salt, shape, words);
}

void Solve128(const RibbonRow128* rows, const uint32_t* results, const uint64_t* free_salt,
              const RibbonShape& shape, uint64_t* words) {
  SolveAll(rows, results, free_salt, shape, words);
}

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace filterbench {

HWY_EXPORT(Solve64);
HWY_EXPORT(Solve128);

template <class Row>
Result<Banding<Row>> Banding<Row>::Allocate(uint64_t slots, bool with_results) {
  Banding banding;
  banding.slots_ = slots;
  banding.with_results_ = with_results;
  Result<AlignedTable> rows = AlignedTable::Allocate(slots * sizeof(Row));
  if (!rows) return Error{rows.error()};
  banding.rows_ = std::move(*rows);
  if (with_results) {
    Result<AlignedTable> results = AlignedTable::Allocate(slots * sizeof(uint32_t));
    if (!results) return Error{results.error()};
    banding.results_ = std::move(*results);
  }
  return banding;
}

template <class Row>
void Banding<Row>::Clear() {
  if (rows_.size() != 0) std::memset(rows_.data(), 0, rows_.size());
  if (results_.size() != 0) std::memset(results_.data(), 0, results_.size());
}

template <class Row>
std::optional<Error> Banding<Row>::Grow(uint64_t slots) {
  if (slots <= slots_) return std::nullopt;
  Result<Banding> larger = Allocate(slots, with_results_);
  if (!larger) return Error{larger.error()};
  std::copy_n(rows_.data(), rows_.size(), larger->rows_.data());
  std::copy_n(results_.data(), results_.size(), larger->results_.data());
  *this = std::move(*larger);
  return std::nullopt;
}

template <class Row>
bool Banding<Row>::InSpan(uint64_t start, Row row) const {
  uint64_t slot = start;
  while (row != 0) {
    const int shift = TrailingZeros(row);
    row >>= shift;
    slot += shift;
    const Row pivot = rows()[slot];
    if (pivot == 0) return false;
    row ^= pivot;
  }
  return true;
}

template <class Row>
void Banding<Row>::Solve(const RibbonShape& shape, bool random_free, uint64_t salt,
                         uint64_t* words) const {
  const uint32_t* right_hand_sides = with_results_ ? results() : nullptr;
  const uint64_t* free_salt = random_free ? &salt : nullptr;
  if constexpr (sizeof(Row) == 8) {
    HWY_DYNAMIC_DISPATCH(Solve64)(rows(), right_hand_sides, free_salt, shape, words);
  } else {
    HWY_DYNAMIC_DISPATCH(Solve128)(rows(), right_hand_sides, free_salt, shape, words);
  }
}

template class Banding<uint64_t>;
template class Banding<RibbonRow128>;

}  // namespace filterbench
#endif  // HWY_ONCE
