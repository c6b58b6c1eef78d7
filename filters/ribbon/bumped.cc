#include "filters/ribbon/bumped.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "filters/out_of_memory.h"
#include "filters/theory/ribbon.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr uint64_t kWordBits = 64;

constexpr uint64_t RoundUp(uint64_t x, uint64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}

uint64_t WidthBits(BumpedRibbon::Width width) {
  return width == BumpedRibbon::Width::k64 ? 64 : 32;
}

// Calls use with the width as a constant.
template <class Use>
decltype(auto) WithWidth(BumpedRibbon::Width width, Use&& use) {
  return width == BumpedRibbon::Width::k64 ? use(std::integral_constant<uint64_t, 64>())
                                           : use(std::integral_constant<uint64_t, 32>());
}

// Starts of an overloaded layer: the fewer, the more keys are bumped and the fewer slots stay free
// (3 in 10000 in the first layer of rows of 64 bits).
template <uint64_t kWidth>
uint64_t StartsFor(uint64_t keys, uint32_t layer) {
  constexpr uint64_t kMinKeys = 128;  // fewer are too uneven for buckets
  if (keys < kMinKeys || layer + 1 == RibbonLayers::kMax) return 0;
  const uint64_t per_1000_keys = kWidth == 32 ? 880 : layer == 0 ? 940 : 920;
  const uint64_t bucket_slots =
      layer == 0 ? FirstRibbonBuckets<kWidth>::kBucketSlots : LaterRibbonBuckets::kBucketSlots;
  return keys * per_1000_keys / 1000 / bucket_slots * bucket_slots;
}

// Columns of all slots where that is known before anything is built, and more than any slot will
// have otherwise.
uint32_t MaxColumns(const RibbonRequest& request) {
  if (request.fpr != 0) {
    const auto [columns, wide_share] = RibbonColumnsForFpr(request.fpr);
    return columns + (wide_share > 0 ? 1 : 0);
  }
  return static_cast<uint32_t>(std::ceil(request.bits_per_key + request.columns));
}

// Columns that every slot will have.
uint32_t MinColumns(const RibbonRequest& request, uint64_t n) {
  if (request.fpr != 0) return RibbonColumnsForFpr(request.fpr).first;
  if (request.columns != 0) return static_cast<uint32_t>(request.columns);
  // Of a table larger than any is, levels included.
  const double keys = static_cast<double>(n);
  return static_cast<uint32_t>(std::max(0.0, request.bits_per_key * keys - 128) /
                               (keys * 1.01 + 256));
}

// What the layers of a build share.
template <uint64_t kWidth>
class LayerBuilder {
 public:
  using View = BumpedRibbonView<kWidth>;
  using Matrix = Banding<uint64_t>;
  using Keys = std::span<const uint64_t>;

  LayerBuilder(Matrix banding, uint32_t max_columns, bool in_bytes)
      : banding_(std::move(banding)),
        result_mask_(static_cast<uint32_t>((uint64_t{1} << max_columns) - 1)),
        in_bytes_(in_bytes) {}

  // Adds the keys of a layer of `starts` starts from `first` on, whose hashes are mix(key), but
  // those that it bumps. Returns the hashes of these in this layer. Layers with the same kind of
  // Buckets follow each other.
  template <class Buckets, class Mix>
  Result<std::vector<uint64_t>> AddLayer(Keys keys, const Mix& mix, uint64_t first,
                                         uint64_t starts) {
    if (const auto error = Reserve(first + starts + kWidth)) return *error;
    if (first_of_later_ == 0 && first != 0) {
      first_of_later_ = first;
      first_level_words_ = levels_.size();
    }
    const uint64_t level_word = first == 0 ? 0 : first_level_words_;
    levels_.resize(level_word + Buckets::Words(first - first_of_later_ + starts));
    RibbonKeyOrder order(starts);
    const auto start_of = [starts](uint64_t mixed) { return RibbonHash::Start(mixed, starts); };
    if (const auto error = order.Order(keys, mix, start_of)) return *error;
    std::vector<uint64_t> bumped;
    for (size_t region = 0; region < order.regions(); ++region) {
      const uint64_t region_first = region * order.region_slots();
      GroupKeys<Buckets>(order.Region(region), start_of, region_first, order.region_slots());
      const uint64_t buckets =
          std::min(order.region_slots(), starts - region_first) / Buckets::kBucketSlots;
      for (uint64_t bucket = 0; bucket < buckets; ++bucket) {
        const uint64_t level = AddBucket(bucket, first, starts, bumped);
        const uint64_t index =
            (first - first_of_later_ + region_first) / Buckets::kBucketSlots + bucket;
        levels_[level_word + index / Buckets::kBucketsPerWord] |=
            level << (Buckets::kLevelBits * (index % Buckets::kBucketsPerWord));
      }
    }
    NotePeak(order.AllocatedBytes() + bumped.capacity() * sizeof(uint64_t));
    return bumped;
  }

