#include "filters/bloom/leveldb_bloom.h"

#include <utility>

#include "filters/bloom/key_count.h"
#include "filters/theory/bloom.h"
#include "filters/theory/systems.h"
#include "filters/wire.h"

namespace filterbench {
namespace {

constexpr uint32_t kWireVersion = 1;

}  // namespace

uint32_t LevelDbBloom::Hash(std::string_view key) noexcept {
  const auto byte = [key](size_t i) { return uint32_t{static_cast<uint8_t>(key[i])}; };
  uint32_t hash = kHashSeed ^ static_cast<uint32_t>(key.size() * kHashMultiplier);
  size_t i = 0;
  for (; i + 4 <= key.size(); i += 4) {
    hash += byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16 | byte(i + 3) << 24;
    hash *= kHashMultiplier;
    hash ^= hash >> 16;
  }
  if (i == key.size()) return hash;
  for (int shift = 0; i < key.size(); ++i, shift += 8) hash += byte(i) << shift;
  hash *= kHashMultiplier;
  return hash ^ hash >> 24;
}

LevelDbBloom::LevelDbBloom(const Params& params, uint64_t capacity, uint64_t keys,
                           AlignedTable table)
    : params_(params),
      capacity_(capacity),
      keys_(keys),
      bits_(BitsFor(capacity, params.bits_per_key)),
      k_(ProbesFor(params.bits_per_key)),
      table_(std::move(table)) {
  report_ = {.attempts = 1,
             .distinct_keys = keys_,
             .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
}

Result<LevelDbBloom> LevelDbBloom::Create(uint64_t keys, const Params& params) {
  const uint64_t bits = BitsFor(keys, params.bits_per_key);
  if (bits > kMaxBloomBits) {
    return Error{fmt::format("too large: needs {} bytes, limit {}", bits / 8 + 1,
                             kMaxBloomBits / 8 + 1)};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(bits / 8 + 1);
  if (!table) return Error{table.error()};
  table->data()[bits / 8] = static_cast<std::byte>(ProbesFor(params.bits_per_key));
  return LevelDbBloom(params, keys, 0, std::move(*table));
}

Result<LevelDbBloom> LevelDbBloom::Build(std::span<const uint64_t> values, const Params& params) {
  Result<LevelDbBloom> filter = Create(values.size(), params);
  if (filter) filter->InsertAll(values);
  return filter;
}

Result<LevelDbBloom> LevelDbBloom::BuildFromBytes(ByteKeys keys, const Params& params) {
  Result<LevelDbBloom> filter = Create(keys.size, params);
  if (filter) filter->SetBits(keys.size, 1, [keys](size_t i) { return Hash(keys[i]); });
  return filter;
}

void LevelDbBloom::InsertAll(std::span<const uint64_t> values, unsigned threads) {
  SetBits(values.size(), threads, [values](size_t i) { return HashOfInteger(values[i]); });
}

InsertStatus LevelDbBloom::Insert(uint64_t value) {
  InsertAll(std::span(&value, 1));
  return InsertStatus::kOk;
}

template <class HashOf>
void LevelDbBloom::SetBits(size_t n, unsigned threads, const HashOf& hash_of) {
  const View view = this->view();
  uint64_t* words = table_.As<uint64_t>();
  // The byte that is k lies behind the bits, in the part of whoever has the last of them.
  InsertInParts(bits_, view.prefetch ? threads : 1, [&](BitRange part) {
    SetBitsOfKeys<kMaxProbes>(words, n, view.k, view.prefetch, part,
                              [&](size_t key, uint64_t* out) {
                                uint32_t hash = hash_of(key);
                                const uint32_t delta = std::rotr(hash, 17);
                                for (uint32_t i = 0; i < view.k; ++i, hash += delta) {
                                  out[i] = view.position(hash);
                                }
                              });
  });
  keys_ += n;
  report_.distinct_keys = keys_;
}

std::span<const Kernel<LevelDbBloom::View>> LevelDbBloom::Kernels() {
  static const auto kernels = ScalarKernels<View>();
  return kernels;
}

Details LevelDbBloom::GetDetails() const {
  return {{"k", static_cast<double>(k_)}, {"bits", static_cast<double>(bits_)}};
}

std::optional<FprEstimate> LevelDbBloom::ExpectedFpr() const {
  return theory::RotatedDoubleHashingFpr(keys_, bits_, static_cast<int>(k_));
}

std::optional<double> LevelDbBloom::TheoryFpr(double bits_per_key) {
  return theory::ClassicBloomFpr(
      bits_per_key, static_cast<int>(ProbesFor(static_cast<uint32_t>(bits_per_key))));
}

std::vector<std::byte> LevelDbBloom::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<LevelDbBloom>(writer, params_);
  writer.U64(capacity_).U64(keys_).Bytes(table_.bytes());
  return std::move(writer).Finish();
}

Result<LevelDbBloom> LevelDbBloom::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<LevelDbBloom>(reader);
  const uint64_t capacity = reader.U64("capacity", 0, kMaxBloomBits);
  const uint64_t keys = reader.U64("keys", 0, UINT64_MAX);
  const uint64_t bits = BitsFor(capacity, params.bits_per_key);
  AlignedTable table = reader.Table("table", bits / 8 + 1);
  if (reader.ok()) {
    const auto k = std::to_integer<uint32_t>(table.data()[bits / 8]);
    if (k != ProbesFor(params.bits_per_key)) {
      reader.Refuse("table", fmt::format("ends in {} probes, {} bits per key have {}", k,
                                         params.bits_per_key, ProbesFor(params.bits_per_key)));
    }
    CheckKeys(reader, "keys", keys, ProbesFor(params.bits_per_key),
              table.bytes().first(static_cast<size_t>(bits / 8)));
  }
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  return LevelDbBloom(params, capacity, keys, std::move(table));
}

}  // namespace filterbench
