// Serialized filters from anywhere: what Deserialize accepts answers lookups without a fault, is
// consistent about itself, and is written as it was read.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filters/catalogue.h"
#include "filters/filter.h"
#include "filters/fuzzer.h"
#include "filters/hash.h"
#include "filters/test_wire.h"

namespace filterbench {
namespace {

using test::kFilterAt;
using test::kHeaderBytes;
using test::kPayloadBytesAt;
using test::Wire;

constexpr size_t kFilterBytes = kHeaderBytes - kFilterAt;

std::string Of(std::string_view filter, std::string_view what) {
  return std::string(filter) + ": " + std::string(what);
}

// The header that a writer of this filter would have put before the payload.
Wire WithRightHeader(Wire wire, const Wire& header) {
  const size_t payload_bytes = wire.size() - kHeaderBytes;
  std::memcpy(wire.data(), header.data(), kHeaderBytes);
  test::StoreU64(payload_bytes, wire, kPayloadBytesAt);
  test::FixChecksum(wire);
  return wire;
}

// Hashes of all kinds, the ends of the range among them.
std::vector<uint64_t> SomeHashes() {
  std::vector<uint64_t> hashes = {0, 1, UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63, 0xffffffff};
  for (uint64_t i = hashes.size(); i < 133; ++i) hashes.push_back(Mix64(i));
  return hashes;
}

template <class F>
void CheckLookups(const F& filter, const std::vector<uint64_t>& hashes) {
  uint64_t expected = 0;
  for (const uint64_t hash : hashes) expected += filter.MayContain(hash) ? 1 : 0;
  for (const auto& kernel : F::Kernels()) {
    FuzzRequire(kernel.count_batched(filter.view(), hashes.data(), hashes.size()) == expected,
                Of(F::kInfo.name, kernel.target));
    FuzzRequire(kernel.count_single(filter.view(), hashes.data(), hashes.size()) == expected,
                Of(F::kInfo.name, kernel.target));
  }
}

// Lookups, and inserts and erasures where there are such, of a filter that came from anywhere.
template <class F>
void CheckAnswers(F& filter) {
  constexpr std::string_view kName = F::kInfo.name;
  static const std::vector<uint64_t> hashes = SomeHashes();
  CheckLookups(filter, hashes);
  if constexpr (DynamicFilter<F>) {
    std::vector<uint64_t> accepted;
    for (size_t i = 0; i < 20; ++i) {
      const uint64_t hash = Mix64(i + 1000);
      if (filter.Insert(hash) == InsertStatus::kOk) accepted.push_back(hash);
    }
    for (const uint64_t hash : accepted) {
      FuzzRequire(filter.MayContain(hash), Of(kName, "denies what it accepted"));
    }
    CheckLookups(filter, hashes);
    if constexpr (ErasableFilter<F>) {
      for (const uint64_t hash : accepted) {
        FuzzRequire(filter.Erase(hash) == EraseStatus::kOk, Of(kName, "erases not what it has"));
      }
    }
  }
}

template <class F>
void TryWire(const Wire& wire) {
  constexpr std::string_view kName = F::kInfo.name;
  Result<F> filter = F::Deserialize(wire);
  if (!filter) {
    FuzzRequire(!filter.error().empty(), Of(kName, "refused without a reason"));
    return;
  }
  FuzzRequire(filter->Serialize() == wire, Of(kName, "is written otherwise than it was read"));
  FuzzRequire(filter->Table().size() <= wire.size(), Of(kName, "has a table that was not there"));
  FuzzRequire(filter->SizeInBytes() >= filter->Table().size(), Of(kName, "SizeInBytes"));
  FuzzRequire(filter->AllocatedBytes() >= filter->Table().size(), Of(kName, "AllocatedBytes"));
  for (const Detail& detail : filter->GetDetails()) {
    FuzzRequire(std::isfinite(detail.value), Of(kName, detail.name));
  }
  // Laws that are equations to be solved take seconds under sanitizers: few inputs have to wait.
  const bool asks_theory = XXH3_64bits(wire.data(), wire.size()) % 64 == 0;
  if (const auto expected = asks_theory ? filter->ExpectedFpr() : std::nullopt) {
    FuzzRequire(expected->mean >= 0 && expected->mean <= 1 && expected->instance_sd >= 0 &&
                    std::isfinite(expected->instance_sd),
                Of(kName, "ExpectedFpr"));
  }
  CheckAnswers(*filter);
}

}  // namespace
}  // namespace filterbench

// The name in the header says which filter it is; where that is none, the first byte of the name.
FILTERBENCH_FUZZER(Wire) {
  const auto bytes = std::as_bytes(input);
  const Wire as_it_is(bytes.begin(), bytes.end());
  Wire wire = as_it_is;
  if (wire.size() < kHeaderBytes) wire.resize(kHeaderBytes);
  const std::string_view field(reinterpret_cast<const char*>(wire.data()) + kFilterAt,
                               kFilterBytes);
  const std::string_view name = field.substr(0, field.find('\0'));

  std::vector<std::string_view> names;
  Catalogue::ForEach([&]<class F>() { names.push_back(F::kInfo.name); });
  auto chosen = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  if (chosen == names.size()) chosen = static_cast<uint8_t>(field[0]) % names.size();

  size_t index = 0;
  Catalogue::ForEach([&]<class F>() {
    if (index++ != chosen) return;
    TryWire<F>(as_it_is);
    static const Wire header = F::Build({}, {})->Serialize();
    TryWire<F>(WithRightHeader(wire, header));
  });
}
