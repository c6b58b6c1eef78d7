#include "filters/bloom/blocked.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "filters/theory.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr uint64_t kBlockBytes = BlockedBloom::kBlockBits / 8;

uint32_t ProbesFor(const BlockedBloom::Params& params) {
  if (params.k != 0) return params.k;
  return theory::BlockedBloomBestK(params.bits_per_key, BlockedBloom::kBlockBits);
}

}  // namespace

BlockedBloom::BlockedBloom(const Params& params, uint64_t n, uint64_t blocks, AlignedTable table)
    : params_(params), n_(n), blocks_(blocks), k_(ProbesFor(params)), table_(std::move(table)) {
  report_ = {.attempts = 1,
             .distinct_keys = n,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

uint64_t BlockedBloom::BlocksFor(uint64_t n, double bits_per_key) {
  const double blocks = std::ceil(static_cast<double>(n) * bits_per_key / kBlockBits);
  return static_cast<uint64_t>(std::clamp(blocks, 1.0, 0x1p62));
}

Result<BlockedBloom> BlockedBloom::Build(std::span<const uint64_t> hashes, const Params& params) {
  const uint64_t blocks = BlocksFor(hashes.size(), params.bits_per_key);
  if (blocks > kMaxBlocks) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", blocks * kBlockBytes,
                             kMaxBlocks * kBlockBytes)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(blocks * kBlockBytes);
  if (!table) return Error{table.error()};
  BlockedBloom filter(params, hashes.size(), blocks, std::move(*table));

  constexpr size_t kAhead = 32;
  const View view = filter.view();
  for (size_t i = 0; i < std::min(kAhead, hashes.size()); ++i) {
    __builtin_prefetch(view.Block(hashes[i]), 1);
  }
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (i + kAhead < hashes.size()) __builtin_prefetch(view.Block(hashes[i + kAhead]), 1);
    filter.Insert(hashes[i]);
  }
  return filter;
}

InsertStatus BlockedBloom::Insert(uint64_t hash) {
  uint32_t* block = table_.As<uint32_t>() + FastRange64(hash, blocks_) * kWordsPerBlock;
  uint32_t probe = static_cast<uint32_t>(hash);
  for (uint32_t i = 0; i < k_; ++i, probe *= kMultiplier) {
    const uint32_t position = probe >> 23;
    block[position / 32] |= uint32_t{1} << (position % 32);
  }
  return InsertStatus::kOk;
}

Details BlockedBloom::GetDetails() const {
  return {{"k", static_cast<double>(k_)}, {"blocks", static_cast<double>(blocks_)}};
}

std::optional<FprEstimate> BlockedBloom::ExpectedFpr() const {
  return theory::BlockedBloomFpr(n_, blocks_, k_, kBlockBits);
}

std::optional<double> BlockedBloom::TheoryFpr(double bits_per_key) {
  return theory::BlockedBloomFpr(
      bits_per_key, theory::BlockedBloomBestK(bits_per_key, kBlockBits), kBlockBits);
}

std::vector<std::byte> BlockedBloom::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<BlockedBloom>(writer, params_);
  writer.U64(n_).U64(blocks_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<BlockedBloom> BlockedBloom::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<BlockedBloom>(reader);
  const uint64_t n = reader.U64("keys", 0, UINT64_MAX);
  const uint64_t expected_blocks = BlocksFor(n, params.bits_per_key);
  const uint64_t blocks = reader.U64("blocks", 1, kMaxBlocks);
  if (reader.ok() && blocks != expected_blocks) {
    reader.Refuse("blocks", fmt::format("is {}, {} keys need {}", blocks, n, expected_blocks));
  }
  AlignedTable table = reader.Table("table", blocks * kBlockBytes);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  return BlockedBloom(params, n, blocks, std::move(table));
}

}  // namespace filterbench
