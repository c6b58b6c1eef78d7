#include "filters/bloom/scalable_bloom.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>

#include "filters/bloom/layered_table.h"
#include "filters/simd/prefetch.h"
#include "filters/theory/growing.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
// A layer takes a cache line at least, which holds so many keys at the usual rates: growth begins
// there, or the first layers would all have the same size.
constexpr uint64_t kMinBits = kCacheLineBytes * 8;
constexpr double kMinKeys = 32;

uint64_t ToWholeWords(double bits) {
  return (static_cast<uint64_t>(std::clamp(bits, 1.0, 0x1p60)) + 63) / 64 * 64;
}

uint64_t TableBytes(uint64_t bits) { return bits / 8; }

Error TooLarge(double bytes) {
  return Error{
      fmt::format("too large: needs {:.0f} bytes, limit {}", bytes, TableBytes(kMaxBloomBits))};
}

}  // namespace

ScalableBloom::Geometry ScalableBloom::GeometryOf(const Params& params, uint64_t initial_keys,
                                                  uint32_t layer) {
  double fpr = params.fpr * (1 - params.tightening);
  const double least = params.layer_full == LayerFull::kFill ? kMinKeys : 1;
  double capacity = std::clamp(static_cast<double>(initial_keys), least, 0x1p50);
  for (uint32_t i = 0; i < layer; ++i) {
    fpr *= params.tightening;
    capacity = std::min(std::ceil(capacity * params.growth), 0x1p50);
  }
  // ceil(log2(1 / fpr)), without a logarithm.
  constexpr uint32_t kMaxProbes = 64;
  uint32_t k = 1;
  while (k < kMaxProbes && std::ldexp(1.0, -static_cast<int>(k)) > fpr) ++k;

  Geometry geometry = {fpr, static_cast<uint64_t>(capacity), k, 0, 0};
  if (params.layer_full == LayerFull::kKeys) {
    // Rounded as below.
    const double bits_per_key =
        std::ceil(-1024.0 * std::log(fpr) / (std::numbers::ln2 * std::numbers::ln2)) / 1024;
    geometry.bits = ToWholeWords(std::floor(capacity * bits_per_key));
    geometry.max_set = geometry.bits;
    return geometry;
  }
  // The share of set bits at which the layer has its rate; rounded, so that no last digit of a
  // power decides about a layout.
  const double share = std::floor(std::pow(fpr, 1.0 / k) * 0x1p16) / 0x1p16;
  const double bits_per_key = std::ceil(-1024.0 * k / std::log1p(-share)) / 1024;
  const double bits = std::ceil(capacity * bits_per_key);
  // With so many bits the keys set the share in the mean. What is added lets one filter in 1e11 be
  // full before: each additional bit makes room for 0.35 at a share of one half, and the number of
  // set bits deviates by 0.28 sqrt(bits).
  const double spare = std::ceil(6 * std::sqrt(bits)) + 3 * k;
  geometry.bits = std::max(kMinBits, ToWholeWords(bits + spare));
  geometry.max_set = static_cast<uint64_t>(share * static_cast<double>(geometry.bits));
  return geometry;
}

ScalableBloom::ScalableBloom(const Params& params, uint64_t initial_keys)
    : params_(params), initial_keys_(initial_keys), layers_(std::make_unique<Layers>()) {}

bool ScalableBloom::IsFull(const LayerState& state) const {
  if (state.keys == 0) return false;
  if (params_.layer_full == LayerFull::kKeys) return state.keys >= state.geometry.capacity;
  return state.set + state.geometry.k > state.geometry.max_set;
}

bool ScalableBloom::Grow() {
  if (states_.size() == kMaxLayers) return false;
  const Geometry geometry =
      GeometryOf(params_, initial_keys_, static_cast<uint32_t>(states_.size()));
  if (geometry.bits > kMaxBloomBits - table_.size() * 8) return false;
  Result<AlignedTable> table = Extended(table_, TableBytes(geometry.bits));
  if (!table) return false;
  states_.push_back({geometry});
  report_.peak_bytes = std::max(report_.peak_bytes, AllocatedBytes() + table->allocated_bytes());
  table_ = std::move(*table);
  PointIntoTable();
  return true;
}

void ScalableBloom::PointIntoTable() {
  const uint64_t* words = table_.As<uint64_t>();
  for (size_t i = 0; i < states_.size(); ++i) {
    const Geometry& geometry = states_[i].geometry;
    layers_->layers[i] = {words, geometry.bits, geometry.k,
                          PrefetchPays(TableBytes(geometry.bits))};
    words += geometry.bits / 64;
  }
  layers_->count = static_cast<uint32_t>(states_.size());
}

Result<ScalableBloom> ScalableBloom::Create(uint64_t keys, const Params& params) {
  const uint64_t initial_keys = params.initial_keys != 0 ? params.initial_keys : keys;
  const Geometry first = GeometryOf(params, initial_keys, 0);
  // That many keys need more than a first layer for them, wherever the layers begin.
  const Geometry least = GeometryOf(params, keys, 0);
  if (std::max(first.bits, least.bits) > kMaxBloomBits) {
    return TooLarge(static_cast<double>(std::max(first.bits, least.bits)) / 8);
  }
  ScalableBloom filter(params, initial_keys);
  if (!filter.Grow()) {
    return Error{fmt::format("out of memory: needs {} bytes", TableBytes(first.bits))};
  }
  return filter;
}

