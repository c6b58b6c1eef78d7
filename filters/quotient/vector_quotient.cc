#include "filters/quotient/vector_quotient.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "filters/quotient/build.h"
#include "filters/theory/quotient.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr uint64_t kBlockBytes = MiniFilter<8>::kBytes;

uint64_t SlotsPerBlock(VectorQuotient::FingerprintBits bits) {
  return bits == VectorQuotient::FingerprintBits::k8 ? MiniFilter<8>::kSlots
                                                     : MiniFilter<16>::kSlots;
}

// Calls `use` with a writer for the filter's width of remainders.
template <class Use>
decltype(auto) WithWriter(const VectorQuotient::View& view, std::byte* table, Use&& use) {
  return view.Specialize([&]<class SizedView>(const SizedView& sized) {
    return use(MiniFilterWriter<SizedView::kRemainderBits>(table, sized));
  });
}

}  // namespace

VectorQuotient::VectorQuotient(const Params& params, uint64_t blocks, uint64_t attempt,
                               AlignedTable table)
    : params_(params),
      blocks_(blocks),
      attempt_(attempt),
      salt_(QuotientSalt(params.seed, attempt)),
      table_(std::move(table)) {
  report_ = {.attempts = attempt + 1,
             .distinct_keys = 0,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

uint64_t VectorQuotient::BlocksFor(uint64_t n, const Params& params) {
  const double load = params.fingerprint_bits == FingerprintBits::k8
                          ? params.load
                          : std::min(params.load, kMaxLoadOf16Bits);
  const double slots = static_cast<double>(n) / load;
  const double blocks =
      std::ceil(slots / static_cast<double>(SlotsPerBlock(params.fingerprint_bits)));
  return static_cast<uint64_t>(std::clamp(blocks, 1.0, 0x1p62));
}

Result<VectorQuotient> VectorQuotient::CreateForAttempt(uint64_t keys, const Params& params,
                                                        uint64_t attempt) {
  const uint64_t blocks = BlocksFor(keys, params);
  if (blocks > kMaxMiniFilters) {
    return Error{fmt::format("too large: needs {} bytes, limit {}",
                             static_cast<unsigned __int128>(blocks) * kBlockBytes,
                             kMaxMiniFilters * kBlockBytes)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(blocks * kBlockBytes);
  if (!table) return Error{table.error()};
  return VectorQuotient(params, blocks, attempt, std::move(*table));
}

Result<VectorQuotient> VectorQuotient::Create(uint64_t keys, const Params& params) {
  return CreateForAttempt(keys, params, 0);
}

Result<VectorQuotient> VectorQuotient::Build(std::span<const uint64_t> hashes,
                                             const Params& params) {
  return BuildByAttempts<VectorQuotient>(
      hashes.size(),
      [&](uint64_t keys, uint64_t attempt) { return CreateForAttempt(keys, params, attempt); },
      [&](VectorQuotient& filter, uint64_t& bytes) {
        return WithWriter(filter.view(), filter.table_.data(), [&](const auto& writer) {
          return InsertDistinct(writer, hashes, filter.view().prefetch, filter.stored_, bytes);
        });
      });
}

InsertStatus VectorQuotient::Insert(uint64_t hash) {
  const bool inserted = WithWriter(view(), table_.data(), [hash](const auto& writer) {
    return writer.Insert(writer.PlaceOf(hash));
  });
  stored_ += inserted ? 1 : 0;
  return inserted ? InsertStatus::kOk : InsertStatus::kFull;
}

EraseStatus VectorQuotient::Erase(uint64_t hash) {
  const bool erased = WithWriter(view(), table_.data(), [hash](const auto& writer) {
    return writer.Erase(writer.PlaceOf(hash));
  });
  stored_ -= erased ? 1 : 0;
  return erased ? EraseStatus::kOk : EraseStatus::kNotFound;
}

double VectorQuotient::Load() const {
  return static_cast<double>(stored_) /
         static_cast<double>(blocks_ * SlotsPerBlock(params_.fingerprint_bits));
}

Details VectorQuotient::GetDetails() const {
  return {{"load", Load()},
          {"slots", static_cast<double>(blocks_ * SlotsPerBlock(params_.fingerprint_bits))},
          {"blocks", static_cast<double>(blocks_)},
          {"stored", static_cast<double>(stored_)}};
}

std::optional<FprEstimate> VectorQuotient::ExpectedFpr() const {
  const uint64_t tags = params_.fingerprint_bits == FingerprintBits::k8 ? MiniFilter<8>::kTags
                                                                        : MiniFilter<16>::kTags;
  return theory::VectorQuotientFpr(stored_, blocks_, static_cast<double>(tags));
}

std::optional<double> VectorQuotient::TheoryFpr(double bits_per_key) {
  using Block = MiniFilter<8>;
  const double load = Params{}.load;
  const double metadata_bits = 8.0 * Block::kMetadataBytes / Block::kSlots;
  return theory::VectorQuotientFpr(bits_per_key * load - metadata_bits, load, Block::kSlots,
                                   Block::kBuckets);
}

std::vector<std::byte> VectorQuotient::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<VectorQuotient>(writer, params_);
  writer.U64(blocks_).U64(attempt_).U64(stored_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<VectorQuotient> VectorQuotient::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<VectorQuotient>(reader);
  const uint64_t blocks = reader.U64("blocks", 1, kMaxMiniFilters);
  const uint64_t attempt = reader.U64("attempt", 0, kQuotientAttempts - 1);
  const uint64_t stored =
      reader.U64("stored", 0, blocks * SlotsPerBlock(params.fingerprint_bits));
  AlignedTable table = reader.Table("table", blocks * kBlockBytes);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};

  VectorQuotient filter(params, blocks, attempt, std::move(table));
  filter.stored_ = stored;
  filter.report_.distinct_keys = stored;
  const std::string problem = filter.view().Specialize([stored](const auto& view) {
    return view.WhatIsInconsistent(stored);
  });
  if (!problem.empty()) {
    reader.Refuse("table", problem);
    return Error{reader.error()};
  }
  return filter;
}

}  // namespace filterbench
