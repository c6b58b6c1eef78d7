#include "filters/bloom/taffy_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "filters/bloom/key_count.h"
#include "filters/bloom/layered_table.h"
#include "filters/simd/prefetch.h"
#include "filters/theory/blocked_bloom.h"
#include "filters/theory/growing.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr int kWordBits = SplitBlockView::kWordBits;
constexpr double kBlockBits = 8.0 * TaffyBlock::kBlockBytes;
// Fewer keys fill no whole blocks, and the rate that the first levels may have would be wasted.
constexpr double kMinKeys = 128;

uint64_t BlocksFor(double keys, double fpr) {
  const double bits_per_key = theory::SplitBlockBitsPerKey(fpr, kSplitWords, kWordBits);
  return static_cast<uint64_t>(
      std::clamp(std::ceil(keys * bits_per_key / kBlockBits), 1.0, 0x1p57));
}

}  // namespace

TaffyBlock::Geometry TaffyBlock::GeometryOf(const Params& params, uint64_t initial_keys,
                                            uint32_t level) {
  const double number = level + 1.0;
  const double fpr = params.fpr * 6 / (std::numbers::pi * std::numbers::pi * number * number);
  const double first = std::clamp(static_cast<double>(initial_keys), kMinKeys, 0x1p60);
  const double capacity = std::min(std::ldexp(first, static_cast<int>(level)), 0x1p60);
  return {fpr, static_cast<uint64_t>(capacity), BlocksFor(capacity, fpr)};
}

TaffyBlock::TaffyBlock(const Params& params, uint64_t initial_keys)
    : params_(params), initial_keys_(initial_keys), levels_(std::make_unique<Levels>()) {}

bool TaffyBlock::Grow() {
  if (states_.size() == kMaxLevels) return false;
  const Geometry geometry =
      GeometryOf(params_, initial_keys_, static_cast<uint32_t>(states_.size()));
  if (geometry.blocks > kMaxBlocks - table_.size() / kBlockBytes) return false;
  Result<AlignedTable> table = Extended(table_, geometry.blocks * kBlockBytes);
  if (!table) return false;
  states_.push_back({geometry});
  report_.peak_bytes = std::max(report_.peak_bytes, AllocatedBytes() + table->allocated_bytes());
  table_ = std::move(*table);
  PointIntoTable();
  return true;
}

void TaffyBlock::PointIntoTable() {
  const uint32_t* words = table_.As<uint32_t>();
  for (size_t i = 0; i < states_.size(); ++i) {
    const uint64_t blocks = states_[i].geometry.blocks;
    levels_->levels[i] = {words, blocks, PrefetchPays(blocks * kBlockBytes)};
    words += blocks * kSplitWords;
  }
  levels_->count = static_cast<uint32_t>(states_.size());
}

Result<TaffyBlock> TaffyBlock::Create(uint64_t keys, const Params& params) {
  const uint64_t initial_keys = params.initial_keys != 0 ? params.initial_keys : keys;
  const uint64_t first = GeometryOf(params, initial_keys, 0).blocks;
  // That many keys need more than a first level for them, wherever the levels begin.
  const uint64_t least = std::max(first, GeometryOf(params, keys, 0).blocks);
  if (least > kMaxBlocks) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", least * kBlockBytes,
                             kMaxBlocks * kBlockBytes)};
  }
  TaffyBlock filter(params, initial_keys);
  if (!filter.Grow()) {
    return Error{fmt::format("out of memory: needs {} bytes", first * kBlockBytes)};
  }
  return filter;
}

Result<TaffyBlock> TaffyBlock::Build(std::span<const uint64_t> hashes, const Params& params) {
  Result<TaffyBlock> filter = Create(hashes.size(), params);
  if (!filter) return filter;
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const Level& newest = filter->levels_->levels[filter->levels_->count - 1];
    if (newest.prefetch && i + kAhead < hashes.size()) {
      __builtin_prefetch(newest.words + newest.BlockOf(hashes[i + kAhead]) * kSplitWords, 1);
    }
    (void)filter->Insert(hashes[i]);
  }
  filter->report_.distinct_keys = hashes.size();
  return filter;
}

