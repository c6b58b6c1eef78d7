#include "filters/bloom/counting_bloom.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "filters/bloom/bit_array.h"
#include "filters/theory/bloom.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

uint64_t CountersFor(uint64_t keys, const CountingBloom::Params& params) {
  return BloomBitsFor(keys, params.bits_per_key / kCounterBits);
}

uint64_t TableBytes(uint64_t counters) {
  return (counters + kCountersPerWord - 1) / kCountersPerWord * 8;
}

uint32_t ProbesFor(const CountingBloom::Params& params) {
  if (params.k != 0) return params.k;
  return static_cast<uint32_t>(theory::ClassicBloomBestK(params.bits_per_key / kCounterBits));
}

// Whether some keys have fewer than k positions: where counters divide lcm(1..k-1), steps that come
// back to the start are not excluded (KmBloom::Step).
bool SomeWalksReturn(uint64_t counters, uint32_t k, uint64_t forbidden_divisor) {
  if (counters == 1) return true;
  if (forbidden_divisor != 1) return false;
  for (uint64_t d = 2; d < k; ++d) {
    if (counters % d == 0) return true;
  }
  return false;
}

}  // namespace

CountingBloom::CountingBloom(const Params& params, uint64_t capacity, uint64_t counters,
                             AlignedTable table)
    : params_(params),
      capacity_(capacity),
      counters_(counters),
      k_(ProbesFor(params)),
      forbidden_divisor_(theory::ForbiddenStepDivisor(counters, static_cast<int>(k_))),
      table_(std::move(table)) {
  report_ = {
      .attempts = 1, .distinct_keys = 0, .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<CountingBloom> CountingBloom::Create(uint64_t keys, const Params& params) {
  const uint64_t counters = CountersFor(keys, params);
  if (counters > kMaxCounters) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", TableBytes(counters),
                             TableBytes(kMaxCounters))};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(TableBytes(counters));
  if (!table) return Error{table.error()};
  return CountingBloom(params, keys, counters, std::move(*table));
}

Result<CountingBloom> CountingBloom::Build(std::span<const uint64_t> hashes, const Params& params) {
  Result<CountingBloom> filter = Create(hashes.size(), params);
  if (!filter) return filter;
  const View view = filter->view();
  // Far enough for a miss to be over, near enough for the lines to be still there.
  constexpr size_t kAhead = 8;
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (view.prefetch && i + kAhead < hashes.size()) {
      view.ForEachPosition(hashes[i + kAhead], [&](uint64_t position) {
        __builtin_prefetch(view.words + position / kCountersPerWord, 1);
      });
    }
    (void)filter->Insert(hashes[i]);
  }
  filter->report_.distinct_keys = hashes.size();
  return filter;
}

InsertStatus CountingBloom::Insert(uint64_t hash) {
  uint64_t* words = table_.As<uint64_t>();
  view().ForEachPosition(
      hash, [&](uint64_t position) { saturated_ += CountUp(words, position) ? 1 : 0; });
  ++keys_;
  return InsertStatus::kOk;
}

EraseStatus CountingBloom::Erase(uint64_t hash) {
  const View all = view();
  if (!all.MayContain(hash)) return EraseStatus::kNotFound;
  uint64_t* words = table_.As<uint64_t>();
  all.ForEachPosition(hash, [&](uint64_t position) { CountDown(words, position); });
  // Saturated counters can say yes where no key is left.
  keys_ -= keys_ > 0 ? 1 : 0;
  return EraseStatus::kOk;
}

Details CountingBloom::GetDetails() const {
  return {{"k", static_cast<double>(k_)},
          {"counters", static_cast<double>(counters_)},
          {"stored", static_cast<double>(keys_)},
          {"saturated_counters", static_cast<double>(saturated_)}};
}

std::optional<FprEstimate> CountingBloom::ExpectedFpr() const {
  if (!theory::DoubleHashingFprHolds(counters_, static_cast<int>(k_))) return std::nullopt;
  return theory::DoubleHashingFpr(keys_, counters_, static_cast<int>(k_), forbidden_divisor_);
}

std::optional<double> CountingBloom::TheoryFpr(double bits_per_key) {
  const double counters_per_key = bits_per_key / kCounterBits;
  return theory::ClassicBloomFpr(counters_per_key, theory::ClassicBloomBestK(counters_per_key));
}

std::vector<std::byte> CountingBloom::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<CountingBloom>(writer, params_);
  writer.U64(capacity_).U64(counters_).U64(keys_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<CountingBloom> CountingBloom::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<CountingBloom>(reader);
  const uint64_t capacity = reader.U64("capacity", 0, UINT64_MAX);
  const uint64_t counters = reader.U64("counters", 1, kMaxCounters);
  const uint64_t expected = CountersFor(capacity, params);
  if (reader.ok() && counters != expected) {
    reader.Refuse("counters", fmt::format("is {}, {} keys need {}", counters, capacity, expected));
  }
  const uint64_t keys = reader.U64("keys", 0, UINT64_MAX);
  AlignedTable table = reader.Table("table", TableBytes(counters));
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  CountingBloom filter(params, capacity, counters, std::move(table));
  const std::span<const uint64_t> words = filter.Words();
  const uint64_t in_last = counters % kCountersPerWord;
  if (in_last != 0 && words.back() >> (in_last * kCounterBits) != 0) {
    return Error{fmt::format("table: has counts beyond counter {}", counters - 1)};
  }
  filter.keys_ = keys;
  filter.saturated_ = CountSaturated(words);
  filter.report_.distinct_keys = keys;
  // Every key has counted k positions up, and nobody knows what was lost at the ceiling.
  const uint64_t sum = SumOfCounts(words);
  if (filter.saturated_ == 0 && !SomeWalksReturn(counters, filter.k_, filter.forbidden_divisor_) &&
      static_cast<unsigned __int128>(keys) * filter.k_ != sum) {
    return Error{fmt::format("keys: is {}, the counters add up to {} for {} probes each", keys, sum,
                             filter.k_)};
  }
  return filter;
}

}  // namespace filterbench
