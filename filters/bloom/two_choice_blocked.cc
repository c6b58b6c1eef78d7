#include "filters/bloom/two_choice_blocked.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "filters/bloom/key_count.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr uint64_t kBlockBytes = kLineBits / 8;

}  // namespace

uint64_t TwoChoiceBlocked::BlocksFor(uint64_t n, const Params& params) {
  const double blocks = std::ceil(static_cast<double>(n) * params.bits_per_key / kLineBits);
  return static_cast<uint64_t>(std::clamp(blocks, 1.0, 0x1p57));
}

TwoChoiceBlocked::TwoChoiceBlocked(const Params& params, uint64_t capacity, uint64_t blocks,
                                   AlignedTable table)
    : params_(params),
      capacity_(capacity),
      blocks_(blocks),
      probes_(params.k != 0
                  ? params.k
                  : static_cast<uint32_t>(theory::TwoChoiceBestK(params.bits_per_key))),
      table_(std::move(table)) {
  report_ = {.attempts = 1,
             .distinct_keys = 0,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<TwoChoiceBlocked> TwoChoiceBlocked::Create(uint64_t keys, const Params& params) {
  const uint64_t blocks = BlocksFor(keys, params);
  if (blocks > kMaxBlocks) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", blocks * kBlockBytes,
                             kMaxBlocks * kBlockBytes)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(blocks * kBlockBytes);
  if (!table) return Error{table.error()};
  return TwoChoiceBlocked(params, keys, blocks, std::move(*table));
}

Result<TwoChoiceBlocked> TwoChoiceBlocked::Build(std::span<const uint64_t> hashes,
                                                 const Params& params) {
  Result<TwoChoiceBlocked> filter = Create(hashes.size(), params);
  if (!filter) return filter;
  filter->inserted_ = hashes.size();
  filter->report_.distinct_keys = hashes.size();
  for (const Kernel<View>& kernel : Kernels()) {
    if (kernel.insert == nullptr) continue;
    kernel.insert(filter->view(), filter->table_.data(), hashes.data(), hashes.size());
    return filter;
  }
  for (const uint64_t hash : hashes) filter->Insert(hash);
  filter->inserted_ = hashes.size();
  return filter;
}

InsertStatus TwoChoiceBlocked::Insert(uint64_t hash) {
  InsertIntoOneOf(table_.data() + FirstBlock(hash, blocks_) * kBlockBytes,
                  table_.data() + SecondBlock(hash, blocks_) * kBlockBytes, ProbeHash(hash),
                  probes_);
  ++inserted_;
  return InsertStatus::kOk;
}

std::vector<std::byte> TwoChoiceBlocked::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<TwoChoiceBlocked>(writer, params_);
  writer.U64(capacity_).U64(inserted_).U64(blocks_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<TwoChoiceBlocked> TwoChoiceBlocked::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<TwoChoiceBlocked>(reader);
  const uint64_t capacity = reader.U64("capacity", 0, UINT64_MAX);
  const uint64_t inserted = reader.U64("inserted", 0, UINT64_MAX);
  const uint64_t blocks = reader.U64("blocks", 1, kMaxBlocks);
  if (reader.ok()) {
    const uint64_t expected = BlocksFor(capacity, params);
    if (blocks != expected) {
      reader.Refuse("blocks", fmt::format("is {}, {} keys need {}", blocks, capacity, expected));
    }
  }
  AlignedTable table = reader.Table("table", reader.ok() ? blocks * kBlockBytes : 0);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  TwoChoiceBlocked filter(params, capacity, blocks, std::move(table));
  CheckKeys(reader, "inserted", inserted, filter.probes_, filter.Table());
  if (!reader.ok()) return Error{reader.error()};
  filter.inserted_ = inserted;
  return filter;
}

Details TwoChoiceBlocked::GetDetails() const {
  uint64_t set = 0;
  uint64_t fullest = 0;
  for (uint64_t block = 0; block < blocks_; ++block) {
    uint64_t in_block = 0;
    for (int w = 0; w < kLineBits / 64; ++w) {
      in_block += static_cast<uint64_t>(
          std::popcount(table_.As<uint64_t>()[block * (kLineBits / 64) + w]));
    }
    set += in_block;
    fullest = std::max(fullest, in_block);
  }
  const double bits = static_cast<double>(blocks_) * kLineBits;
  return {{"k", static_cast<double>(probes_)},
          {"blocks", static_cast<double>(blocks_)},
          {"fill", static_cast<double>(set) / bits},
          {"fullest_block_fill", static_cast<double>(fullest) / kLineBits}};
}

std::optional<FprEstimate> TwoChoiceBlocked::ExpectedFpr() const {
  return theory::TwoChoiceFpr(inserted_, blocks_, static_cast<int>(probes_));
}

std::optional<double> TwoChoiceBlocked::TheoryFpr(double bits_per_key) {
  return theory::TwoChoiceFpr(bits_per_key, theory::TwoChoiceBestK(bits_per_key));
}

}  // namespace filterbench