Result<ScalableBloom> ScalableBloom::Build(std::span<const uint64_t> hashes, const Params& params) {
  Result<ScalableBloom> filter = Create(hashes.size(), params);
  if (!filter) return filter;
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const Layer& newest = filter->layers_->layers[filter->layers_->count - 1];
    if (newest.prefetch && i + kAhead < hashes.size()) {
      PrefetchChain(newest.words, newest.bits, newest.k, hashes[i + kAhead]);
    }
    (void)filter->Insert(hashes[i]);
  }
  filter->report_.distinct_keys = hashes.size();
  return filter;
}

InsertStatus ScalableBloom::Insert(uint64_t hash) {
  const auto contains = [&](size_t i) {
    const Layer& layer = layers_->layers[i];
    return TestChain(layer.words, layer.bits, layer.k, hash);
  };
  for (size_t i = 0; i + 1 < states_.size(); ++i) {
    if (contains(i)) return InsertStatus::kOk;
  }
  if (IsFull(states_.back())) {
    if (contains(states_.size() - 1)) return InsertStatus::kOk;
    Grow();
  }
  const Layer& layer = layers_->layers[states_.size() - 1];
  uint64_t* words = table_.As<uint64_t>() + (table_.size() * 8 - layer.bits) / 64;
  const uint32_t added = SetChain(words, layer.bits, layer.k, hash);
  states_.back().set += added;
  states_.back().keys += added != 0 ? 1 : 0;
  return InsertStatus::kOk;
}

uint64_t ScalableBloom::keys() const {
  uint64_t keys = 0;
  for (const LayerState& state : states_) keys += state.keys;
  return keys;
}

Details ScalableBloom::GetDetails() const {
  const LayerState& newest = states_.back();
  return {{"layers", static_cast<double>(states_.size())},
          {"stored", static_cast<double>(keys())},
          {"bits", static_cast<double>(table_.size() * 8)},
          {"first_layer_keys", static_cast<double>(states_.front().geometry.capacity)},
          {"newest_layer_k", static_cast<double>(newest.geometry.k)},
          {"newest_layer_fill",
           static_cast<double>(newest.set) / static_cast<double>(newest.geometry.bits)}};
}

std::optional<FprEstimate> ScalableBloom::ExpectedFpr() const {
  std::vector<FprEstimate> parts;
  for (const LayerState& state : states_) {
    parts.push_back(
        {theory::FilledBloomFpr(state.set, state.geometry.bits, static_cast<int>(state.geometry.k)),
         0});
  }
  return theory::UnionFpr(parts);
}

std::vector<std::byte> ScalableBloom::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<ScalableBloom>(writer, params_);
  writer.U64(initial_keys_).U64(states_.size());
  for (const LayerState& state : states_) writer.U64(state.keys);
  writer.Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<ScalableBloom> ScalableBloom::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<ScalableBloom>(reader);
  const uint64_t initial_keys = reader.U64("first_layer_keys", 0, UINT64_MAX);
  if (reader.ok() && params.initial_keys != 0 && initial_keys != params.initial_keys) {
    reader.Refuse("first_layer_keys",
                  fmt::format("is {}, initial_keys is {}", initial_keys, params.initial_keys));
  }
  const uint64_t layers = reader.U64("layers", 1, kMaxLayers);
  ScalableBloom filter(params, initial_keys);
  uint64_t bits = 0;
  for (uint32_t i = 0; i < layers && reader.ok(); ++i) {
    LayerState state = {GeometryOf(params, initial_keys, i)};
    state.keys = reader.U64("keys of a layer", 0, UINT64_MAX);
    if (state.geometry.bits > kMaxBloomBits - bits) {
      reader.Refuse("layers", fmt::format("layer {} is too large", i));
      break;
    }
    bits += state.geometry.bits;
    filter.states_.push_back(state);
  }
  filter.table_ = reader.Table("table", TableBytes(bits));
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  filter.PointIntoTable();
  for (uint32_t i = 0; i < layers; ++i) {
    LayerState& state = filter.states_[i];
    const uint64_t* words = filter.layers_->layers[i].words;
    for (uint64_t word = 0; word < state.geometry.bits / 64; ++word) {
      state.set += static_cast<uint64_t>(std::popcount(words[word]));
    }
    // A key that is counted has set a bit, and none sets more than k.
    if (state.keys > state.set ||
        (state.set + state.geometry.k - 1) / state.geometry.k > state.keys) {
      return Error{
          fmt::format("keys of a layer: {} in layer {}, which has {} bits set with {} probes",
                      state.keys, i, state.set, state.geometry.k)};
    }
    if (i + 1 < layers ? !filter.IsFull(state) : i > 0 && state.keys == 0) {
      return Error{fmt::format("layers: there are {}, but layer {} has {} keys only", layers, i,
                               state.keys)};
    }
  }
  filter.report_.distinct_keys = filter.keys();
  filter.report_.peak_bytes = filter.AllocatedBytes();
  return filter;
}

}  // namespace filterbench
