#include "filters/fuse/binary_fuse.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "filters/fuse/peeling.h"
#include "filters/theory/fuse.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

// Slots per segment by number of keys, as the authors measured them: 2^floor(ln n / ln 3.33 + 2.25)
// for three slots per key, 2^floor(ln n / ln 2.91 - 0.5) for four, at most 2^18 (Graf and Lemire
// 2022, section 4). Entry i is the least n for 2^(i + 3) slots: layouts follow from it, so that no
// logarithm of a library may decide. Fewer keys get kMinSegmentSlots.
constexpr uint64_t kMinSegmentSlots = 4;
constexpr uint64_t kLeastKeys3[] = {3,       9,        28,       92,       304,    1010,
                                    3362,    11193,    37273,    124118,   413310, 1376322,
                                    4583150, 15261887, 50822082, 169237530};
constexpr uint64_t kLeastKeys4[] = {43,     123,    356,     1036,    3015,     8772,     25527,
                                    74281,  216158, 629017,  1830440, 5326579,  15500344, 45106001,
                                    131258461, 381962121};
static_assert(kMinSegmentSlots << std::size(kLeastKeys3) ==
              uint64_t{1} << FuseLayout<3>::kMaxLog2SegmentSlots);
static_assert(std::size(kLeastKeys3) == std::size(kLeastKeys4));

uint64_t SegmentSlotsFor(uint64_t n, BinaryFuse::Arity arity) {
  const auto& least_keys = arity == BinaryFuse::Arity::k3 ? kLeastKeys3 : kLeastKeys4;
  const auto* next = std::upper_bound(std::begin(least_keys), std::end(least_keys), n);
  return kMinSegmentSlots << (next - std::begin(least_keys));
}

// log2(x) in units of 2^-32, rounded down; x >= 1. Digit by digit: squaring doubles the logarithm.
constexpr uint64_t Log2In32Bits(uint64_t x) {
  const int whole = 63 - std::countl_zero(x);
  uint64_t mantissa = x << (63 - whole);  // in [1, 2) in units of 2^-63
  uint64_t log2 = static_cast<uint64_t>(whole);
  for (int bit = 0; bit < 32; ++bit) {
    const auto square = static_cast<unsigned __int128>(mantissa) * mantissa;  // units of 2^-126
    const bool carries = square >> 127 != 0;
    log2 = log2 << 1 | (carries ? 1 : 0);
    mantissa = static_cast<uint64_t>(square >> (carries ? 64 : 63));
  }
  return log2;
}

// n times max(least, base + slope ln(reference) / ln(n)), rounded: the slots that n keys are given,
// before they are rounded up to segments (as above). The three constants are in thousandths.
struct SizeFactor {
  uint64_t least;
  uint64_t base;
  uint64_t slope;
  uint64_t reference;

  constexpr unsigned __int128 SlotsFor(uint64_t n) const {
    using Wide = unsigned __int128;
    if (n < 2) return 0;
    constexpr Wide kOne = Wide{1} << 32;
    const Wide slope_part = slope * kOne * Log2In32Bits(reference) / Log2In32Bits(n);
    const Wide factor = std::max(least * kOne, base * kOne + slope_part);
    return (n * factor + 500 * kOne) / (1000 * kOne);
  }
};
constexpr SizeFactor kSizeFactor3 = {
    .least = 1125, .base = 875, .slope = 250, .reference = 1000000};
constexpr SizeFactor kSizeFactor4 = {.least = 1075, .base = 770, .slope = 305, .reference = 600000};

uint64_t BytesPerSlot(const BinaryFuse::Params& params) {
  return params.fingerprint_bits == BinaryFuse::FingerprintBits::k16 ? 2 : 1;
}

uint64_t SlotsPerKey(const BinaryFuse::Params& params) {
  return params.arity == BinaryFuse::Arity::k3 ? 3 : 4;
}

}  // namespace

