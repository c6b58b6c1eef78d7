#include "filters/bloom/classic.h"

#include <fmt/format.h>

#include "filters/simd/prefetch.h"
#include "filters/theory.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

uint32_t ProbesFor(const ClassicBloom::Params& params) {
  return params.k != 0 ? params.k : theory::ClassicBloomBestK(params.bits_per_key);
}

}  // namespace

ClassicBloom::ClassicBloom(const Params& params, uint64_t n, uint64_t bits, AlignedTable table)
    : params_(params), n_(n), bits_(bits), k_(ProbesFor(params)), table_(std::move(table)) {
  report_ = {.attempts = 1,
             .distinct_keys = n,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<ClassicBloom> ClassicBloom::MakeEmpty(uint64_t n, const Params& params) {
  const uint64_t bits = BloomBitsFor(n, params.bits_per_key);
  Result<AlignedTable> table = AllocateBitArray(bits);
  if (!table) return Error{table.error()};
  return ClassicBloom(params, n, bits, std::move(*table));
}

Result<ClassicBloom> ClassicBloom::Build(std::span<const uint64_t> values, const Params& params) {
  Result<ClassicBloom> made = MakeEmpty(values.size(), params);
  if (!made) return made;
  ClassicBloom& filter = *made;
  SetBitsOfKeys<kMaxProbes>(
      filter.table_.As<uint64_t>(), values.size(), filter.k_, PrefetchPays(filter.table_.size()),
      [values, seed = params.seed, bits = filter.bits_, k = filter.k_](size_t key, uint64_t* out) {
        for (uint32_t i = 0; i < k; ++i) {
          out[i] = Position(HashU64(values[key], HashSeed(seed, i)), bits);
        }
      });
  return made;
}

Result<ClassicBloom> ClassicBloom::BuildFromBytes(ByteKeys keys, const Params& params) {
  Result<ClassicBloom> made = MakeEmpty(keys.size, params);
  if (!made) return made;
  ClassicBloom& filter = *made;
  SetBitsOfKeys<kMaxProbes>(
      filter.table_.As<uint64_t>(), keys.size, filter.k_, PrefetchPays(filter.table_.size()),
      [keys, seed = params.seed, bits = filter.bits_, k = filter.k_](size_t key, uint64_t* out) {
        for (uint32_t i = 0; i < k; ++i) {
          out[i] = Position(HashBytes(keys[key], HashSeed(seed, i)), bits);
        }
      });
  return made;
}

InsertStatus ClassicBloom::Insert(uint64_t value) {
  for (uint32_t i = 0; i < k_; ++i) {
    SetBit(table_.As<uint64_t>(), Position(HashU64(value, HashSeed(params_.seed, i)), bits_));
  }
  return InsertStatus::kOk;
}

Details ClassicBloom::GetDetails() const {
  return {{"k", static_cast<double>(k_)}, {"bits", static_cast<double>(bits_)}};
}

std::optional<FprEstimate> ClassicBloom::ExpectedFpr() const {
  return theory::ClassicBloomFpr(n_, bits_, static_cast<int>(k_));
}

std::optional<double> ClassicBloom::TheoryFpr(double bits_per_key) {
  return theory::ClassicBloomFpr(bits_per_key, theory::ClassicBloomBestK(bits_per_key));
}

std::vector<std::byte> ClassicBloom::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<ClassicBloom>(writer, params_);
  writer.U64(n_).U64(bits_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<ClassicBloom> ClassicBloom::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<ClassicBloom>(reader);
  const uint64_t n = reader.U64("keys", 0, UINT64_MAX);
  const uint64_t expected_bits = BloomBitsFor(n, params.bits_per_key);
  const uint64_t bits = reader.U64("bits", 1, kMaxBloomBits);
  if (reader.ok() && bits != expected_bits) {
    reader.Refuse("bits", fmt::format("is {}, {} keys need {}", bits, n, expected_bits));
  }
  AlignedTable table = reader.Table("table", BitArrayBytes(bits));
  if (reader.ok() && !UnusedBitsAreZero(table.As<uint64_t>(), bits)) {
    reader.Refuse("table", fmt::format("has bits set beyond bit {}", bits - 1));
  }
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  return ClassicBloom(params, n, bits, std::move(table));
}

}  // namespace filterbench
