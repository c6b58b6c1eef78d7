#include "filters/quotient/prefix_filter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "filters/quotient/build.h"
#include "filters/quotient/vector_quotient.h"
#include "filters/theory/quotient.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr uint64_t kMaxBins = (uint64_t{1} << 32) - 1;

uint64_t SpareOffset(uint64_t bins) {
  return (bins * PrefixBin::kBytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

// Keys beyond the 25th of a bin that receives `mean` keys by the Poisson law, in the mean: the sum
// of P(X >= j) over j > 25. Layouts follow from it, so it is made of sums, products and quotients
// that are the same everywhere, and in an order that leaves nothing to be fused.
double MeanOverflow(double mean) {
  constexpr int kTerms = 160;  // nothing is left beyond them at a mean of 25
  double weights[kTerms];      // mean^j / j!
  double weight = 1;
  double total = 0;
  for (int j = 0; j < kTerms; ++j) {
    weights[j] = weight;
    total += weight;
    weight = weight * mean / (j + 1);
  }
  double tail = 0;
  double sum_of_tails = 0;
  for (int j = kTerms - 1; j > PrefixBin::kSlots; --j) {
    tail += weights[j];
    sum_of_tails += tail;
  }
  return sum_of_tails / total;
}

}  // namespace

// Changes the bins and the spare.
class PrefixFilter::Writer {
 public:
  explicit Writer(PrefixFilter& filter)
      : filter_(filter),
        view_(filter.view()),
        spare_(filter.table_.data() + SpareOffset(view_.bins), view_.spare) {}

  Place PlaceOf(uint64_t hash) const { return view_.PlaceOf(hash); }
  void Prefetch(const Place& place) const { __builtin_prefetch(At(place.bin), 1); }
  bool Contains(const Place& place) const { return view_.Contains(place); }
  bool Insert(const Place& place) const {
    const uint64_t overflow = PrefixBin::Overflow(At(place.bin), place.fingerprint);
    if (overflow != PrefixBin::kFingerprints) {
      if (!spare_.Insert(spare_.PlaceOf(SpareHash({place.bin, overflow})))) return false;
      ++filter_.stored_in_spare_;
    }
    // While a bin overflows, its greatest fingerprint falls.
    const uint64_t passed_on_before = PrefixBin::PassedOn(At(place.bin));
    PrefixBin::Insert(At(place.bin), place.fingerprint);
    filter_.passed_on_ += PrefixBin::PassedOn(At(place.bin)) - passed_on_before;
    return true;
  }

 private:
  std::byte* At(uint64_t bin) const { return filter_.table_.data() + bin * PrefixBin::kBytes; }

  PrefixFilter& filter_;
  View view_;
  MiniFilterWriter<kSpareRemainderBits> spare_;
};

PrefixFilter::PrefixFilter(const Params& params, const Sizes& sizes, uint64_t attempt,
                           AlignedTable table)
    : params_(params),
      sizes_(sizes),
      attempt_(attempt),
      salt_(QuotientSalt(params.seed, attempt)),
      table_(std::move(table)) {
  report_ = {.attempts = attempt + 1,
             .distinct_keys = 0,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

PrefixFilter::View PrefixFilter::view() const {
  const std::byte* spare = table_.data() + SpareOffset(sizes_.bins);
  return {table_.data(), sizes_.bins, salt_,
          Spare{spare, sizes_.spare_blocks, salt_, PrefetchPays(table_.size())},
          PrefetchPays(table_.size())};
}

uint64_t PrefixFilter::Sizes::TableBytes() const {
  if (bins > kMaxBins || spare_blocks > kMaxMiniFilters) return UINT64_MAX;
  return SpareOffset(bins) + spare_blocks * Spare::Block::kBytes;
}

PrefixFilter::Sizes PrefixFilter::SizesFor(uint64_t n, double load) {
  const double slots = static_cast<double>(n) / load;
  const double bins = std::clamp(std::ceil(slots / PrefixBin::kSlots), 1.0, 0x1p62);
  const double overflow = bins * MeanOverflow(static_cast<double>(n) / bins);
  // The number of overflowing keys of a bin has a variance of at most 5.4 times its mean for loads
  // up to 1: seven roots of the mean are three deviations. Some more where means are small.
  const double spread = std::ceil(7 * std::sqrt(overflow));
  const double spare_keys = std::min(std::ceil(overflow) + spread + 16, static_cast<double>(n));
  const VectorQuotient::Params spare;
  return {static_cast<uint64_t>(bins),
          VectorQuotient::BlocksFor(static_cast<uint64_t>(spare_keys), spare)};
}

Result<PrefixFilter> PrefixFilter::CreateForAttempt(uint64_t keys, const Params& params,
                                                    uint64_t attempt) {
  const Sizes sizes = SizesFor(keys, params.load);
  const uint64_t bytes = sizes.TableBytes();
  if (bytes > kMaxTableBytes) {
    using Wide = unsigned __int128;
    const Wide needed = bytes != UINT64_MAX
                            ? Wide{bytes}
                            : Wide{sizes.bins} * PrefixBin::kBytes +
                                  Wide{sizes.spare_blocks} * Spare::Block::kBytes;
    return Error{fmt::format("too large: needs {} bytes, limit {}", needed, kMaxTableBytes)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(bytes);
  if (!table) return Error{table.error()};
  return PrefixFilter(params, sizes, attempt, std::move(*table));
}

Result<PrefixFilter> PrefixFilter::Create(uint64_t keys, const Params& params) {
  return CreateForAttempt(keys, params, 0);
}

Result<PrefixFilter> PrefixFilter::Build(std::span<const uint64_t> hashes, const Params& params) {
  return BuildByAttempts<PrefixFilter>(
      hashes.size(),
      [&](uint64_t keys, uint64_t attempt) { return CreateForAttempt(keys, params, attempt); },
      [&](PrefixFilter& filter, uint64_t& bytes) {
        return InsertDistinct(Writer(filter), hashes, filter.view().prefetch, filter.stored_,
                              bytes);
      });
}

InsertStatus PrefixFilter::Insert(uint64_t hash) {
  const Writer writer(*this);
  if (!writer.Insert(writer.PlaceOf(hash))) return InsertStatus::kFull;
  ++stored_;
  return InsertStatus::kOk;
}

Details PrefixFilter::GetDetails() const {
  const double slots = static_cast<double>(sizes_.bins) * PrefixBin::kSlots;
  const double spare_slots = static_cast<double>(sizes_.spare_blocks) * Spare::Block::kSlots;
  return {{"load", static_cast<double>(stored_) / slots},
          {"bins", static_cast<double>(sizes_.bins)},
          {"stored", static_cast<double>(stored_)},
          {"spare_blocks", static_cast<double>(sizes_.spare_blocks)},
          {"spare_stored", static_cast<double>(stored_in_spare_)},
          {"spare_load", static_cast<double>(stored_in_spare_) / spare_slots},
          {"forwarded_share", static_cast<double>(passed_on_) /
                                  static_cast<double>(sizes_.bins * PrefixBin::kFingerprints)}};
}

std::optional<FprEstimate> PrefixFilter::ExpectedFpr() const {
  const FprEstimate spare =
      theory::VectorQuotientFpr(stored_in_spare_, sizes_.spare_blocks, Spare::Block::kTags);
  const double forwarded = static_cast<double>(passed_on_) /
                           static_cast<double>(sizes_.bins * PrefixBin::kFingerprints);
  return theory::PrefixFilterFpr(stored_, sizes_.bins, PrefixBin::kFingerprints, forwarded, spare);
}

std::optional<double> PrefixFilter::TheoryFpr(double bits_per_key) {
  using Block = Spare::Block;
  const double load = Params{}.load;
  const double spare_load = VectorQuotient::Params{}.load;
  const auto many_keys = uint64_t{1} << 40;
  const auto many_bins =
      static_cast<uint64_t>(static_cast<double>(many_keys) / load / PrefixBin::kSlots);
  const theory::ForwardedShare forwarded =
      theory::PrefixForwardedShare(many_keys, many_bins, PrefixBin::kSlots);
  // Bits per key are remainder_bits (1 / load + overflow / spare_load) and those of the metadata.
  const double metadata_bits =
      8.0 * PrefixBin::kBytes / PrefixBin::kSlots - PrefixBin::kRemainderBits;
  const double spare_metadata_bits = 8.0 * Block::kMetadataBytes / Block::kSlots;
  const double spare_slots = forwarded.overflowing_keys / spare_load;
  const double remainder_bits =
      (bits_per_key - metadata_bits / load - spare_metadata_bits * spare_slots) /
      (1 / load + spare_slots);
  const double equal = theory::QuotientFpr(remainder_bits, load);
  return equal + (1 - equal) * forwarded.mean *
                     theory::VectorQuotientFpr(remainder_bits, spare_load, Block::kSlots,
                                               Block::kBuckets);
}

std::vector<std::byte> PrefixFilter::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<PrefixFilter>(writer, params_);
  writer.U64(sizes_.bins)
      .U64(sizes_.spare_blocks)
      .U64(attempt_)
      .U64(stored_)
      .U64(stored_in_spare_)
      .Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<PrefixFilter> PrefixFilter::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<PrefixFilter>(reader);
  Sizes sizes;
  sizes.bins = reader.U64("bins", 1, kMaxBins);
  sizes.spare_blocks = reader.U64("spare_blocks", 1, kMaxMiniFilters);
  const uint64_t attempt = reader.U64("attempt", 0, kQuotientAttempts - 1);
  const uint64_t stored = reader.U64("stored", 0, UINT64_MAX);
  const uint64_t stored_in_spare = reader.U64("stored_in_spare", 0, stored);
  AlignedTable table = reader.Table("table", sizes.TableBytes());
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};

  PrefixFilter filter(params, sizes, attempt, std::move(table));
  filter.stored_ = stored;
  filter.stored_in_spare_ = stored_in_spare;
  filter.report_.distinct_keys = stored;
  uint64_t in_bins = 0;
  for (uint64_t i = 0; i < sizes.bins; ++i) {
    const std::byte* bin = filter.table_.data() + i * PrefixBin::kBytes;
    if (!PrefixBin::IsConsistent(bin)) {
      return Error{fmt::format("table: bin {} is inconsistent", i)};
    }
    in_bins += static_cast<uint64_t>(PrefixBin::Count(PrefixBin::Load(bin)));
    filter.passed_on_ += PrefixBin::PassedOn(bin);
  }
  if (in_bins != stored - stored_in_spare) {
    return Error{fmt::format("table: bins hold {} keys, {} are stored", in_bins,
                             stored - stored_in_spare)};
  }
  const std::string problem = filter.view().spare.WhatIsInconsistent(stored_in_spare);
  if (!problem.empty()) return Error{fmt::format("table: spare: {}", problem)};
  return filter;
}

}  // namespace filterbench
