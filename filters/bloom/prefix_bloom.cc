#include "filters/bloom/prefix_bloom.h"

#include <fmt/format.h>

#include <utility>

#include "filters/bloom/key_count.h"
#include "filters/theory/bloom.h"
#include "filters/theory/growing.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr uint32_t kIntegerBytes = 8;

uint32_t ProbesFor(const PrefixBloom::Params& params) {
  if (params.k != 0) return params.k;
  return static_cast<uint32_t>(theory::ClassicBloomBestK(params.bits_per_key));
}

// Sets the bits of n keys, the lines of each asked for some keys ahead; returns how many were new.
template <class HashOf>
uint64_t SetAll(const PrefixBloom::View& view, uint64_t* words, size_t n, const HashOf& hash_of) {
  constexpr size_t kAhead = 8;
  uint64_t ahead[kAhead];
  uint64_t added = 0;
  for (size_t i = 0; i < n + kAhead; ++i) {
    uint64_t& slot = ahead[i % kAhead];
    if (i >= kAhead) added += SetChain(words, view.bits, view.k, slot);
    if (i >= n) continue;
    slot = hash_of(i);
    if (view.prefetch) PrefetchChain(view.words, view.bits, view.k, slot);
  }
  return added;
}

}  // namespace

PrefixBloom::PrefixBloom(const Params& params, uint64_t capacity, uint64_t bits, AlignedTable table)
    : params_(params),
      capacity_(capacity),
      bits_(bits),
      k_(ProbesFor(params)),
      table_(std::move(table)) {
  report_ = {
      .attempts = 1, .distinct_keys = 0, .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<PrefixBloom> PrefixBloom::Create(uint64_t keys, const Params& params) {
  Result<BitArray> array = MakeBitArray(keys, params.bits_per_key);
  if (!array) return Error{array.error()};
  return PrefixBloom(params, keys, array->bits, std::move(array->table));
}

Result<PrefixBloom> PrefixBloom::Build(std::span<const uint64_t> keys, const Params& params) {
  Result<PrefixBloom> filter = Create(keys.size(), params);
  if (!filter) return filter;
  const View view = filter->view();
  filter->set_ = SetAll(view, filter->table_.As<uint64_t>(), keys.size(),
                        [&](size_t i) { return view.HashOf(keys[i]); });
  filter->keys_ = keys.size();
  filter->report_.distinct_keys = keys.size();
  return filter;
}

Result<PrefixBloom> PrefixBloom::BuildFromBytes(ByteKeys keys, const Params& params) {
  Result<PrefixBloom> filter = Create(keys.size, params);
  if (!filter) return filter;
  const View view = filter->view();
  filter->set_ = SetAll(view, filter->table_.As<uint64_t>(), keys.size,
                        [&](size_t i) { return view.HashOf(keys[i]); });
  filter->keys_ = keys.size;
  filter->holds_bytes_ = keys.size != 0;
  filter->report_.distinct_keys = keys.size;
  return filter;
}

InsertStatus PrefixBloom::Insert(uint64_t key) {
  set_ += SetChain(table_.As<uint64_t>(), bits_, k_, view().HashOf(key));
  ++keys_;
  return InsertStatus::kOk;
}

InsertStatus PrefixBloom::InsertBytes(std::string_view key) {
  set_ += SetChain(table_.As<uint64_t>(), bits_, k_, view().HashOf(key));
  ++keys_;
  holds_bytes_ = true;
  return InsertStatus::kOk;
}

Details PrefixBloom::GetDetails() const {
  return {{"k", static_cast<double>(k_)},
          {"bits", static_cast<double>(bits_)},
          {"fill", static_cast<double>(set_) / static_cast<double>(bits_)}};
}

FprEstimate PrefixBloom::FprOfAbsentPrefixes() const {
  return {theory::FilledBloomFpr(set_, bits_, static_cast<int>(k_)), 0};
}

FprEstimate PrefixBloom::FprOfUniformIntegers() const {
  const FprEstimate parts[] = {
      FprOfAbsentPrefixes(),
      theory::SharedPrefixFpr(
          keys_, 8 * static_cast<int>(std::min<uint32_t>(params_.prefix_bytes, kIntegerBytes)))};
  return theory::UnionFpr(parts);
}

std::optional<FprEstimate> PrefixBloom::ExpectedFpr() const {
  if (holds_bytes_ || params_.prefix_bytes < kIntegerBytes) return std::nullopt;
  return FprOfUniformIntegers();
}

std::optional<double> PrefixBloom::TheoryFpr(double bits_per_key) {
  return theory::ClassicBloomFpr(bits_per_key, theory::ClassicBloomBestK(bits_per_key));
}

std::vector<std::byte> PrefixBloom::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<PrefixBloom>(writer, params_);
  writer.U64(capacity_).U64(bits_).U64(keys_).U64(holds_bytes_ ? 1 : 0).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<PrefixBloom> PrefixBloom::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<PrefixBloom>(reader);
  const uint64_t capacity = reader.U64("capacity", 0, UINT64_MAX);
  const uint64_t expected_bits = BloomBitsFor(capacity, params.bits_per_key);
  const uint64_t bits = reader.U64("bits", 1, kMaxBloomBits);
  if (reader.ok() && bits != expected_bits) {
    reader.Refuse("bits", fmt::format("is {}, {} keys need {}", bits, capacity, expected_bits));
  }
  const uint64_t keys = reader.U64("keys", 0, UINT64_MAX);
  const bool holds_bytes = reader.U64("holds_bytes", 0, 1) != 0;
  AlignedTable table = reader.Table("table", BitArrayBytes(bits));
  if (reader.ok() && !UnusedBitsAreZero(table.As<uint64_t>(), bits)) {
    reader.Refuse("table", fmt::format("has bits set beyond bit {}", bits - 1));
  }
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  PrefixBloom filter(params, capacity, bits, std::move(table));
  CheckKeys(reader, "keys", keys, filter.k_, filter.Table());
  if (!reader.ok()) return Error{reader.error()};
  for (uint64_t word = 0; word < BitArrayBytes(bits) / 8; ++word) {
    filter.set_ += static_cast<uint64_t>(std::popcount(filter.table_.As<uint64_t>()[word]));
  }
  filter.keys_ = keys;
  filter.holds_bytes_ = holds_bytes;
  filter.report_.distinct_keys = keys;
  return filter;
}

}  // namespace filterbench
