#include "filters/bloom/kirsch_mitzenmacher.h"

#include <fmt/format.h>

#include "filters/theory.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

uint32_t ProbesFor(const KmBloom::Params& params) {
  return params.k != 0 ? params.k : theory::ClassicBloomBestK(params.bits_per_key);
}

}  // namespace

KmBloom::KmBloom(const Params& params, uint64_t n, uint64_t bits, AlignedTable table)
    : params_(params),
      n_(n),
      bits_(bits),
      k_(ProbesFor(params)),
      forbidden_divisor_(params.probing == Probing::kPlain
                             ? theory::ForbiddenStepDivisor(bits, static_cast<int>(k_))
                             : 1),
      table_(std::move(table)) {
  report_ = {.attempts = 1,
             .distinct_keys = n,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<KmBloom> KmBloom::Build(std::span<const uint64_t> hashes, const Params& params) {
  const uint64_t bits = BloomBitsFor(hashes.size(), params.bits_per_key);
  Result<AlignedTable> table = AllocateBitArray(bits);
  if (!table) return Error{table.error()};
  KmBloom filter(params, hashes.size(), bits, std::move(*table));
  uint64_t* words = filter.table_.As<uint64_t>();
  filter.view().Specialize([hashes, words](const auto& view_ref) {
    const auto view = view_ref;
    SetBitsOfKeys<kMaxProbes>(words, hashes.size(), view.k, view.prefetch,
                              [&](size_t key, uint64_t* out) {
                                auto walk = view.WalkFor(hashes[key]);
                                for (uint32_t i = 0; i < view.k; ++i, walk.Next()) {
                                  out[i] = walk.position;
                                }
                              });
  });
  return filter;
}

InsertStatus KmBloom::Insert(uint64_t hash) {
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
  return params_.probing == Probing::kPlain
             ? theory::DoubleHashingFpr(n_, bits_, k, forbidden_divisor_)
             : theory::EnhancedDoubleHashingFpr(n_, bits_, k);
}

std::optional<double> KmBloom::TheoryFpr(double bits_per_key) {
  return theory::ClassicBloomFpr(bits_per_key, theory::ClassicBloomBestK(bits_per_key));
}

std::vector<std::byte> KmBloom::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<KmBloom>(writer, params_);
  writer.U64(n_).U64(bits_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<KmBloom> KmBloom::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<KmBloom>(reader);
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
  return KmBloom(params, n, bits, std::move(table));
}

}  // namespace filterbench
