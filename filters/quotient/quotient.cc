#include "filters/quotient/quotient.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "filters/theory/quotient.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr uint64_t kSlotsPerBlock = Quotient::kSlotsPerBlock;

uint64_t LoadWord(const std::byte* words, uint64_t i) {
  uint64_t word;
  std::memcpy(&word, words + i * sizeof(word), sizeof(word));
  return word;
}
// Changes only the bits [begin, end) of a string of bits, which reach into word i.
void StoreBits(std::byte* words, uint64_t i, uint64_t begin, uint64_t end, uint64_t bits) {
  uint64_t mask = ~uint64_t{0};
  if (begin > i * 64) mask &= ~uint64_t{0} << (begin - i * 64);
  if (end < (i + 1) * 64) mask &= LowBits(end - i * 64);
  const uint64_t word = (LoadWord(words, i) & ~mask) | (bits & mask);
  std::memcpy(words + i * sizeof(word), &word, sizeof(word));
}

// Moves the bits [begin, end) of a string of bits up, or down, by 1 to 63 places.
void ShiftBitsUp(std::byte* words, uint64_t begin, uint64_t end, uint64_t by) {
  if (begin == end) return;
  const uint64_t first = (begin + by) / 64;
  for (uint64_t i = (end + by - 1) / 64 + 1; i-- > first;) {
    uint64_t bits = LoadWord(words, i) << by;
    if (i != 0) bits |= LoadWord(words, i - 1) >> (64 - by);
    StoreBits(words, i, begin + by, end + by, bits);
  }
}
void ShiftBitsDown(std::byte* words, uint64_t begin, uint64_t end, uint64_t by) {
  if (begin == end) return;
  const uint64_t last = (end - 1) / 64;
  for (uint64_t i = (begin - by) / 64; i <= (end - by - 1) / 64; ++i) {
    uint64_t bits = LoadWord(words, i) >> by;
    if (i < last) bits |= LoadWord(words, i + 1) << (64 - by);
    StoreBits(words, i, begin - by, end - by, bits);
  }
}

// What changes a table.
class QuotientWriter {
 public:
  using Place = Quotient::Place;

  QuotientWriter(std::byte* table, const Quotient::View& view)
      : table_(table), view_(view), slots_(Quotient::BlocksFor(view.quotients) * kSlotsPerBlock) {}

  Place PlaceOf(uint64_t hash) const { return view_.PlaceOf(hash); }
  void Prefetch(const Place& place) const {
    std::byte* const block = At(place.quotient / kSlotsPerBlock);
    __builtin_prefetch(block, 1);
    __builtin_prefetch(block + Quotient::kRemaindersAt +
                           place.quotient % kSlotsPerBlock * view_.remainder_bits / 8,
                       1);
  }
  bool Contains(const Place& place) const { return view_.Contains(place); }

  // At the end of the run of the quotient. False, and nothing changed, if there is no room.
  bool Insert(const Place& place) const {
    const uint64_t quotient = place.quotient;
    const uint64_t free = FirstFree(quotient);
    if (free == slots_ || free - quotient > Quotient::kMaxShiftedSlots) return false;
    // All that lies from the end of the run to the free slot moves up by one; blocks that begin
    // there have one more slot at their start that is not theirs.
    const uint64_t first_block = quotient / kSlotsPerBlock + 1;
    const uint64_t last_block = free / kSlotsPerBlock;
    for (uint64_t block = first_block; block <= last_block; ++block) {
      if (view_.Offset(block) == Quotient::kMaxOffset) return false;
    }
    const bool has_run = view_.IsOccupied(quotient);
    const uint64_t slot = free == quotient ? free : view_.RunsEnd(quotient);
    ShiftSlotsUp(slot, free);
    if (has_run) SetRunend(slot - 1, false);
    SetRunend(slot, true);
    SetRemainder(slot, place.remainder);
    SetOccupied(quotient, true);
    for (uint64_t block = first_block; block <= last_block; ++block) AddToOffset(block, 1);
    return true;
  }

