#include "filters/bloom/classic.h"

#include <utility>

#include "filters/simd/prefetch.h"

namespace filterbench {
namespace {

uint32_t ProbesFor(const ClassicBloom::Params& params) {
  return params.k != 0 ? params.k : theory::ClassicBloomBestK(params.bits_per_key);
}

}  // namespace

ClassicBloom::ClassicBloom(const Params& params, BitArray array)
    : params_(params),
      capacity_(array.capacity),
      inserted_(array.inserted),
      bits_(array.bits),
      k_(ProbesFor(params)),
      table_(std::move(array.table)) {
  report_ = {.attempts = 1,
             .distinct_keys = inserted_,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<ClassicBloom> ClassicBloom::Create(uint64_t keys, const Params& params) {
  Result<BitArray> array = MakeBitArray(keys, params.bits_per_key);
  if (!array) return Error{array.error()};
  return ClassicBloom(params, std::move(*array));
}

Result<ClassicBloom> ClassicBloom::Build(std::span<const uint64_t> values, const Params& params) {
  Result<ClassicBloom> filter = Create(values.size(), params);
  if (filter) filter->InsertAll(values);
  return filter;
}

void ClassicBloom::InsertAll(std::span<const uint64_t> values, unsigned threads) {
  CountInserted(values.size());
  uint64_t* words = table_.As<uint64_t>();
  InsertInParts(bits_, view().prefetch ? threads : 1, [=, view = view()](BitRange part) {
    InsertPart(view, words, values.data(), values.size(), part);
  });
}

Result<ClassicBloom> ClassicBloom::BuildFromBytes(ByteKeys keys, const Params& params) {
  Result<ClassicBloom> made = Create(keys.size, params);
  if (!made) return made;
  ClassicBloom& filter = *made;
  filter.CountInserted(keys.size);
  SetBitsOfKeys<kMaxProbes>(
      filter.table_.As<uint64_t>(), keys.size, filter.k_, PrefetchPays(filter.table_.size()),
      BitRange{0, filter.bits_},
      [keys, seed = params.seed, bits = filter.bits_, k = filter.k_](size_t key, uint64_t* out) {
        for (uint32_t i = 0; i < k; ++i) {
          out[i] = Position(HashBytes(keys[key], HashSeed(seed, i)), bits);
        }
      });
  return made;
}

InsertStatus ClassicBloom::Insert(uint64_t value) {
  CountInserted(1);
  for (uint32_t i = 0; i < k_; ++i) {
    SetBit(table_.As<uint64_t>(), Position(HashU64(value, HashSeed(params_.seed, i)), bits_));
  }
  return InsertStatus::kOk;
}

Details ClassicBloom::GetDetails() const {
  return {{"k", static_cast<double>(k_)}, {"bits", static_cast<double>(bits_)}};
}

std::optional<FprEstimate> ClassicBloom::ExpectedFpr() const {
  return theory::ClassicBloomFpr(inserted_, bits_, static_cast<int>(k_));
}

std::optional<double> ClassicBloom::TheoryFpr(double bits_per_key) {
  return theory::ClassicBloomFpr(bits_per_key, theory::ClassicBloomBestK(bits_per_key));
}

std::vector<std::byte> ClassicBloom::Serialize() const {
  return WriteBitArray<ClassicBloom>(params_, capacity_, inserted_, bits_, table_.bytes());
}

Result<ClassicBloom> ClassicBloom::Deserialize(std::span<const std::byte> wire) {
  auto read = ReadBitArray<ClassicBloom>(wire, ProbesFor);
  if (!read) return Error{read.error()};
  return ClassicBloom(read->first, std::move(read->second));
}

}  // namespace filterbench