  // Adds keys with the hashes mix(key, attempt) as a standard system, whose starts begin at
  // `first`: as many slots as it takes, a multiple of `granule` in all. Returns the attempt that
  // worked; nothing if none did.
  template <class Mix>
  Result<std::optional<uint64_t>> AddLastLayer(Keys keys, const Mix& mix, uint64_t first,
                                               uint64_t granule) {
    if (const auto error = Reserve(first + kWidth)) return *error;
    uint64_t occupied = 0;
    for (uint64_t slot = first; slot < first + kWidth; ++slot) {
      occupied += banding_.rows()[slot] != 0 ? 1 : 0;
    }
    std::vector<uint64_t> mixed(keys.size());
    for (uint64_t attempt = 0; attempt < BumpedRibbon::kMaxAttempts; ++attempt) {
      const uint64_t enlargements = attempt / BumpedRibbon::kAttemptsPerSize;
      // Few keys are a dense system, which works in every other attempt with two slots to spare.
      const uint64_t spare = (2 + keys.size() / 64) * (1 + enlargements);
      slots_ = RoundUp(first + std::max(kWidth, occupied + keys.size() + spare), granule);
      if (const auto error = Reserve(slots_)) return *error;
      std::transform(keys.begin(), keys.end(), mixed.begin(),
                     [&](uint64_t key) { return mix(key, attempt); });
      if (AddOrRemoveAll(mixed, first, slots_ - first - kWidth + 1)) return std::optional(attempt);
    }
    return std::optional<uint64_t>();
  }

  const Matrix& banding() const { return banding_; }
  // Of the whole table, after the last layer.
  uint64_t slots() const { return slots_; }
  std::span<const uint64_t> levels() const { return levels_; }
  // Keys whose equal was there before.
  uint64_t duplicates() const { return duplicates_; }
  // Notes that so many bytes were held beside those of the builder.
  void NotePeak(uint64_t others) {
    peak_bytes_ = std::max(peak_bytes_, others + banding_.AllocatedBytes() +
                                            (levels_.capacity() + grouped_.capacity() +
                                             group_ends_.capacity() + taken_.capacity()) *
                                                sizeof(uint64_t));
  }
  uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  // Keys of a bucket that are bumped together, those that start last in the bucket first.
  static constexpr uint64_t kGroups = 3;

  std::optional<Error> Reserve(uint64_t slots) {
    return banding_.Grow(RoundUp(slots, RibbonShape::kBlockSlots));
  }

  template <class Buckets>
  static uint64_t GroupInBucket(uint64_t offset) {
    static_assert(Buckets::kLevels.size() == kGroups + 1);
    uint64_t group = 0;
    for (uint64_t level = 1; level < kGroups; ++level) {
      group += offset < Buckets::kLevels[level] ? 1 : 0;
    }
    return group;
  }

  // The keys of a region in grouped_, those of group g of its bucket b behind all of the groups
  // before, up to group_ends_[b * kGroups + g].
  template <class Buckets, class StartOf>
  void GroupKeys(Keys keys, const StartOf& start_of, uint64_t region_first, uint64_t region_slots) {
    const auto group_of = [&](uint64_t mixed) {
      const uint64_t slot = start_of(mixed) - region_first;
      return slot / Buckets::kBucketSlots * kGroups +
             GroupInBucket<Buckets>(slot % Buckets::kBucketSlots);
    };
    group_ends_.assign(region_slots / Buckets::kBucketSlots * kGroups, 0);
    for (const uint64_t key : keys) ++group_ends_[group_of(key)];
    uint64_t begin = 0;
    for (uint64_t& end : group_ends_) begin += std::exchange(end, begin);
    grouped_.resize(keys.size());
    for (const uint64_t key : keys) grouped_[group_ends_[group_of(key)]++] = key;
  }

