#include "filters/peers/leveldb_peer.h"

#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "filters/bloom/key_count.h"
#include "filters/bloom/leveldb_bloom.h"
#include "filters/out_of_memory.h"
#include "filters/theory/systems.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

uint64_t BytesFor(uint64_t keys, uint32_t bits_per_key) {
  return LevelDbBloom::BitsFor(keys, bits_per_key) / 8 + 1;
}

}  // namespace

LevelDbPeer::LevelDbPeer(const Params& params, uint64_t keys, AlignedTable table)
    : params_(params),
      keys_(keys),
      policy_(leveldb::NewBloomFilterPolicy(static_cast<int>(params.bits_per_key))),
      table_(std::move(table)) {
  report_ = {.attempts = 1,
             .distinct_keys = keys,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

template <class KeyAt>
Result<LevelDbPeer> LevelDbPeer::BuildFrom(size_t n, const Params& params,
                                           const KeyAt& key_at) try {
  if (n > INT_MAX) {
    return Error{fmt::format("too large: needs {} bytes; libleveldb takes no more than {} keys",
                             BytesFor(n, params.bits_per_key), INT_MAX)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(BytesFor(n, params.bits_per_key));
  if (!table) return Error{table.error()};
  LevelDbPeer filter(params, n, std::move(*table));
  std::vector<leveldb::Slice> keys(n);
  for (size_t i = 0; i < n; ++i) keys[i] = key_at(i);
  std::string made;
  filter.policy_->CreateFilter(keys.data(), static_cast<int>(n), &made);
  if (made.size() != filter.table_.size()) {
    return Error{fmt::format("libleveldb made {} bytes, expected {}", made.size(),
                             filter.table_.size())};
  }
  std::memcpy(filter.table_.data(), made.data(), made.size());
  filter.report_.peak_bytes += n * sizeof(leveldb::Slice) + made.capacity();
  return filter;
} catch (const std::bad_alloc&) {
  return Error{kOutOfMemory};
}

Result<LevelDbPeer> LevelDbPeer::Build(std::span<const uint64_t> values, const Params& params) {
  return BuildFrom(values.size(), params, [values](size_t i) {
    return leveldb::Slice(reinterpret_cast<const char*>(&values[i]), sizeof(uint64_t));
  });
}

Result<LevelDbPeer> LevelDbPeer::BuildFromBytes(ByteKeys keys, const Params& params) {
  return BuildFrom(keys.size, params, [keys](size_t i) {
    return leveldb::Slice(keys[i].data(), keys[i].size());
  });
}

std::span<const Kernel<LevelDbPeer::View>> LevelDbPeer::Kernels() {
  static const auto kernels = ScalarKernels<View>();
  return kernels;
}

Details LevelDbPeer::GetDetails() const {
  return {{"k", static_cast<double>(std::to_integer<int>(table_.data()[table_.size() - 1]))},
          {"bits", static_cast<double>((table_.size() - 1) * 8)}};
}

std::optional<FprEstimate> LevelDbPeer::ExpectedFpr() const {
  return theory::RotatedDoubleHashingFpr(
      keys_, (table_.size() - 1) * 8,
      static_cast<int>(LevelDbBloom::ProbesFor(params_.bits_per_key)));
}

std::optional<double> LevelDbPeer::TheoryFpr(double bits_per_key) {
  return LevelDbBloom::TheoryFpr(bits_per_key);
}

std::vector<std::byte> LevelDbPeer::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<LevelDbPeer>(writer, params_);
  writer.U64(keys_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<LevelDbPeer> LevelDbPeer::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<LevelDbPeer>(reader);
  const uint64_t keys = reader.U64("keys", 0, INT_MAX);
  AlignedTable table = reader.Table("table", BytesFor(keys, params.bits_per_key));
  if (reader.ok()) {
    const auto k = std::to_integer<uint32_t>(table.data()[table.size() - 1]);
    if (k != LevelDbBloom::ProbesFor(params.bits_per_key)) {
      reader.Refuse("table", fmt::format("ends in {} probes, {} bits per key have {}", k,
                                         params.bits_per_key,
                                         LevelDbBloom::ProbesFor(params.bits_per_key)));
    }
    CheckKeys(reader, "keys", keys, LevelDbBloom::ProbesFor(params.bits_per_key),
              table.bytes().first(static_cast<size_t>(table.size() - 1)));
  }
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  return LevelDbPeer(params, keys, std::move(table));
}

}  // namespace filterbench
