#include "filters/bloom/counting_blocked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "filters/theory/blocked_bloom.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

uint32_t ProbesFor(const CountingBlocked::Params& params) {
  if (params.k != 0) return params.k;
  return static_cast<uint32_t>(theory::BlockedBloomBestK(params.bits_per_key / kCounterBits,
                                                         CountingBlocked::kBlockCounters));
}

}  // namespace

CountingBlocked::CountingBlocked(const Params& params, uint64_t capacity, uint64_t blocks,
                                 AlignedTable table)
    : params_(params),
      capacity_(capacity),
      blocks_(blocks),
      k_(ProbesFor(params)),
      table_(std::move(table)) {
  report_ = {
      .attempts = 1, .distinct_keys = 0, .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

uint64_t CountingBlocked::BlocksFor(uint64_t n, const Params& params) {
  constexpr double kBlockBits = 8.0 * kBlockBytes;
  const double blocks = std::ceil(static_cast<double>(n) * params.bits_per_key / kBlockBits);
  return static_cast<uint64_t>(std::clamp(blocks, 1.0, 0x1p57));
}

Result<CountingBlocked> CountingBlocked::Create(uint64_t keys, const Params& params) {
  const uint64_t blocks = BlocksFor(keys, params);
  if (blocks > kMaxBlocks) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", blocks * kBlockBytes,
                             kMaxBlocks * kBlockBytes)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(blocks * kBlockBytes);
  if (!table) return Error{table.error()};
  return CountingBlocked(params, keys, blocks, std::move(*table));
}

Result<CountingBlocked> CountingBlocked::Build(std::span<const uint64_t> hashes,
                                               const Params& params) {
  Result<CountingBlocked> filter = Create(hashes.size(), params);
  if (!filter) return filter;
  const View view = filter->view();
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (view.prefetch && i + kAhead < hashes.size()) {
      __builtin_prefetch(view.words + view.WordOf(hashes[i + kAhead]), 1);
    }
    (void)filter->Insert(hashes[i]);
  }
  filter->report_.distinct_keys = hashes.size();
  return filter;
}

InsertStatus CountingBlocked::Insert(uint64_t hash) {
  const View all = view();
  uint64_t* block = table_.As<uint64_t>() + all.WordOf(hash);
  all.ForEachPosition(hash,
                      [&](uint32_t position) { saturated_ += CountUp(block, position) ? 1 : 0; });
  ++keys_;
  return InsertStatus::kOk;
}

EraseStatus CountingBlocked::Erase(uint64_t hash) {
  const View all = view();
  if (!all.MayContain(hash)) return EraseStatus::kNotFound;
  uint64_t* block = table_.As<uint64_t>() + all.WordOf(hash);
  all.ForEachPosition(hash, [&](uint32_t position) { CountDown(block, position); });
  // Saturated counters, and keys erased that were not inserted, can leave a yes without a key.
  keys_ -= keys_ > 0 ? 1 : 0;
  return EraseStatus::kOk;
}

Details CountingBlocked::GetDetails() const {
  return {{"k", static_cast<double>(k_)},
          {"blocks", static_cast<double>(blocks_)},
          {"stored", static_cast<double>(keys_)},
          {"saturated_counters", static_cast<double>(saturated_)}};
}

std::optional<FprEstimate> CountingBlocked::ExpectedFpr() const {
  // With more keys in each block than that the rate is 1.
  constexpr uint64_t kFullLoad = 4096;
  const uint64_t keys = std::min(keys_, blocks_ * kFullLoad);
  return theory::BlockedBloomFpr(keys, blocks_, static_cast<int>(k_), kBlockCounters);
}

std::optional<double> CountingBlocked::TheoryFpr(double bits_per_key) {
  const double counters_per_key = bits_per_key / kCounterBits;
  return theory::BlockedBloomFpr(counters_per_key,
                                 theory::BlockedBloomBestK(counters_per_key, kBlockCounters),
                                 kBlockCounters);
}

std::vector<std::byte> CountingBlocked::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<CountingBlocked>(writer, params_);
  writer.U64(capacity_).U64(blocks_).U64(keys_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<CountingBlocked> CountingBlocked::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<CountingBlocked>(reader);
  const uint64_t capacity = reader.U64("capacity", 0, UINT64_MAX);
  const uint64_t blocks = reader.U64("blocks", 1, kMaxBlocks);
  const uint64_t expected = BlocksFor(capacity, params);
  if (reader.ok() && blocks != expected) {
    reader.Refuse("blocks", fmt::format("is {}, {} keys need {}", blocks, capacity, expected));
  }
  const uint64_t keys = reader.U64("keys", 0, UINT64_MAX);
  AlignedTable table = reader.Table("table", blocks * kBlockBytes);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  CountingBlocked filter(params, capacity, blocks, std::move(table));
  filter.keys_ = keys;
  filter.saturated_ = CountSaturated({filter.table_.As<uint64_t>(), filter.table_.size() / 8});
  filter.report_.distinct_keys = keys;
  // Counters at the ceiling stay when their keys are erased.
  const std::span<const uint64_t> words(filter.table_.As<uint64_t>(), filter.table_.size() / 8);
  if (keys == 0 && filter.saturated_ == 0 && SumOfCounts(words) != 0) {
    return Error{fmt::format("keys: is 0, the counters add up to {}", SumOfCounts(words))};
  }
  return filter;
}

}  // namespace filterbench