  // Adds the groups of a bucket of the region until one does not fit; it and those that start
  // before it are bumped. Returns the level.
  uint64_t AddBucket(uint64_t bucket, uint64_t first, uint64_t starts,
                     std::vector<uint64_t>& bumped) {
    const uint64_t* ends = group_ends_.data() + bucket * kGroups;
    uint64_t begin = bucket == 0 ? 0 : ends[-1];
    uint64_t group = 0;
    for (; group < kGroups; ++group) {
      if (!AddOrRemoveAll(Keys(grouped_).subspan(begin, ends[group] - begin), first, starts)) break;
      begin = ends[group];
    }
    bumped.insert(bumped.end(), grouped_.begin() + static_cast<int64_t>(begin),
                  grouped_.begin() + static_cast<int64_t>(ends[kGroups - 1]));
    return kGroups - group;
  }

  // Adds all keys, or none of them and returns false.
  bool AddOrRemoveAll(Keys mixed_keys, uint64_t first, uint64_t starts) {
    taken_.clear();
    bool redundant = false;
    for (const uint64_t mixed : mixed_keys) {
      const RibbonHash full(mixed);
      const RibbonHash narrow{
          full.low & (in_bytes_ ? View::kByteCoefficients : View::kWordCoefficients), 0};
      uint64_t slot;
      const auto outcome = banding_.template Add<true>(
          first + RibbonHash::Start(mixed, starts),
          in_bytes_ ? narrow.ByteCoefficientRow<uint64_t>() : narrow.CoefficientRow<uint64_t>(),
          full.ResultRow<uint64_t>() & result_mask_, &slot);
      if (outcome == Matrix::Outcome::kIndependent) {
        taken_.push_back(slot);
      } else if (outcome == Matrix::Outcome::kRedundant) {
        redundant = true;
      } else {
        for (; !taken_.empty(); taken_.pop_back()) banding_.Remove(taken_.back());
        return false;
      }
    }
    // Equal hashes stay together in all layers, and one of two is redundant.
    if (redundant) {
      std::vector<uint64_t> sorted(mixed_keys.begin(), mixed_keys.end());
      std::sort(sorted.begin(), sorted.end());
      duplicates_ +=
          static_cast<uint64_t>(sorted.end() - std::unique(sorted.begin(), sorted.end()));
    }
    return true;
  }

  Matrix banding_;
  uint32_t result_mask_;
  bool in_bytes_;  // coefficients are in the order of planes
  uint64_t slots_ = 0;
  uint64_t duplicates_ = 0;
  uint64_t peak_bytes_ = 0;
  uint64_t first_of_later_ = 0;  // the first start of the second layer, from when on it is known
  uint64_t first_level_words_ = 0;
  std::vector<uint64_t> levels_;
  std::vector<uint64_t> grouped_;
  std::vector<uint64_t> group_ends_;
  std::vector<uint64_t> taken_;
};

// Gives the table at most so many words, but at least one column, or eight where they are in bytes,
// and at most `max_columns`: more would fit where many keys are equal.
void FitColumns(uint64_t words, uint32_t max_columns, bool in_bytes, RibbonShape& shape) {
  const uint32_t least = in_bytes ? RibbonShape::kPlaneColumns : 1;
  shape.columns = in_bytes ? max_columns : std::min(max_columns, RibbonShape::kPlaneColumns - 1);
  while (shape.columns > least && shape.words() > words) --shape.columns;
  if (shape.words() > words || shape.columns == max_columns) return;
  shape.first_wide_block -= std::min(shape.blocks, words - shape.words());
}

// Share of absent keys whose rows start at `slot` or behind it.
template <uint64_t kWidth>
double ShareFrom(uint64_t slot, const RibbonLayers& layers, const uint64_t* levels) {
  double share = 0;
  double reaching = 1;  // of the absent keys, this layer
  // Of the starts from `begin` on, whose levels count from `base` on.
  const auto add_layer = [&](auto buckets, uint64_t begin, uint64_t starts, uint64_t base,
                             const uint64_t* layer_levels) {
    uint64_t kept = 0;
    uint64_t kept_from_slot = 0;
    for (uint64_t bucket = begin; bucket < begin + starts; bucket += buckets.kBucketSlots) {
      const uint64_t next = bucket + buckets.kBucketSlots;
      const uint64_t first = bucket + buckets.BumpedSlots(layer_levels, bucket - base);
      kept += next - first;
      kept_from_slot += next - std::clamp(slot, first, next);
    }
    share += reaching * static_cast<double>(kept_from_slot) / static_cast<double>(starts);
    reaching *= 1 - static_cast<double>(kept) / static_cast<double>(starts);
  };
  for (uint32_t layer = 0; layer + 1 < layers.count; ++layer) {
    if (layer == 0) {
      add_layer(FirstRibbonBuckets<kWidth>(), 0, layers.Starts(0), 0, levels);
    } else {
      add_layer(LaterRibbonBuckets(), layers.First(layer), layers.Starts(layer), layers.First(1),
                levels + layers.FirstLevelWords<kWidth>());
    }
  }
  const uint64_t begin = layers.First(layers.count - 1);
  return share + reaching * static_cast<double>(layers.end - std::clamp(slot, begin, layers.end)) /
                     static_cast<double>(layers.end - begin);
}

}  // namespace

