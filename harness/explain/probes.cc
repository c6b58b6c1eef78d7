#include "harness/explain/probes.h"

#ifdef FILTERBENCH_HAS_LIBMD
#include <sys/types.h>

#include <md5.h>
#endif

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "filters/bloom/classic.h"
#include "filters/bloom/kirsch_mitzenmacher.h"
#include "filters/hash.h"
#include "harness/explain/show_key.h"

namespace filterbench::explain {
namespace {

constexpr size_t kMd5Bytes = 16;
constexpr size_t kWindowBytes = 4;
constexpr uint32_t kMaxMd5Probes = kMd5Bytes / kWindowBytes;

using Digest = std::array<uint8_t, kMd5Bytes>;

#ifdef FILTERBENCH_HAS_LIBMD
Digest Md5(std::string_view key) {
  static_assert(kMd5Bytes == MD5_DIGEST_LENGTH);
  MD5_CTX context;
  MD5Init(&context);
  MD5Update(&context, reinterpret_cast<const uint8_t*>(key.data()), key.size());
  Digest digest;
  MD5Final(digest.data(), &context);
  return digest;
}
#else
Digest Md5(std::string_view) { return {}; }
#endif

uint32_t Window(const Digest& digest, size_t i) {
  uint32_t value = 0;
  for (size_t byte = 0; byte < kWindowBytes; ++byte) {
    value |= uint32_t{digest[i * kWindowBytes + byte]} << (8 * byte);
  }
  return value;
}

std::optional<Error> Misfit(const Shape& shape) {
  if (shape.bits < 1 || shape.bits > kMaxBits) {
    return Error{fmt::format("m is {}: must be 1..{} bits", shape.bits, kMaxBits)};
  }
  if (shape.k < 1 || shape.k > kMaxProbes) {
    return Error{fmt::format("k is {}: must be 1..{} probes", shape.k, kMaxProbes)};
  }
  if (shape.hashing != Hashing::kMd5) return std::nullopt;
  if (!HasMd5()) return Error{std::string(kMd5Missing)};
  if (shape.k > kMaxMd5Probes) {
    return Error{fmt::format("k is {}: must be 1..{} with md5, whose {} bytes are cut into windows "
                             "of {}",
                             shape.k, kMaxMd5Probes, kMd5Bytes, kWindowBytes)};
  }
  return std::nullopt;
}

}  // namespace

bool HasMd5() {
#ifdef FILTERBENCH_HAS_LIBMD
  return true;
#else
  return false;
#endif
}

std::string Md5Hex(std::string_view key) {
  std::string text;
  for (const uint8_t byte : Md5(key)) text += fmt::format("{:02x}", byte);
  return text;
}

Probes::Probes(const Shape& shape, PositionsByHand by_hand)
    : shape_(shape),
      by_hand_(std::move(by_hand)),
      forbidden_divisor_(theory::ForbiddenStepDivisor(shape.bits, static_cast<int>(shape.k))) {}

Result<Probes> Probes::Create(const Shape& shape, PositionsByHand by_hand) {
  if (auto error = Misfit(shape)) return *error;
  for (const auto& [key, positions] : by_hand) {
    if (positions.size() != shape.k) {
      return Error{fmt::format("positions of {}: {} of them, must be k = {}", ShowKey(key),
                               positions.size(), shape.k)};
    }
    for (const uint64_t position : positions) {
      if (position < shape.bits) continue;
      return Error{fmt::format("positions of {}: {} must be below m = {}", ShowKey(key), position,
                               shape.bits)};
    }
  }
  return Probes(shape, std::move(by_hand));
}

std::vector<uint64_t> Probes::Of(std::string_view key) const {
  std::vector<uint64_t> positions;
  Of(key, positions);
  return positions;
}

void Probes::Of(std::string_view key, std::vector<uint64_t>& positions) const {
  positions.clear();
  const uint64_t bits = shape_.bits;
  switch (shape_.hashing) {
    case Hashing::kXxh3:
      for (uint32_t i = 0; i < shape_.k; ++i) {
        positions.push_back(
            ClassicBloom::Position(HashBytes(key, ClassicBloom::HashSeed(0, i)), bits));
      }
      break;
    case Hashing::kKm: {
      using View = KmBloom::FixedView<KmBloom::Probing::kPlain>;
      const View view{{nullptr, bits, forbidden_divisor_, shape_.k, KmBloom::Probing::kPlain,
                       false}};
      auto walk = view.WalkFor(HashBytes(key, 0));
      for (uint32_t i = 0; i < shape_.k; ++i, walk.Next()) positions.push_back(walk.position);
      break;
    }
    case Hashing::kMd5: {
      const Digest digest = Md5(key);
      for (uint32_t i = 0; i < shape_.k; ++i) positions.push_back(Window(digest, i) % bits);
      break;
    }
    case Hashing::kByHand:
      positions = by_hand_.find(key)->second;
      break;
  }
}

Result<FprEstimate> Probes::ExpectedFpr(uint64_t keys) const {
  const int k = static_cast<int>(shape_.k);
  if (shape_.hashing != Hashing::kKm) return theory::ClassicBloomFpr(keys, shape_.bits, k);
  if (!theory::DoubleHashingFprHolds(shape_.bits, k)) {
    return Error{"no formula holds for double hashing with so many probes in so few bits"};
  }
  return theory::DoubleHashingFpr(keys, shape_.bits, k, forbidden_divisor_);
}

}  // namespace filterbench::explain
