#ifndef FILTERBENCH_FILTERS_BLOOM_SCALABLE_BLOOM_H_
#define FILTERBENCH_FILTERS_BLOOM_SCALABLE_BLOOM_H_

// Scalable Bloom filter: layers that are added as keys come, under one bound of the rate.
//
// Idea: a Bloom filter that is full is left as it is, and a larger one with a lower rate is put on
// top. With rates that fall by the factor `tightening` from layer to layer, starting at fpr (1 -
// tightening), the sum of all that may ever come is fpr.
// Source: Almeida, Baquero, Preguica, Hutchison, "Scalable Bloom Filters", 2007. RedisBloom's
// filter is `layer_full: keys` with the other defaults: the first layer at half the rate, twice the
// keys and half the rate for each next, k = ceil(ln 2 * bits per key).
// Limits: each layer is one more filter to ask, so that a negative answer costs as many cache
// misses as there are layers, times two; and bits per key grow with the logarithm of the rate of
// the last layer: with a bound of 1 % and a million keys from 1000 on, 23 in 10 layers, where one
// layer for all takes 11. When it loses: where the number of keys is known, or a table can be built
// anew.
//
// When a layer is full. `fill`, as in the paper: when no further key is sure to leave its share of
// set bits within the one that its rate allows. The bound then holds for every filter and every
// sequence of keys, however often keys are repeated, up to the layers that the limit of the table
// size allows. `keys`, as in RedisBloom: when it holds the keys that it was made for. The bound
// then holds about and in the mean: layers are sized by the optimal k, while k is rounded up.
//
// A key that an older layer contains is not inserted again, and one that changes no bit of the
// newest is not counted: repeated keys cost nothing.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "filters/bloom/probe_chain.h"
#include "filters/filter.h"
#include "filters/table.h"

namespace filterbench {

class ScalableBloom {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "scalable_bloom",
      .summary = "Bloom filters in layers that grow while the total rate stays bounded",
      .source = "Almeida, Baquero, Preguica, Hutchison 2007; RedisBloom",
      .fpr_formula =
          "1 - product over layers of (1 - (set bits / bits)^k) (Almeida et al. 2007, "
          "section 3)",
      .hash_bits = 64,
      .grows = true,
  };

  enum class LayerFull { kFill, kKeys };

  struct Params {
    double fpr = 0.01;
    uint64_t initial_keys = 0;
    double growth = 2;
    double tightening = 0.5;
    LayerFull layer_full = LayerFull::kFill;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"fpr", &Params::fpr, 1e-6, 0.5,
                           "bound of the false-positive rate, however many keys come"},
      Knob<Params, uint64_t>{"initial_keys", &Params::initial_keys, 0, uint64_t{1} << 40,
                             "keys that the first layer is made for; 0 takes those of the build"},
      Knob<Params, double>{"growth", &Params::growth, 1.5, 16,
                           "keys of a layer over those of the layer before"},
      Knob<Params, double>{"tightening", &Params::tightening, 0.1, 0.95,
                           "rate of a layer over that of the layer before"},
      Choice{"layer_full", &Params::layer_full, std::array<std::string_view, 2>{"fill", "keys"},
             "a layer is full by its share of set bits, or by its number of keys"},
  };

  // Enough for any number of keys at the least growth.
  static constexpr uint32_t kMaxLayers = 64;

  struct Layer {
    const uint64_t* words;
    uint64_t bits;
    uint32_t k;
    bool prefetch;  // batched lookups prefetch their lines
  };
  // The newest layer, which is the largest, is the last.
  struct Layers {
    uint32_t count = 0;
    std::array<Layer, kMaxLayers> layers;
  };

  struct View {
    const Layers* all;

    bool MayContain(uint64_t hash) const noexcept {
      for (uint32_t i = all->count; i-- > 0;) {
        const Layer& layer = all->layers[i];
        if (TestChain(layer.words, layer.bits, layer.k, hash)) return true;
      }
      return false;
    }
  };

  // What a layer is, by its number: a function of the parameters and of the first layer's keys.
  struct Geometry {
    double fpr;         // that the layer may have when it is full
    uint64_t capacity;  // keys that it is made for
    uint32_t k;
    uint64_t bits;     // whole words
    uint64_t max_set;  // set bits at which (max_set / bits)^k <= fpr
  };
  static Geometry GeometryOf(const Params& params, uint64_t initial_keys, uint32_t layer);

  // One empty layer for `keys` keys, or for as many as the parameters say.
  static Result<ScalableBloom> Create(uint64_t keys, const Params& params);
  static Result<ScalableBloom> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<ScalableBloom> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  // Never refused. Where the next layer would exceed the limit, or the system has no memory for it,
  // the newest one takes more keys than it should.
  InsertStatus Insert(uint64_t hash);

  View view() const { return {layers_.get()}; }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const {
    return table_.size() + sizeof(View) + sizeof(Layer) * layers_->count;
  }
  uint64_t AllocatedBytes() const {
    return table_.allocated_bytes() + sizeof(*this) + sizeof(Layers) +
           sizeof(LayerState) * states_.capacity();
  }
  // All layers, the first one first.
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  // Of the layers as they are filled now.
  std::optional<FprEstimate> ExpectedFpr() const;
  // Nothing: the bits per key depend on how far the last layer has been filled.
  static std::optional<double> TheoryFpr(double) { return std::nullopt; }

  uint32_t layers() const { return layers_->count; }
  // Keys that changed a bit, which are all but the repeated ones and false positives.
  uint64_t keys() const;

 private:
  struct LayerState {
    Geometry geometry;
    uint64_t keys = 0;
    uint64_t set = 0;
  };

  ScalableBloom(const Params& params, uint64_t initial_keys);
  bool IsFull(const LayerState& state) const;
  // Puts another layer on top; false, and nothing changed, where there cannot be one.
  bool Grow();
  // Makes the views of the layers those of table_.
  void PointIntoTable();

  Params params_;
  uint64_t initial_keys_;
  AlignedTable table_;
  std::vector<LayerState> states_;
  std::unique_ptr<Layers> layers_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_SCALABLE_BLOOM_H_