  // False if there is no key with this fingerprint; else one such key is removed.
  bool Erase(const Place& place) const {
    const uint64_t quotient = place.quotient;
    const uint64_t slot = view_.Find(place);
    if (slot == Quotient::View::kNoSlot) return false;
    // Runs move down as long as they are not where they belong.
    uint64_t end = view_.RunsEnd(quotient);
    for (uint64_t next; (next = view_.RunsEnd(end - 1)) > end;) end = next;
    if (view_.IsRunend(slot)) {
      if (slot == quotient || view_.IsRunend(slot - 1)) {
        SetOccupied(quotient, false);
      } else {
        SetRunend(slot - 1, true);
      }
    }
    ShiftSlotsDown(slot + 1, end);
    SetRunend(end - 1, false);
    SetRemainder(end - 1, 0);
    for (uint64_t block = quotient / kSlotsPerBlock + 1; block <= (end - 1) / kSlotsPerBlock;
         ++block) {
      AddToOffset(block, -1);
    }
    return true;
  }

 private:
  std::byte* At(uint64_t block) const { return table_ + block * view_.block_bytes; }
  std::byte* Remainders(uint64_t block) const { return At(block) + Quotient::kRemaindersAt; }
  std::byte* Runends(uint64_t block) const { return At(block) + Quotient::kRunendsAt; }

  // The first slot from that of `quotient` on that holds no key; slots_ if there is none.
  uint64_t FirstFree(uint64_t quotient) const {
    uint64_t slot = quotient;
    while (slot < slots_) {
      const uint64_t end = view_.RunsEnd(slot);
      if (end <= slot) return slot;
      slot = end;
    }
    return slots_;
  }

  static void SetBit(std::byte* words, uint64_t bit, bool value) {
    const auto mask = static_cast<std::byte>(1 << bit % 8);
    words[bit / 8] = value ? words[bit / 8] | mask : words[bit / 8] & ~mask;
  }
  void SetOccupied(uint64_t quotient, bool value) const {
    SetBit(At(quotient / kSlotsPerBlock) + Quotient::kOccupiedsAt, quotient % kSlotsPerBlock,
           value);
  }
  void SetRunend(uint64_t slot, bool value) const {
    SetBit(Runends(slot / kSlotsPerBlock), slot % kSlotsPerBlock, value);
  }
  void SetRemainder(uint64_t slot, uint64_t remainder) const {
    const uint64_t bit = slot % kSlotsPerBlock * view_.remainder_bits;
    std::byte* const at = Remainders(slot / kSlotsPerBlock) + bit / 8;
    uint32_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    bits &= ~static_cast<uint32_t>(LowBits(view_.remainder_bits) << (bit % 8));
    bits |= static_cast<uint32_t>(remainder << (bit % 8));
    std::memcpy(at, &bits, sizeof(bits));
  }
  void AddToOffset(uint64_t block, int change) const {
    std::byte& offset = *At(block);
    offset = static_cast<std::byte>(std::to_integer<int>(offset) + change);
  }
  void CopySlot(uint64_t from, uint64_t to) const {
    SetRunend(to, view_.IsRunend(from));
    SetRemainder(to, view_.Remainder(from));
  }

  // Moves the slots [begin, end) to [begin + 1, end + 1).
  void ShiftSlotsUp(uint64_t begin, uint64_t end) const {
    const uint64_t first = begin / kSlotsPerBlock;
    for (uint64_t block = end / kSlotsPerBlock + 1; block-- > first;) {
      const uint64_t start = block * kSlotsPerBlock;
      const uint64_t from = std::max(begin, start) - start;
      const uint64_t to = std::min(end, start + kSlotsPerBlock - 1) - start;
      const uint64_t r = view_.remainder_bits;
      ShiftBitsUp(Runends(block), from, to, 1);
      ShiftBitsUp(Remainders(block), from * r, to * r, r);
      if (block > first) CopySlot(start - 1, start);
    }
  }
  // Moves the slots [begin, end) to [begin - 1, end - 1).
  void ShiftSlotsDown(uint64_t begin, uint64_t end) const {
    for (uint64_t slot = begin; slot < end;) {
      const uint64_t start = slot / kSlotsPerBlock * kSlotsPerBlock;
      const uint64_t stop = std::min(end, start + kSlotsPerBlock);
      if (slot == start) CopySlot(slot++, start - 1);
      const uint64_t r = view_.remainder_bits;
      ShiftBitsDown(Runends(start / kSlotsPerBlock), slot - start, stop - start, 1);
      ShiftBitsDown(Remainders(start / kSlotsPerBlock), (slot - start) * r, (stop - start) * r, r);
      slot = stop;
    }
  }

