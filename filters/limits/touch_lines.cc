#include "filters/limits/touch_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "filters/simd/prefetch.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

TouchLines::Way Resolve(TouchLines::Way way, uint64_t table_bytes) {
  if (way != TouchLines::Way::kBest) return way;
  return PrefetchPays(table_bytes) ? TouchLines::Way::kAhead : TouchLines::Way::kVectorAddress;
}

// SplitMix64 (Steele, Lea, Flood 2014) with the finalizer of filters/hash.h: word i depends on
// (i, seed) alone, so that the loop has no chain through its multiplications.
void FillWithRandomWords(uint64_t seed, uint64_t* words, uint64_t count) {
  const uint64_t start = Mix64(seed + 1);
  for (uint64_t i = 0; i < count; ++i) words[i] = Mix64(start + i * 0x9e3779b97f4a7c15);
}

}  // namespace

TouchLines::TouchLines(const Params& params, uint64_t n, AlignedTable table)
    : params_(params), n_(n), way_(Resolve(params.way, table.size())), table_(std::move(table)) {
  report_ = {
      .attempts = 1, .distinct_keys = n, .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

uint64_t TouchLines::LinesFor(uint64_t n, double bits_per_key) {
  const double lines = std::ceil(static_cast<double>(n) * bits_per_key / (8 * kCacheLineBytes));
  return static_cast<uint64_t>(std::clamp(lines, 1.0, 0x1p57));
}

Result<TouchLines> TouchLines::Build(std::span<const uint64_t> hashes, const Params& params) {
  const uint64_t lines = LinesFor(hashes.size(), params.bits_per_key);
  if (lines > kMaxLines) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", lines * kCacheLineBytes,
                             kMaxLines * kCacheLineBytes)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(lines * kCacheLineBytes);
  if (!table) return Error{table.error()};
  FillWithRandomWords(params.seed, table->As<uint64_t>(), lines * kWordsPerLine);
  return TouchLines(params, hashes.size(), std::move(*table));
}

Details TouchLines::GetDetails() const {
  return {{"table_lines", static_cast<double>(table_.size() / kCacheLineBytes)},
          {"way", static_cast<double>(way_)}};
}

std::vector<std::byte> TouchLines::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<TouchLines>(writer, params_);
  writer.U64(n_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<TouchLines> TouchLines::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<TouchLines>(reader);
  const uint64_t n = reader.U64("keys", 0, UINT64_MAX);
  const uint64_t lines = LinesFor(n, params.bits_per_key);
  if (reader.ok() && lines > kMaxLines) reader.Refuse("keys", fmt::format("{} are too many", n));
  AlignedTable table = reader.Table("table", lines * kCacheLineBytes);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  return TouchLines(params, n, std::move(table));
}

}  // namespace filterbench
