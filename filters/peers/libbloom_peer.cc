#include "filters/peers/libbloom_peer.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include "filters/bloom/key_count.h"
#include "filters/theory/bloom.h"
#include "filters/theory/systems.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;
constexpr uint64_t kMinKeys = 1000;  // bloom_init refuses fewer

// As bloom_init has it.
constexpr double kLn2Squared = 0.480453013918201;

int ProbesFor(double bits_per_key) {
  return static_cast<int>(std::ceil(std::numbers::ln2 * bits_per_key));
}

}  // namespace

void LibBloomPeer::Free::operator()(bloom* filter) const {
  bloom_free(filter);
  delete filter;
}

LibBloomPeer::LibBloomPeer(const Params& params, uint64_t capacity, uint64_t keys, Handle filter)
    : params_(params), capacity_(capacity), keys_(keys), filter_(std::move(filter)) {
  report_ = {.attempts = 1, .distinct_keys = keys, .peak_bytes = AllocatedBytes()};
}

Result<LibBloomPeer> LibBloomPeer::Create(uint64_t keys, const Params& params) {
  const uint64_t entries = std::max(keys, kMinKeys);
  const double bits = static_cast<double>(entries) * params.bits_per_key;
  // One bit to spare for the rounding of the rate and back.
  if (bits + 1 >= INT_MAX) {
    return Error{
        fmt::format("too large: needs {:.0f} bytes, limit {} (libbloom counts bits in int)",
                    bits / 8, INT_MAX / 8)};
  }
  Handle filter(new bloom{});
  if (bloom_init(filter.get(), static_cast<int>(entries),
                 std::exp(-params.bits_per_key * kLn2Squared)) != 0) {
    return Error{fmt::format("out of memory: bloom_init cannot allocate {:.0f} bytes", bits / 8)};
  }
  return LibBloomPeer(params, keys, 0, std::move(filter));
}

void LibBloomPeer::Add(const void* key, size_t bytes) {
  bloom_add(filter_.get(), key, static_cast<int>(bytes));
  report_.distinct_keys = ++keys_;
}

Result<LibBloomPeer> LibBloomPeer::Build(std::span<const uint64_t> values, const Params& params) {
  Result<LibBloomPeer> filter = Create(values.size(), params);
  if (filter) filter->InsertAll(values);
  return filter;
}

Result<LibBloomPeer> LibBloomPeer::BuildFromBytes(ByteKeys keys, const Params& params) {
  Result<LibBloomPeer> filter = Create(keys.size, params);
  if (!filter) return filter;
  for (size_t i = 0; i < keys.size; ++i) filter->Add(keys[i].data(), keys[i].size());
  return filter;
}

InsertStatus LibBloomPeer::Insert(uint64_t value) {
  Add(&value, sizeof(value));
  return InsertStatus::kOk;
}

void LibBloomPeer::InsertAll(std::span<const uint64_t> values, unsigned /*threads*/) {
  for (const uint64_t value : values) Add(&value, sizeof(value));
}

std::span<const Kernel<LibBloomPeer::View>> LibBloomPeer::Kernels() {
  static const auto kernels = ScalarKernels<View>();
  return kernels;
}

Details LibBloomPeer::GetDetails() const {
  return {{"k", static_cast<double>(filter_->hashes)},
          {"bits", static_cast<double>(filter_->bits)}};
}

std::optional<FprEstimate> LibBloomPeer::ExpectedFpr() const {
  return theory::WordProbesFpr(keys_, static_cast<uint64_t>(filter_->bits), filter_->hashes, 32,
                               theory::WordSequence::kPlain);
}

std::optional<double> LibBloomPeer::TheoryFpr(double bits_per_key) {
  return theory::ClassicBloomFpr(bits_per_key, ProbesFor(bits_per_key));
}

std::vector<std::byte> LibBloomPeer::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<LibBloomPeer>(writer, params_);
  writer.U64(capacity_).U64(keys_).Bytes(Table());
  return std::move(writer).Finish();
}

Result<LibBloomPeer> LibBloomPeer::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<LibBloomPeer>(reader);
  const uint64_t capacity = reader.U64("capacity", 0, INT_MAX);
  const uint64_t keys = reader.U64("keys", 0, UINT64_MAX);
  if (!reader.ok()) return Error{reader.error()};
  // The input holds a table before the library is asked for one.
  const double bytes = std::max(static_cast<double>(capacity), 1.0 * kMinKeys) *
                       params.bits_per_key / 8;
  if (bytes > static_cast<double>(wire.size()) + 8) {
    reader.Refuse("capacity", fmt::format("{} keys need {:.0f} bytes, input has {}", capacity,
                                          bytes, wire.size()));
    return Error{reader.error()};
  }
  Result<LibBloomPeer> filter = Create(capacity, params);
  if (!filter) return Error{"capacity: " + filter.error()};
  const AlignedTable table = reader.Table("table", filter->Table().size());
  const int bits = filter->filter_->bits;
  if (reader.ok() && bits % 8 != 0 &&
      std::to_integer<int>(table.data()[bits / 8]) >> (bits % 8) != 0) {
    reader.Refuse("table", fmt::format("has bits set beyond bit {}", bits - 1));
  }
  reader.ExpectEnd();
  if (reader.ok()) {
    CheckKeys(reader, "keys", keys, static_cast<uint64_t>(filter->filter_->hashes), table.bytes());
  }
  if (!reader.ok()) return Error{reader.error()};
  std::memcpy(filter->filter_->bf, table.data(), table.size());
  filter->keys_ = keys;
  filter->report_.distinct_keys = keys;
  return filter;
}

}  // namespace filterbench