BinaryFuse::BinaryFuse(const Params& params, uint64_t keys, uint64_t attempt, const Shape& shape,
                       AlignedTable table)
    : params_(params),
      keys_(keys),
      attempt_(attempt),
      shape_(shape),
      salt_(FuseHash::Salt(params.seed, attempt)),
      table_(std::move(table)) {
  report_ = {.attempts = attempt + 1,
             .distinct_keys = keys,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<BinaryFuse::Shape> BinaryFuse::ShapeFor(uint64_t n, const Params& params,
                                               uint64_t enlargements) {
  if (n == 0) return Shape{};
  using Wide = unsigned __int128;
  const uint64_t arity = SlotsPerKey(params);
  const uint64_t segment_slots = SegmentSlotsFor(n, params.arity);
  const Wide wanted = (arity == 3 ? kSizeFactor3 : kSizeFactor4).SlotsFor(n);
  const Wide all_segments =
      std::max<Wide>((wanted + segment_slots - 1) / segment_slots, arity);
  Wide first_segments = all_segments - (arity - 1);
  first_segments += enlargements * std::max<Wide>(1, all_segments / 32);
  const Wide slots = (first_segments + arity - 1) * segment_slots;
  const Wide bytes = slots * BytesPerSlot(params);
  if (bytes > kMaxTableBytes) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", bytes, kMaxTableBytes)};
  }
  return Shape{.first_slots = static_cast<uint64_t>(first_segments) * segment_slots,
               .segment_slots = segment_slots,
               .slots = static_cast<uint64_t>(slots)};
}

Result<BinaryFuse> BinaryFuse::Build(std::span<const uint64_t> hashes, const Params& params) {
  return BuildWithin(kMaxPeelingAttempts, hashes, params);
}

Result<BinaryFuse> BinaryFuse::BuildWithin(uint64_t max_attempts, std::span<const uint64_t> hashes,
                                           const Params& params) {
  if (hashes.empty()) return BinaryFuse(params, 0, 0, Shape{}, AlignedTable{});
  const auto build = [&]<class Layout, class T>() -> Result<BinaryFuse> {
    auto built = BuildByPeeling<T, Layout>(
        hashes, params.seed, std::min(max_attempts, kMaxPeelingAttempts),
        [&](uint64_t n, uint64_t enlargements) -> Result<Layout> {
          const Result<Shape> shape = ShapeFor(n, params, enlargements);
          if (!shape) return Error{shape.error()};
          return Layout{shape->first_slots, shape->segment_slots};
        });
    if (!built) return Error{built.error()};
    const Shape shape{built->layout.first_slots, built->layout.segment_slots,
                      built->layout.Slots()};
    BinaryFuse filter(params, built->keys, built->attempt, shape, std::move(built->table));
    filter.report_.peak_bytes = built->peak_bytes + sizeof(filter);
    return filter;
  };
  const bool wide = params.fingerprint_bits == FingerprintBits::k16;
  if (params.arity == Arity::k3) {
    return wide ? build.operator()<FuseLayout<3>, uint16_t>()
                : build.operator()<FuseLayout<3>, uint8_t>();
  }
  return wide ? build.operator()<FuseLayout<4>, uint16_t>()
              : build.operator()<FuseLayout<4>, uint8_t>();
}

Details BinaryFuse::GetDetails() const {
  Details details = {
      {"slots", static_cast<double>(shape_.slots)},
      {"segment_slots", static_cast<double>(shape_.segment_slots)},
      {"attempts", static_cast<double>(attempt_ + 1)},
  };
  if (keys_ != 0) {
    details.push_back(
        {"slots_per_key", static_cast<double>(shape_.slots) / static_cast<double>(keys_)});
  }
  return details;
}

std::optional<FprEstimate> BinaryFuse::ExpectedFpr() const {
  if (keys_ == 0) return FprEstimate{};
  return FprEstimate{theory::FingerprintSumFpr(8 * static_cast<double>(BytesPerSlot(params_)))};
}

std::optional<double> BinaryFuse::TheoryFpr(double bits_per_key) {
  return theory::FingerprintSumFpr(bits_per_key / theory::kBinaryFuse3SlotsPerKey);
}

std::vector<std::byte> BinaryFuse::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<BinaryFuse>(writer, params_);
  writer.U64(keys_).U64(attempt_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<BinaryFuse> BinaryFuse::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<BinaryFuse>(reader);
  const uint64_t keys = reader.U64("distinct_keys", 0, UINT64_MAX);
  const uint64_t attempt = reader.U64("attempt", 0, keys == 0 ? 0 : kMaxPeelingAttempts - 1);
  Shape shape;
  if (reader.ok()) {
    const Result<Shape> expected = ShapeFor(keys, params, attempt / kPeelingSeedsPerSize);
    if (expected) {
      shape = *expected;
    } else {
      reader.Refuse("distinct_keys", expected.error());
    }
  }
  AlignedTable table = reader.Table("table", shape.slots * BytesPerSlot(params));
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  return BinaryFuse(params, keys, attempt, shape, std::move(table));
}

}  // namespace filterbench