  std::byte* table_;
  Quotient::View view_;
  uint64_t slots_;
};

// Empty if Insert and Erase could have left this table with `stored` keys, up to the order within
// runs; else what is wrong. Nothing else may be asked: a lookup would leave the table, or deny a
// key.
std::string WhatIsInconsistent(const Quotient::View& view, uint64_t stored) {
  const uint64_t blocks = Quotient::BlocksFor(view.quotients);
  const uint64_t slots = blocks * kSlotsPerBlock;
  const auto next_runend = [&](uint64_t slot) {
    uint64_t block = slot / kSlotsPerBlock;
    if (block >= blocks) return slots;
    uint64_t runends = view.Runends(block) & ~LowBits(slot % kSlotsPerBlock);
    while (runends == 0) {
      if (++block == blocks) return slots;
      runends = view.Runends(block);
    }
    return block * kSlotsPerBlock + static_cast<uint64_t>(std::countr_zero(runends));
  };
  uint64_t end = 0;  // of all runs so far
  uint64_t found = 0;
  for (uint64_t block = 0; block < blocks; ++block) {
    const uint64_t start = block * kSlotsPerBlock;
    if (view.Offset(block) != std::max(end, start) - start) {
      return fmt::format("block {}: offset is {}, should be {}", block, view.Offset(block),
                         std::max(end, start) - start);
    }
    for (uint64_t bits = view.Occupieds(block); bits != 0; bits &= bits - 1) {
      const uint64_t quotient = start + static_cast<uint64_t>(std::countr_zero(bits));
      if (quotient >= view.quotients) {
        return fmt::format("block {}: a run beyond the last quotient", block);
      }
      const uint64_t run = std::max(end, quotient);
      for (; end < run; ++end) {
        if (view.Remainder(end) != 0) return fmt::format("slot {} should be empty", end);
      }
      const uint64_t last = next_runend(run);
      if (last == slots) return fmt::format("block {}: a run does not end", block);
      found += last + 1 - run;
      end = last + 1;
    }
  }
  for (; end < slots; ++end) {
    if (view.Remainder(end) != 0) return fmt::format("slot {} should be empty", end);
  }
  // Each run ends once; one more end would lie in an empty slot.
  uint64_t runs = 0;
  uint64_t ends = 0;
  for (uint64_t block = 0; block < blocks; ++block) {
    runs += static_cast<uint64_t>(std::popcount(view.Occupieds(block)));
    ends += static_cast<uint64_t>(std::popcount(view.Runends(block)));
  }
  if (runs != ends) return fmt::format("has {} runs and {} ends of runs", runs, ends);
  if (found != stored) return fmt::format("holds {} keys, {} are stored", found, stored);
  return {};
}

}  // namespace

