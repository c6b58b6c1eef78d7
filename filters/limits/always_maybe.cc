#include "filters/limits/always_maybe.h"

#include "filters/wire.h"

namespace filterbench {
namespace {
constexpr uint32_t kWireVersion = 1;
}  // namespace

Result<AlwaysMaybe> AlwaysMaybe::Build(std::span<const uint64_t> hashes, const Params& params) {
  return AlwaysMaybe(params, hashes.size());
}

std::vector<std::byte> AlwaysMaybe::Serialize() const {
  WireWriter writer(kInfo.name, kWireVersion);
  WriteParams<AlwaysMaybe>(writer, params_);
  writer.U64(report_.distinct_keys);
  return std::move(writer).Finish();
}

Result<AlwaysMaybe> AlwaysMaybe::Deserialize(std::span<const std::byte> wire) {
  WireReader reader(wire, kInfo.name, kWireVersion);
  const Params params = ReadParams<AlwaysMaybe>(reader);
  const uint64_t n = reader.U64("keys", 0, UINT64_MAX);
  reader.ExpectEnd();
  if (!reader.ok()) return Error{reader.error()};
  return AlwaysMaybe(params, n);
}

}  // namespace filterbench
