#include "filters/bloom/kirsch_mitzenmacher.h"

#include <utility>

namespace filterbench {
namespace {

uint32_t ProbesFor(const KmBloom::Params& params) {
  return params.k != 0 ? params.k : theory::ClassicBloomBestK(params.bits_per_key);
}

}  // namespace

KmBloom::KmBloom(const Params& params, BitArray array)
    : params_(params),
      capacity_(array.capacity),
      inserted_(array.inserted),
      bits_(array.bits),
      k_(ProbesFor(params)),
      forbidden_divisor_(params.probing == Probing::kPlain
                             ? theory::ForbiddenStepDivisor(bits_, static_cast<int>(k_))
                             : 1),
      table_(std::move(array.table)) {
  report_ = {.attempts = 1,
             .distinct_keys = inserted_,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<KmBloom> KmBloom::Create(uint64_t keys, const Params& params) {
  Result<BitArray> array = MakeBitArray(keys, params.bits_per_key);
  if (!array) return Error{array.error()};
  return KmBloom(params, std::move(*array));
}

Result<KmBloom> KmBloom::Build(std::span<const uint64_t> hashes, const Params& params) {
  Result<KmBloom> filter = Create(hashes.size(), params);
  if (filter) filter->InsertAll(hashes);
  return filter;
}

void KmBloom::InsertAll(std::span<const uint64_t> hashes, unsigned threads) {
  CountInserted(hashes.size());
  uint64_t* words = table_.As<uint64_t>();
  InsertInParts(bits_, view().prefetch ? threads : 1, [=, view = view()](BitRange part) {
    InsertPart(view, words, hashes.data(), hashes.size(), part);
  });
}

InsertStatus KmBloom::Insert(uint64_t hash) {
  CountInserted(1);
  uint64_t* words = table_.As<uint64_t>();
  view().Specialize([hash, words](const auto& view) {
    auto walk = view.WalkFor(hash);
    for (uint32_t i = 0; i < view.k; ++i, walk.Next()) SetBit(words, walk.position);
  });
  return InsertStatus::kOk;
}

Details KmBloom::GetDetails() const {
  return {{"k", static_cast<double>(k_)}, {"bits", static_cast<double>(bits_)}};
}

std::optional<FprEstimate> KmBloom::ExpectedFpr() const {
  const int k = static_cast<int>(k_);
  if (params_.probing == Probing::kPlain && !theory::DoubleHashingFprHolds(bits_, k)) {
    return std::nullopt;
  }
  return params_.probing == Probing::kPlain
             ? theory::DoubleHashingFpr(inserted_, bits_, k, forbidden_divisor_)
             : theory::EnhancedDoubleHashingFpr(inserted_, bits_, k);
}

std::optional<double> KmBloom::TheoryFpr(double bits_per_key) {
  return theory::ClassicBloomFpr(bits_per_key, theory::ClassicBloomBestK(bits_per_key));
}

std::vector<std::byte> KmBloom::Serialize() const {
  return WriteBitArray<KmBloom>(params_, capacity_, inserted_, bits_, table_.bytes());
}

Result<KmBloom> KmBloom::Deserialize(std::span<const std::byte> wire) {
  auto read = ReadBitArray<KmBloom>(wire, ProbesFor);
  if (!read) return Error{read.error()};
  return KmBloom(read->first, std::move(read->second));
}

}  // namespace filterbench