Quotient::Quotient(const Params& params, uint64_t quotients, uint64_t attempt, AlignedTable table)
    : params_(params),
      quotients_(quotients),
      attempt_(attempt),
      salt_(QuotientSalt(params.seed, attempt)),
      table_(std::move(table)) {
  report_ = {.attempts = attempt + 1,
             .distinct_keys = 0,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

uint64_t Quotient::QuotientsFor(uint64_t n, double load) {
  const double quotients = std::ceil(static_cast<double>(n) / load);
  return static_cast<uint64_t>(std::clamp(quotients, 1.0, 0x1p62));
}

Result<Quotient> Quotient::CreateForAttempt(uint64_t keys, const Params& params,
                                            uint64_t attempt) {
  const uint64_t quotients = QuotientsFor(keys, params.load);
  const uint64_t blocks = BlocksFor(quotients);
  const uint64_t block_bytes = BlockBytes(params.remainder_bits);
  if (blocks > kMaxTableBytes / block_bytes) {
    return Error{fmt::format("too large: needs {} bytes, limit {}",
                             static_cast<unsigned __int128>(blocks) * block_bytes,
                             kMaxTableBytes)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(blocks * block_bytes);
  if (!table) return Error{table.error()};
  return Quotient(params, quotients, attempt, std::move(*table));
}

Result<Quotient> Quotient::Create(uint64_t keys, const Params& params) {
  return CreateForAttempt(keys, params, 0);
}

Result<Quotient> Quotient::Build(std::span<const uint64_t> hashes, const Params& params) {
  return BuildByAttempts<Quotient>(
      hashes.size(),
      [&](uint64_t keys, uint64_t attempt) { return CreateForAttempt(keys, params, attempt); },
      [&](Quotient& filter, uint64_t& bytes) {
        const QuotientWriter writer(filter.table_.data(), filter.view());
        return InsertDistinct(writer, hashes, filter.view().prefetch, filter.stored_, bytes);
      });
}

InsertStatus Quotient::Insert(uint64_t hash) {
  const QuotientWriter writer(table_.data(), view());
  if (!writer.Insert(writer.PlaceOf(hash))) return InsertStatus::kFull;
  ++stored_;
  return InsertStatus::kOk;
}

EraseStatus Quotient::Erase(uint64_t hash) {
  const QuotientWriter writer(table_.data(), view());
  if (!writer.Erase(writer.PlaceOf(hash))) return EraseStatus::kNotFound;
  --stored_;
  return EraseStatus::kOk;
}

Details Quotient::GetDetails() const {
  const uint64_t slots = BlocksFor(quotients_) * kSlotsPerBlock;
  return {{"load", Load()},
          {"quotients", static_cast<double>(quotients_)},
          {"slots", static_cast<double>(slots)},
          {"stored", static_cast<double>(stored_)}};
}

std::optional<FprEstimate> Quotient::ExpectedFpr() const {
  return theory::QuotientFpr(stored_, std::ldexp(static_cast<double>(quotients_),
                                                 static_cast<int>(params_.remainder_bits)));
}

std::optional<double> Quotient::TheoryFpr(double bits_per_key) {
  const double load = Params{}.load;
  const double metadata_bits = 8.0 * kRemaindersAt / kSlotsPerBlock;
  return theory::QuotientFpr(bits_per_key * load - metadata_bits, load);
}

std::vector<std::byte> Quotient::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<Quotient>(writer, params_);
  writer.U64(quotients_).U64(attempt_).U64(stored_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<Quotient> Quotient::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<Quotient>(reader);
  const uint64_t block_bytes = BlockBytes(params.remainder_bits);
  const uint64_t max_blocks = kMaxTableBytes / block_bytes;
  const uint64_t quotients = reader.U64("quotients", 1, (max_blocks - 1) * kSlotsPerBlock);
  const uint64_t attempt = reader.U64("attempt", 0, kQuotientAttempts - 1);
  const uint64_t stored = reader.U64("stored", 0, max_blocks * kSlotsPerBlock);
  AlignedTable table = reader.Table("table", BlocksFor(quotients) * block_bytes);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};

  Quotient filter(params, quotients, attempt, std::move(table));
  filter.stored_ = stored;
  filter.report_.distinct_keys = stored;
  const std::string problem = WhatIsInconsistent(filter.view(), stored);
  if (!problem.empty()) {
    reader.Refuse("table", problem);
    return Error{reader.error()};
  }
  return filter;
}

}  // namespace filterbench
