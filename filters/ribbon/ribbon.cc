#include "filters/ribbon/ribbon.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "filters/out_of_memory.h"
#include "filters/ribbon/sizing.h"
#include "filters/theory/ribbon.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 2;  // 1 had all columns in words of 64 slots
constexpr uint64_t kWordBits = 64;

// Real number of columns that the request amounts to in a homogeneous filter, whose slots per key
// depend on it: for bits per key b the positive root of
// columns * HomogeneousRibbonSlotsPerKey(columns, width) = b.
double HomogeneousColumns(const RibbonRequest& request, double width) {
  if (request.columns != 0) return request.columns;
  if (request.fpr != 0) {
    const auto [columns, wide_share] = RibbonColumnsForFpr(request.fpr);
    return columns + wide_share;
  }
  const double half = 1 + 4 / width;
  return 2 * width * (std::sqrt(half * half + request.bits_per_key / width) - half);
}

double SlotsFor(uint64_t n, const RibbonRequest& request, const Ribbon::Params& params) {
  const double keys = static_cast<double>(n);
  const int width = static_cast<int>(Ribbon::WidthBits(params.width));
  if (params.system == Ribbon::System::kStandard) {
    // Few keys are a dense system: a random one with 8 columns more than rows has full rank with a
    // probability of more than 1 - 2^-8, and borders take a little more.
    constexpr double kSpareSlots = 8;
    return std::max(keys * theory::RibbonSlotsPerKey(n, width), keys + kSpareSlots);
  }
  return keys * theory::HomogeneousRibbonSlotsPerKey(HomogeneousColumns(request, width), width) +
         theory::HomogeneousRibbonExtraSlots(width);
}

// Distinct hashes among `hashes`, of which those in `redundant` (mixed) are all whose equal came
// before, and perhaps a few that are distinct, but whose rows follow from others.
uint64_t CountDistinct(std::span<const uint64_t> hashes, uint64_t salt,
                       std::vector<uint64_t>& redundant) {
  if (redundant.empty()) return hashes.size();
  std::sort(redundant.begin(), redundant.end());
  redundant.erase(std::unique(redundant.begin(), redundant.end()), redundant.end());
  uint64_t occurrences = 0;
  for (const uint64_t hash : hashes) {
    occurrences +=
        std::binary_search(redundant.begin(), redundant.end(), RibbonHash::Mix(hash, salt)) ? 1 : 0;
  }
  return hashes.size() - (occurrences - redundant.size());
}

}  // namespace

std::string Ribbon::Contradiction(const Params& params) {
  const Result<RibbonRequest> request = RibbonRequest::Of(params);
  return request ? std::string() : request.error();
}

Result<RibbonShape> Ribbon::ShapeFor(uint64_t n, const Params& params, uint64_t enlargements) {
  const Result<RibbonRequest> request = RibbonRequest::Of(params);
  if (!request) return Error{request.error()};
  if (n == 0) return RibbonShape{.blocks = 0, .columns = 1, .first_wide_block = 0};

  const uint64_t min_blocks = WidthBits(params.width) / RibbonShape::kBlockSlots;
  const double wanted_blocks = std::ceil(SlotsFor(n, *request, params) / RibbonShape::kBlockSlots);
  constexpr uint64_t kMaxBlocks = kMaxSlots / RibbonShape::kBlockSlots;
  const auto too_many_slots = [](double blocks) {
    return Error{fmt::format("too large: needs {:.0f} slots, limit {}",
                             blocks * RibbonShape::kBlockSlots, kMaxSlots)};
  };
  if (wanted_blocks > static_cast<double>(kMaxBlocks)) return too_many_slots(wanted_blocks);
  uint64_t blocks = std::max(static_cast<uint64_t>(wanted_blocks), min_blocks);
  blocks += enlargements * std::max<uint64_t>(1, blocks / 32);

  RibbonShape shape{.blocks = blocks, .columns = 1, .first_wide_block = blocks};
  if (request->bits_per_key != 0) {
    const auto words =
        static_cast<uint64_t>(static_cast<double>(n) * request->bits_per_key / kWordBits);
    if (words >= blocks) {
      shape.columns = static_cast<uint32_t>(words / blocks);
      shape.first_wide_block = blocks - words % blocks;
    }
  } else if (request->columns != 0) {
    const double whole = std::floor(request->columns);
    shape.columns = static_cast<uint32_t>(whole);
    shape.first_wide_block =
        blocks - static_cast<uint64_t>((request->columns - whole) * static_cast<double>(blocks));
  } else {
    const auto [columns, wide_share] = RibbonColumnsForFpr(request->fpr);
    shape.columns = columns;
    const auto narrow_starts = static_cast<uint64_t>(
        (1 - wide_share) * static_cast<double>(StartsFor(shape, params.width)));
    if (wide_share > 0) shape.first_wide_block = narrow_starts / RibbonShape::kBlockSlots;
    if (shape.first_wide_block == 0) {
      ++shape.columns;
      shape.first_wide_block = blocks;
    }
  }
  const double bytes = static_cast<double>(shape.words()) * sizeof(uint64_t);
  if (blocks > kMaxBlocks) return too_many_slots(static_cast<double>(blocks));
  if (bytes > static_cast<double>(kMaxTableBytes)) {
    return Error{fmt::format("too large: needs {:.0f} bytes, limit {}", bytes, kMaxTableBytes)};
  }
  return shape;
}

