#include "filters/bloom/system_bloom.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "filters/bloom/key_count.h"
#include "filters/theory/agreement.h"
#include "filters/theory/bloom.h"
#include "filters/theory/systems.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

}  // namespace

uint64_t SystemBloom::BitsFor(uint64_t keys, const Params& params) {
  const double wanted = std::floor(static_cast<double>(keys) * params.bits_per_key);
  // Far beyond what is offered, far below where rounding would wrap.
  uint64_t bits = static_cast<uint64_t>(std::min(wanted, 0x1p60)) + params.extra_bits;
  bits = std::max({bits, params.min_bits, uint64_t{1}});
  if (params.max_bits != 0) bits = std::min(bits, params.max_bits);
  switch (params.rounding) {
    case Rounding::kWords:
      return (bits + 63) / 64 * 64;
    case Rounding::kBytes:
      return (bits + 7) / 8 * 8;
    case Rounding::kPowerOfTwoDown:
      return std::bit_floor(bits);
    case Rounding::kPowerOfTwoUp:
      break;
  }
  return std::bit_ceil(bits);
}

uint32_t SystemBloom::ProbesFor(uint64_t keys, uint64_t bits, const Params& params) {
  if (params.k != 0) return params.k;
  if (keys == 0) return params.max_k;
  const double best = std::rint(std::numbers::ln2 * static_cast<double>(bits) /
                                static_cast<double>(keys));
  return static_cast<uint32_t>(std::clamp(best, 1.0, static_cast<double>(params.max_k)));
}

SystemBloom::SystemBloom(const Params& params, uint64_t capacity, uint64_t keys, AlignedTable table)
    : params_(params),
      capacity_(capacity),
      keys_(keys),
      bits_(BitsFor(capacity, params)),
      k_(ProbesFor(capacity, bits_, params)),
      table_(std::move(table)) {
  report_ = {.attempts = 1,
             .distinct_keys = keys_,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

std::string SystemBloom::Contradiction(const Params& params) {
  if (params.words != Words::kOne32 || params.probing == Probing::kIndependent) return {};
  if (params.probing == Probing::kPlain && params.sign == Sign::kUnsigned) return {};
  return "words: one_32 goes with unsigned plain probing, as LevelDB has it, or with independent";
}

Result<SystemBloom> SystemBloom::Create(uint64_t keys, const Params& params) {
  if (std::string problem = Contradiction(params); !problem.empty()) return Error{problem};
  Result<AlignedTable> table = AllocateBitArray(BitsFor(keys, params));
  if (!table) return Error{table.error()};
  return SystemBloom(params, keys, 0, std::move(*table));
}

Result<SystemBloom> SystemBloom::Build(std::span<const uint64_t> hashes, const Params& params) {
  Result<SystemBloom> filter = Create(hashes.size(), params);
  if (filter) filter->InsertAll(hashes);
  return filter;
}

SystemBloom::View SystemBloom::view() const {
  return {.words = table_.As<uint64_t>(),
          .reduction = {.remainder = Remainder32(bits_),
                        .bits = bits_,
                        .mask = std::has_single_bit(bits_) ? bits_ - 1 : 0,
                        .keep = params_.sign != Sign::kMask         ? UINT64_MAX
                                : params_.words == Words::kTwo64    ? UINT64_MAX >> 1
                                                                    : uint64_t{UINT32_MAX >> 1},
                        .abs_mask = params_.sign == Sign::kAbs ? UINT64_MAX : 0},
          .k = k_,
          .words_of_hash = params_.words,
          .probing = params_.probing,
          .prefetch = PrefetchPays(table_.size())};
}

void SystemBloom::InsertAll(std::span<const uint64_t> hashes, unsigned threads) {
  uint64_t* words = table_.As<uint64_t>();
  view().Specialize([&](const auto& view) {
    InsertInParts(bits_, view.prefetch ? threads : 1, [&](BitRange part) {
      SetBitsOfKeys<kMaxProbes>(
          words, hashes.size(), k_, view.prefetch, part,
          [&](size_t key, uint64_t* positions) { view.Positions(hashes[key], positions); });
    });
  });
  keys_ += hashes.size();
  report_.distinct_keys = keys_;
}

InsertStatus SystemBloom::Insert(uint64_t hash) {
  InsertAll(std::span(&hash, 1));
  return InsertStatus::kOk;
}

std::span<const Kernel<SystemBloom::View>> SystemBloom::Kernels() {
  static const auto kernels = ScalarKernels<View>();
  return kernels;
}

Details SystemBloom::GetDetails() const {
  return {{"k", static_cast<double>(k_)}, {"bits", static_cast<double>(bits_)}};
}

std::optional<FprEstimate> SystemBloom::ExpectedFpr() const {
  using theory::WordSequence;
  const int k = static_cast<int>(k_);
  if (params_.words == Words::kOne32 && params_.probing == Probing::kPlain &&
      params_.sign == Sign::kUnsigned) {
    return theory::RotatedDoubleHashingFpr(keys_, bits_, k);
  }
  int word_bits = params_.words == Words::kTwo64 ? 64 : 32;
  // Without its sign bit the sum of two words wraps at half of their range.
  if (params_.sign == Sign::kMask) --word_bits;
  WordSequence sequence = WordSequence::kIndependent;
  if (params_.probing == Probing::kEnhanced) sequence = WordSequence::kEnhanced;
  if (params_.probing == Probing::kPlain) {
    sequence = params_.sign == Sign::kAbs ? WordSequence::kPlainSigned : WordSequence::kPlain;
  }
  FprEstimate fpr = theory::WordProbesFpr(keys_, bits_, k, word_bits, sequence);
  if (params_.words == Words::kOne32) {
    fpr.mean += (1 - fpr.mean) * theory::HashCollisionFpr(keys_, 32);
  }
  return fpr;
}

std::optional<double> SystemBloom::TheoryFpr(double bits_per_key) {
  return theory::ClassicBloomFpr(bits_per_key, theory::ClassicBloomBestK(bits_per_key));
}

std::vector<std::byte> SystemBloom::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<SystemBloom>(writer, params_);
  writer.U64(capacity_).U64(keys_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<SystemBloom> SystemBloom::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<SystemBloom>(reader);
  const uint64_t capacity = reader.U64("capacity", 0, UINT64_MAX);
  const uint64_t keys = reader.U64("keys", 0, UINT64_MAX);
  const uint64_t bits = BitsFor(capacity, params);
  if (reader.ok() && bits > kMaxBloomBits) {
    reader.Refuse("capacity", fmt::format("{} keys need {} bits, limit {}", capacity, bits,
                                          kMaxBloomBits));
  }
  AlignedTable table = reader.Table("table", BitArrayBytes(bits));
  if (reader.ok() && !UnusedBitsAreZero(table.As<uint64_t>(), bits)) {
    reader.Refuse("table", fmt::format("has bits set beyond bit {}", bits - 1));
  }
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  SystemBloom filter(params, capacity, keys, std::move(table));
  CheckKeys(reader, "keys", keys, filter.k_, filter.Table());
  if (!reader.ok()) return Error{reader.error()};
  return filter;
}

}  // namespace filterbench
