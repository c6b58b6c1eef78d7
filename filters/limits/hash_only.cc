#include "filters/limits/hash_only.h"

#include "filters/wire.h"

namespace filterbench {
namespace {
constexpr uint32_t kWireVersion = 1;
}  // namespace

Result<HashOnly> HashOnly::Build(std::span<const uint64_t> hashes, const Params& params) {
  return HashOnly(params, hashes.size());
}

std::vector<std::byte> HashOnly::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<HashOnly>(writer, params_);
  writer.U64(report_.distinct_keys);
  return std::move(writer).Finish();
}

Result<HashOnly> HashOnly::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<HashOnly>(reader);
  const uint64_t n = reader.U64("keys", 0, UINT64_MAX);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  return HashOnly(params, n);
}

}  // namespace filterbench