InsertStatus TaffyBlock::Insert(uint64_t hash) {
  if (states_.back().keys >= states_.back().geometry.capacity) Grow();
  const Level& level = levels_->levels[states_.size() - 1];
  uint32_t* words = table_.As<uint32_t>() + (table_.size() - level.blocks * kBlockBytes) / 4;
  SplitBlockInsert(level, words, hash);
  ++states_.back().keys;
  return InsertStatus::kOk;
}

uint64_t TaffyBlock::keys() const {
  uint64_t keys = 0;
  for (const LevelState& state : states_) keys += state.keys;
  return keys;
}

Details TaffyBlock::GetDetails() const {
  const LevelState& newest = states_.back();
  return {{"layers", static_cast<double>(states_.size())},
          {"stored", static_cast<double>(keys())},
          {"bits", static_cast<double>(table_.size() * 8)},
          {"first_layer_keys", static_cast<double>(states_.front().geometry.capacity)},
          {"newest_layer_load",
           static_cast<double>(newest.keys) / static_cast<double>(newest.geometry.capacity)}};
}

std::optional<FprEstimate> TaffyBlock::ExpectedFpr() const {
  std::vector<FprEstimate> parts;
  // With more keys in each block than that the rate is 1.
  constexpr uint64_t kFullLoad = 4096;
  for (const LevelState& state : states_) {
    const uint64_t keys = std::min(state.keys, state.geometry.blocks * kFullLoad);
    parts.push_back(theory::SplitBlockFpr(keys, state.geometry.blocks, kSplitWords, kWordBits));
  }
  return theory::UnionFpr(parts);
}

std::vector<std::byte> TaffyBlock::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<TaffyBlock>(writer, params_);
  writer.U64(initial_keys_).U64(states_.size()).U64(states_.back().keys).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<TaffyBlock> TaffyBlock::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<TaffyBlock>(reader);
  const uint64_t initial_keys = reader.U64("first_layer_keys", 0, UINT64_MAX);
  if (reader.ok() && params.initial_keys != 0 && initial_keys != params.initial_keys) {
    reader.Refuse("first_layer_keys",
                  fmt::format("is {}, initial_keys is {}", initial_keys, params.initial_keys));
  }
  const uint64_t levels = reader.U64("layers", 1, kMaxLevels);
  const uint64_t newest_keys = reader.U64("newest_layer_keys", 0, UINT64_MAX);
  TaffyBlock filter(params, initial_keys);
  uint64_t blocks = 0;
  for (uint32_t i = 0; i < levels && reader.ok(); ++i) {
    const Geometry geometry = GeometryOf(params, initial_keys, i);
    if (geometry.blocks > kMaxBlocks - blocks) {
      reader.Refuse("layers", fmt::format("layer {} is too large", i));
      break;
    }
    blocks += geometry.blocks;
    // All but the newest are full.
    filter.states_.push_back({geometry, geometry.capacity});
  }
  if (reader.ok() && levels > 1 && newest_keys == 0) {
    reader.Refuse("newest_layer_keys", "is 0 above other layers");
  }
  filter.table_ = reader.Table("table", blocks * kBlockBytes);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  filter.states_.back().keys = newest_keys;
  if (levels == 1) {
    CheckKeys(reader, "newest_layer_keys", newest_keys, kBlockBytes / sizeof(uint32_t),
              filter.Table());
    if (!reader.ok()) return Error{reader.error()};
  }
  filter.PointIntoTable();
  filter.report_.distinct_keys = filter.keys();
  filter.report_.peak_bytes = filter.AllocatedBytes();
  return filter;
}

}  // namespace filterbench
