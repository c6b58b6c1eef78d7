#include "filters/fuse/xor.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "filters/fuse/peeling.h"
#include "filters/theory/fuse.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

// 32 + floor(1.23 n) slots, less what does not divide by three (Graf and Lemire 2020, section 3 and
// their code).
constexpr uint64_t kSpareSlots = 32;
constexpr uint64_t kSlotsPer100Keys = 123;

uint64_t BytesPerSlot(const Xor::Params& params) {
  return params.fingerprint_bits == Xor::FingerprintBits::k16 ? 2 : 1;
}

}  // namespace

Xor::Xor(const Params& params, uint64_t keys, uint64_t attempt, const XorLayout& layout,
         AlignedTable table)
    : params_(params),
      keys_(keys),
      attempt_(attempt),
      layout_(layout),
      salt_(FuseHash::Salt(params.seed, attempt)),
      table_(std::move(table)) {
  report_ = {.attempts = attempt + 1,
             .distinct_keys = keys,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<XorLayout> Xor::LayoutFor(uint64_t n, const Params& params, uint64_t enlargements) {
  if (n == 0) return XorLayout{};
  using Wide = unsigned __int128;
  const Wide wanted = kSpareSlots + Wide{n} * kSlotsPer100Keys / 100;
  Wide block_slots = wanted / XorLayout::kArity;
  block_slots += enlargements * std::max<Wide>(1, block_slots / 32);
  const Wide bytes = XorLayout::kArity * block_slots * BytesPerSlot(params);
  if (bytes > kMaxTableBytes) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", bytes, kMaxTableBytes)};
  }
  return XorLayout{static_cast<uint64_t>(block_slots)};
}

Result<Xor> Xor::Build(std::span<const uint64_t> hashes, const Params& params) {
  return BuildWithin(kMaxPeelingAttempts, hashes, params);
}

Result<Xor> Xor::BuildWithin(uint64_t max_attempts, std::span<const uint64_t> hashes,
                             const Params& params) {
  if (hashes.empty()) return Xor(params, 0, 0, XorLayout{}, AlignedTable{});
  const auto build = [&]<class T>() -> Result<Xor> {
    auto built = BuildByPeeling<T, XorLayout>(
        hashes, params.seed, std::min(max_attempts, kMaxPeelingAttempts),
        [&](uint64_t n, uint64_t enlargements) { return LayoutFor(n, params, enlargements); });
    if (!built) return Error{built.error()};
    Xor filter(params, built->keys, built->attempt, built->layout, std::move(built->table));
    filter.report_.peak_bytes = built->peak_bytes + sizeof(filter);
    return filter;
  };
  return params.fingerprint_bits == FingerprintBits::k16 ? build.operator()<uint16_t>()
                                                         : build.operator()<uint8_t>();
}

Details Xor::GetDetails() const {
  Details details = {
      {"slots", static_cast<double>(layout_.Slots())},
      {"attempts", static_cast<double>(attempt_ + 1)},
  };
  if (keys_ != 0) {
    details.push_back(
        {"slots_per_key", static_cast<double>(layout_.Slots()) / static_cast<double>(keys_)});
  }
  return details;
}

std::optional<FprEstimate> Xor::ExpectedFpr() const {
  if (keys_ == 0) return FprEstimate{};
  return FprEstimate{theory::FingerprintSumFpr(8 * static_cast<double>(BytesPerSlot(params_)))};
}

std::optional<double> Xor::TheoryFpr(double bits_per_key) {
  return theory::FingerprintSumFpr(bits_per_key / theory::kXorSlotsPerKey);
}

std::vector<std::byte> Xor::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<Xor>(writer, params_);
  writer.U64(keys_).U64(attempt_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<Xor> Xor::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<Xor>(reader);
  const uint64_t keys = reader.U64("distinct_keys", 0, UINT64_MAX);
  const uint64_t attempt = reader.U64("attempt", 0, keys == 0 ? 0 : kMaxPeelingAttempts - 1);
  XorLayout layout;
  if (reader.ok()) {
    const Result<XorLayout> expected = LayoutFor(keys, params, attempt / kPeelingSeedsPerSize);
    if (expected) {
      layout = *expected;
    } else {
      reader.Refuse("distinct_keys", expected.error());
    }
  }
  AlignedTable table = reader.Table("table", layout.Slots() * BytesPerSlot(params));
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  return Xor(params, keys, attempt, layout, std::move(table));
}

}  // namespace filterbench