BumpedRibbon::BumpedRibbon(const Params& params, uint64_t n, uint64_t round, uint64_t attempt,
                           const RibbonLayers& layers, const RibbonShape& shape, AlignedTable table)
    : params_(params),
      n_(n),
      round_(round),
      attempt_(attempt),
      layers_(layers),
      shape_(shape),
      salt_(Salt(params.seed, round, 0, layers.count == 1 ? attempt : 0)),
      table_(std::move(table)) {
  for (uint32_t layer = 1; layer < layers_.count; ++layer) {
    layers_.later[layer - 1].salt =
        Salt(params.seed, round, layer, layer + 1 == layers_.count ? attempt : 0);
  }
  report_ = {.attempts = round + attempt + 1,
             .distinct_keys = n,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

std::string BumpedRibbon::Contradiction(const Params& params) {
  const Result<RibbonRequest> request = RibbonRequest::Of(params);
  return request ? std::string() : request.error();
}

Result<BumpedRibbon> BumpedRibbon::Build(std::span<const uint64_t> hashes,
                                         const Params& params) try {
  const Result<RibbonRequest> request = RibbonRequest::Of(params);
  if (!request) return Error{request.error()};
  const double bits =
      static_cast<double>(hashes.size()) *
      (request->fpr != 0 ? MaxColumns(*request) : request->bits_per_key + request->columns);
  if (bits / 8 > static_cast<double>(kMaxTableBytes)) {
    return Error{fmt::format("too large: needs {:.0f} bytes, limit {}", std::ceil(bits / 8),
                             kMaxTableBytes)};
  }
  // A 16th of them to spare, for what a build adds to the number of keys.
  if (hashes.size() > kMaxSlots / 16 * 15) {
    return Error{fmt::format("too large: needs {} slots, limit {}",
                             hashes.size() + hashes.size() / 15 + 1, kMaxSlots)};
  }
  if (hashes.empty()) return BumpedRibbon(params, 0, 0, 0, {}, {}, AlignedTable());
  // Of the free slots those that fill the last block of words are not to blame on anybody.
  const uint64_t granule = MinColumns(*request, hashes.size()) >= RibbonShape::kPlaneColumns
                               ? 0
                               : RibbonShape::kBlockSlots;
  const uint64_t most_slots =
      hashes.size() + std::max<uint64_t>(64, hashes.size() * 65 / 10'000) + granule;
  for (uint64_t round = 0;; ++round) {
    Result<BumpedRibbon> filter = params.width == Width::k64
                                      ? BuildAs<64>(hashes, params, *request, round)
                                      : BuildAs<32>(hashes, params, *request, round);
    if (round + 1 == kMaxRounds || (filter && filter->shape_.used_slots() <= most_slots)) {
      return filter;
    }
  }
} catch (const std::bad_alloc&) {
  return Error{kOutOfMemory};
}

template <uint64_t kWidth>
Result<BumpedRibbon> BumpedRibbon::BuildAs(std::span<const uint64_t> hashes, const Params& params,
                                           const RibbonRequest& request, uint64_t round) {
  const uint64_t n = hashes.size();
  // Where eight columns hardly fit, they may turn out not to: it is all the same to ask for words.
  const bool in_bytes = MinColumns(request, n) >= RibbonShape::kPlaneColumns;
  // Planes end with the slots, words come in blocks.
  const uint64_t granule = in_bytes ? 8 : RibbonShape::kBlockSlots;
  // With room for the last layer of all but the smallest tables: growing copies the matrix.
  Result<Banding<uint64_t>> banding =
      Banding<uint64_t>::Allocate(RoundUp(n + n / 64 + 4 * kWidth, RibbonShape::kBlockSlots), true);
  if (!banding) return Error{banding.error()};
  LayerBuilder<kWidth> builder(std::move(*banding), MaxColumns(request), in_bytes);

  RibbonLayers layers;
  std::vector<uint64_t> bumped;
  std::span<const uint64_t> keys = hashes;
  // Of a key of this layer, which is its hash in the layer before.
  const auto mix = [](uint64_t key, uint32_t layer, uint64_t salt) {
    return layer == 0 ? RibbonHash::Mix(key, salt) : BumpedRibbonView<kWidth>::NextLayer(key, salt);
  };
  uint64_t first = 0;
  for (;; ++layers.count) {
    const uint32_t layer = layers.count;
    if (layer > 0) layers.later[layer - 1].first = first;
    const uint64_t starts = StartsFor<kWidth>(keys.size(), layer);
    if (starts == 0) break;
    const auto mix_here = [&, salt = Salt(params.seed, round, layer, 0)](uint64_t key) {
      return mix(key, layer, salt);
    };
    Result<std::vector<uint64_t>> next =
        layer == 0
            ? builder.template AddLayer<FirstRibbonBuckets<kWidth>>(keys, mix_here, first, starts)
            : builder.template AddLayer<LaterRibbonBuckets>(keys, mix_here, first, starts);
    if (!next) return Error{next.error()};
    bumped = std::move(*next);
    keys = bumped;
    first += starts;
  }
  const uint32_t last = layers.count++;
  const Result<std::optional<uint64_t>> worked = builder.AddLastLayer(
      keys,
      [&](uint64_t key, uint64_t attempt) {
        return mix(key, last, Salt(params.seed, round, last, attempt));
      },
      first, granule);
  if (!worked) return Error{worked.error()};
  if (!worked->has_value()) {
    return Error{fmt::format("no seed works: tried {} for the last {} of {} keys", kMaxAttempts,
                             keys.size(), n)};
  }
  layers.end = builder.slots() - kWidth + 1;

  const std::span<const uint64_t> levels = builder.levels();
  RibbonShape shape;
  shape.blocks = RoundUp(builder.slots(), RibbonShape::kBlockSlots) / RibbonShape::kBlockSlots;
  shape.first_wide_block = shape.blocks;
  shape.unused_slots = shape.slots() - builder.slots();
  if (request.bits_per_key != 0) {
    const auto words =
        static_cast<uint64_t>(static_cast<double>(n) * request.bits_per_key / kWordBits);
    FitColumns(words - std::min<uint64_t>(words, levels.size()), MaxColumns(request), in_bytes,
               shape);
  } else {
    const auto [columns, wide_share] =
        request.fpr != 0 ? RibbonColumnsForFpr(request.fpr)
                         : std::pair(static_cast<uint32_t>(request.columns),
                                     request.columns - std::floor(request.columns));
    shape.columns = columns;
    if (request.columns != 0) {
      shape.first_wide_block -=
          static_cast<uint64_t>(wide_share * static_cast<double>(shape.blocks));
    } else if (wide_share > 0) {
      // The last block from which on wide ones are enough.
      uint64_t high = shape.blocks;
      for (shape.first_wide_block = 0; shape.first_wide_block < high;) {
        const uint64_t middle = high - (high - shape.first_wide_block) / 2;
        if (ShareFrom<kWidth>(middle * RibbonShape::kBlockSlots, layers, levels.data()) >=
            wide_share) {
          shape.first_wide_block = middle;
        } else {
          high = middle - 1;
        }
      }
    }
  }
  Result<AlignedTable> table =
      AlignedTable::Allocate((shape.words() + levels.size()) * sizeof(uint64_t));
  if (!table) return Error{table.error()};
  builder.NotePeak(table->allocated_bytes() + bumped.capacity() * sizeof(uint64_t));
  builder.banding().Solve(shape, false, 0, table->As<uint64_t>());
  std::copy(levels.begin(), levels.end(), table->As<uint64_t>() + shape.words());
  BumpedRibbon filter(params, n, round, **worked, layers, shape, std::move(*table));
  filter.report_.distinct_keys = n - builder.duplicates();
  filter.report_.peak_bytes = builder.peak_bytes() + sizeof(filter);
  return filter;
}

Details BumpedRibbon::GetDetails() const {
  Details details = {
      {"slots", static_cast<double>(shape_.used_slots())},
      {"columns_low", static_cast<double>(shape_.columns)},
      {"columns_high", static_cast<double>(shape_.max_columns())},
      {"layers", static_cast<double>(layers_.count)},
      {"attempts", static_cast<double>(report_.attempts)},
  };
  if (n_ != 0) {
    const double slots = static_cast<double>(shape_.used_slots());
    details.push_back({"columns", static_cast<double>(shape_.words()) * kWordBits / slots});
    details.push_back({"slots_per_key", slots / static_cast<double>(n_)});
    details.push_back({"last_layer_slots", static_cast<double>(shape_.used_slots() -
                                                               layers_.First(layers_.count - 1))});
  }
  return details;
}

std::optional<FprEstimate> BumpedRibbon::ExpectedFpr() const {
  if (n_ == 0) return FprEstimate{};
  double wide_share = 0;
  if (shape_.first_wide_block < shape_.blocks) {
    wide_share = WithWidth(params_.width, [&](auto width) {
      return ShareFrom<width()>(shape_.first_wide_block * RibbonShape::kBlockSlots, layers_,
                                table_.As<uint64_t>() + shape_.words());
    });
  }
  return FprEstimate{theory::RibbonFpr(static_cast<int>(shape_.columns), wide_share)};
}

std::optional<double> BumpedRibbon::TheoryFpr(double bits_per_key) {
  const double columns =
      (bits_per_key - theory::kBumpedRibbonThresholdBitsPerKey) / theory::kBumpedRibbonSlotsPerKey;
  if (!(columns >= 1 && columns <= kMaxColumns)) return std::nullopt;
  return theory::RibbonFpr(columns);
}

std::vector<std::byte> BumpedRibbon::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<BumpedRibbon>(writer, params_);
  writer.U64(n_).U64(report_.distinct_keys).U64(round_).U64(attempt_);
  writer.U64(layers_.count).U64(layers_.end);
  for (uint32_t layer = 1; layer < layers_.count; ++layer) writer.U64(layers_.First(layer));
  writer.U64(shape_.columns).U64(shape_.first_wide_block).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<BumpedRibbon> BumpedRibbon::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<BumpedRibbon>(reader);
  const uint64_t n = reader.U64("keys", 0, kMaxSlots);
  const uint64_t distinct_keys = reader.U64("distinct_keys", 0, n);
  const uint64_t round = reader.U64("round", 0, n == 0 ? 0 : kMaxRounds - 1);
  const uint64_t attempt = reader.U64("attempt", 0, n == 0 ? 0 : kMaxAttempts - 1);
  RibbonLayers layers;
  layers.count =
      static_cast<uint32_t>(reader.U64("layers", n == 0 ? 0 : 1, n == 0 ? 0 : RibbonLayers::kMax));
  layers.end = reader.U64("starts", n == 0 ? 0 : 1, n == 0 ? 0 : kMaxSlots);
  const uint64_t first_bucket_slots =
      WithWidth(params.width, [](auto width) { return FirstRibbonBuckets<width()>::kBucketSlots; });
  for (uint32_t layer = 1; layer < layers.count && reader.ok(); ++layer) {
    const uint64_t first = reader.U64("first_start", layers.First(layer - 1) + 1, layers.end - 1);
    if (first % (layer == 1 ? first_bucket_slots : LaterRibbonBuckets::kBucketSlots) != 0) {
      reader.Refuse("first_start", "cuts a bucket");
    }
    layers.later[layer - 1].first = first;
  }
  RibbonShape shape;
  const uint64_t slots = n == 0 ? 0 : layers.end + WidthBits(params.width) - 1;
  if (slots % 8 != 0) reader.Refuse("starts", "do not fill the last byte");
  shape.blocks = RoundUp(slots, RibbonShape::kBlockSlots) / RibbonShape::kBlockSlots;
  shape.unused_slots = shape.slots() - slots;
  shape.columns =
      static_cast<uint32_t>(reader.U64("columns", n == 0 ? 0 : 1, n == 0 ? 0 : kMaxColumns));
  shape.first_wide_block = reader.U64("first_wide_block", 0, shape.blocks);
  if (shape.columns == kMaxColumns && shape.first_wide_block < shape.blocks) {
    reader.Refuse("first_wide_block", "gives slots more than 32 columns");
  }
  if (!reader.ok()) return Error{reader.error()};
  const uint64_t level_words =
      WithWidth(params.width, [&](auto width) { return layers.LevelWords<width()>(); });
  AlignedTable table = reader.Table("table", (shape.words() + level_words) * sizeof(uint64_t));
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  BumpedRibbon filter(params, n, round, attempt, layers, shape, std::move(table));
  filter.report_.distinct_keys = distinct_keys;
  return filter;
}

}  // namespace filterbench