Ribbon::Ribbon(const Params& params, uint64_t n, uint64_t attempt, const RibbonShape& shape,
               AlignedTable table)
    : params_(params),
      n_(n),
      attempt_(attempt),
      shape_(shape),
      starts_(StartsFor(shape, params.width)),
      salt_(RibbonHash::Salt(params.seed, attempt)),
      table_(std::move(table)) {
  report_ = {.attempts = attempt + 1,
             .distinct_keys = n,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<Ribbon> Ribbon::Build(std::span<const uint64_t> hashes, const Params& params) try {
  const bool homogeneous = params.system == System::kHomogeneous;
  if (params.width == Width::k64) {
    return homogeneous ? BuildAs<uint64_t, true>(hashes, params)
                       : BuildAs<uint64_t, false>(hashes, params);
  }
  return homogeneous ? BuildAs<RibbonRow128, true>(hashes, params)
                     : BuildAs<RibbonRow128, false>(hashes, params);
} catch (const std::bad_alloc&) {
  return Error{kOutOfMemory};
}

template <class Row, bool kHomogeneous>
Result<Ribbon> Ribbon::BuildAs(std::span<const uint64_t> hashes, const Params& params) {
  using Outcome = typename Banding<Row>::Outcome;
  std::vector<uint64_t> redundant;
  for (uint64_t enlargements = 0; enlargements <= kMaxEnlargements; ++enlargements) {
    const Result<RibbonShape> shape = ShapeFor(hashes.size(), params, enlargements);
    if (!shape) return Error{shape.error()};
    Result<Banding<Row>> banding = Banding<Row>::Allocate(shape->slots(), !kHomogeneous);
    if (!banding) return Error{banding.error()};
    std::optional<RibbonKeyOrder> order(std::in_place, shape->slots());
    const uint64_t starts = StartsFor(*shape, params.width);
    const auto result_mask = static_cast<uint32_t>((uint64_t{1} << shape->max_columns()) - 1);

    for (uint64_t i = 0; i < kAttemptsPerSize; ++i) {
      const uint64_t attempt = enlargements * kAttemptsPerSize + i;
      const uint64_t salt = RibbonHash::Salt(params.seed, attempt);
      if (i != 0) banding->Clear();
      redundant.clear();
      const auto add = [&](uint64_t mixed) {
        const RibbonHash equation(mixed);
        const Outcome outcome = banding->template Add<!kHomogeneous>(
            RibbonHash::Start(mixed, starts),
            shape->planes() == 0 ? equation.template CoefficientRow<Row>()
                                 : equation.template ByteCoefficientRow<Row>(),
            kHomogeneous ? 0 : equation.template ResultRow<Row>() & result_mask);
        if (outcome == Outcome::kRedundant) redundant.push_back(mixed);
        return outcome != Outcome::kInconsistent;
      };
      const auto mix = [salt](uint64_t hash) { return RibbonHash::Mix(hash, salt); };
      bool consistent;
      if (order->regions() == 1) {
        consistent = std::all_of(hashes.begin(), hashes.end(),
                                 [&](uint64_t hash) { return add(mix(hash)); });
      } else {
        const auto start_of = [starts](uint64_t mixed) { return RibbonHash::Start(mixed, starts); };
        if (const auto error = order->Order(hashes, mix, start_of)) return *error;
        consistent = std::all_of(order->All().begin(), order->All().end(), add);
      }
      if (!consistent) continue;

      const uint64_t redundant_bytes = redundant.capacity() * sizeof(uint64_t);
      const uint64_t banding_peak =
          banding->AllocatedBytes() + order->AllocatedBytes() + redundant_bytes;
      order.reset();
      Result<AlignedTable> table = AlignedTable::Allocate(shape->words() * sizeof(uint64_t));
      if (!table) return Error{table.error()};
      const uint64_t solving_peak =
          banding->AllocatedBytes() + table->allocated_bytes() + redundant_bytes;
      banding->Solve(*shape, kHomogeneous, salt, table->As<uint64_t>());
      Ribbon filter(params, hashes.size(), attempt, *shape, std::move(*table));
      filter.report_.distinct_keys = CountDistinct(hashes, salt, redundant);
      filter.report_.peak_bytes = std::max(banding_peak, solving_peak) + sizeof(filter);
      return filter;
    }
  }
  return Error{fmt::format("no seed works: tried {} for {} keys, with up to {} slots",
                           kAttemptsPerSize * (kMaxEnlargements + 1), hashes.size(),
                           ShapeFor(hashes.size(), params, kMaxEnlargements)->slots())};
}

Details Ribbon::GetDetails() const {
  Details details = {
      {"slots", static_cast<double>(shape_.slots())},
      {"columns_low", static_cast<double>(shape_.columns)},
      {"columns_high", static_cast<double>(shape_.max_columns())},
      {"attempts", static_cast<double>(attempt_ + 1)},
  };
  if (n_ != 0) {
    const double slots = static_cast<double>(shape_.slots());
    details.push_back({"columns", static_cast<double>(shape_.words()) * kWordBits / slots});
    details.push_back({"slots_per_key", slots / static_cast<double>(n_)});
  }
  return details;
}

std::optional<FprEstimate> Ribbon::ExpectedFpr() const {
  if (n_ == 0) return FprEstimate{};
  const uint64_t narrow_starts =
      std::min(starts_, shape_.first_wide_block * RibbonShape::kBlockSlots);
  const double wide_share =
      static_cast<double>(starts_ - narrow_starts) / static_cast<double>(starts_);
  const int columns = static_cast<int>(shape_.columns);
  if (params_.system == System::kStandard) {
    return FprEstimate{theory::RibbonFpr(columns, wide_share)};
  }
  return theory::HomogeneousRibbonFpr(n_, columns, wide_share,
                                      static_cast<int>(WidthBits(params_.width)));
}

std::optional<double> Ribbon::TheoryFpr(double bits_per_key) {
  const double columns = bits_per_key / theory::RibbonSlotsPerKey(1'000'000, 128);
  if (!(columns >= 1 && columns <= kMaxColumns)) return std::nullopt;
  return theory::RibbonFpr(columns);
}

std::vector<std::byte> Ribbon::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<Ribbon>(writer, params_);
  writer.U64(n_).U64(report_.distinct_keys).U64(attempt_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<Ribbon> Ribbon::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<Ribbon>(reader);
  const uint64_t n = reader.U64("keys", 0, UINT64_MAX);
  const uint64_t distinct_keys = reader.U64("distinct_keys", 0, n);
  const uint64_t attempt = reader.U64("attempt", 0, kAttemptsPerSize * (kMaxEnlargements + 1) - 1);
  RibbonShape shape;
  if (reader.ok()) {
    const Result<RibbonShape> expected = ShapeFor(n, params, attempt / kAttemptsPerSize);
    if (expected) {
      shape = *expected;
    } else {
      reader.Refuse("keys", expected.error());
    }
  }
  AlignedTable table = reader.Table("table", shape.words() * sizeof(uint64_t));
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  Ribbon filter(params, n, attempt, shape, std::move(table));
  filter.report_.distinct_keys = distinct_keys;
  return filter;
}

}  // namespace filterbench
