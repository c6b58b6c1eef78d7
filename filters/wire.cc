#include "filters/wire.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "filters/hash.h"

namespace filterbench {
namespace {

constexpr std::string_view kMagic = "FLTRBNC1";
constexpr size_t kChecksumAt = 8;
constexpr size_t kPayloadBytesAt = 16;
constexpr size_t kVersionAt = 24;
constexpr size_t kFilterAt = 28;
constexpr size_t kFilterBytes = 36;
constexpr size_t kHeaderBytes = 64;
static_assert(kFilterAt + kFilterBytes == kHeaderBytes);

template <class T>
void StoreLittleEndian(T value, std::byte* to) {
  for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

template <class T>
T LoadLittleEndian(const std::byte* from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(from[i]) << (8 * i);
  return value;
}

uint64_t Checksum(std::span<const std::byte> wire) {
  return XXH3_64bits(wire.data() + kPayloadBytesAt, wire.size() - kPayloadBytesAt);
}

}  // namespace

WireWriter::WireWriter(std::string_view filter, uint32_t version) : out_(kHeaderBytes) {
  std::memcpy(out_.data(), kMagic.data(), kMagic.size());
  StoreLittleEndian(version, out_.data() + kVersionAt);
  std::memcpy(out_.data() + kFilterAt, filter.data(), std::min(filter.size(), kFilterBytes));
}

WireWriter& WireWriter::U64(uint64_t value) {
  out_.resize(out_.size() + sizeof(value));
  StoreLittleEndian(value, out_.data() + out_.size() - sizeof(value));
  return *this;
}

WireWriter& WireWriter::F64(double value) { return U64(std::bit_cast<uint64_t>(value)); }

WireWriter& WireWriter::Bytes(std::span<const std::byte> bytes) {
  U64(bytes.size());
  out_.insert(out_.end(), bytes.begin(), bytes.end());
  return *this;
}

std::vector<std::byte> WireWriter::Finish() && {
  StoreLittleEndian<uint64_t>(out_.size() - kHeaderBytes, out_.data() + kPayloadBytesAt);
  StoreLittleEndian<uint64_t>(Checksum(out_), out_.data() + kChecksumAt);
  return std::move(out_);
}

WireReader::WireReader(std::span<const std::byte> wire, std::string_view filter,
                       uint32_t version) {
  if (wire.size() < kHeaderBytes) {
    Refuse("header", fmt::format("needs {} bytes, input has {}", kHeaderBytes, wire.size()));
    return;
  }
  if (std::memcmp(wire.data(), kMagic.data(), kMagic.size()) != 0) {
    Refuse("magic", "not a filterbench filter");
    return;
  }
  const auto payload_bytes = LoadLittleEndian<uint64_t>(wire.data() + kPayloadBytesAt);
  if (payload_bytes != wire.size() - kHeaderBytes) {
    Refuse("payload_bytes", fmt::format("says {}, input has {}", payload_bytes,
                                        wire.size() - kHeaderBytes));
    return;
  }
  const auto found_version = LoadLittleEndian<uint32_t>(wire.data() + kVersionAt);
  if (found_version != version) {
    Refuse("version", fmt::format("is {}, this program reads {}", found_version, version));
    return;
  }
  char expected_filter[kFilterBytes] = {};
  std::memcpy(expected_filter, filter.data(), std::min(filter.size(), kFilterBytes));
  if (std::memcmp(wire.data() + kFilterAt, expected_filter, kFilterBytes) != 0) {
    Refuse("filter", fmt::format("is not {}", filter));
    return;
  }
  if (LoadLittleEndian<uint64_t>(wire.data() + kChecksumAt) != Checksum(wire)) {
    Refuse("checksum", "does not match the content: damaged");
    return;
  }
  rest_ = wire.subspan(kHeaderBytes);
}

uint64_t WireReader::U64(std::string_view field, uint64_t low, uint64_t high) {
  if (!ok()) return 0;
  if (rest_.size() < sizeof(uint64_t)) {
    Refuse(field, "input ends");
    return 0;
  }
  const auto value = LoadLittleEndian<uint64_t>(rest_.data());
  rest_ = rest_.subspan(sizeof(uint64_t));
  if (value < low || value > high) {
    Refuse(field, fmt::format("must be in {}..{}, is {}", low, high, value));
    return 0;
  }
  return value;
}

double WireReader::F64(std::string_view field, double low, double high) {
  const double value = std::bit_cast<double>(U64(field, 0, UINT64_MAX));
  if (ok() && !(value >= low && value <= high)) {
    Refuse(field, fmt::format("must be in {}..{}, is {}", low, high, value));
  }
  return ok() ? value : 0;
}

AlignedTable WireReader::Table(std::string_view field, uint64_t expected_bytes) {
  const uint64_t stored_bytes = U64(field, 0, UINT64_MAX);
  if (!ok()) return {};
  if (stored_bytes != expected_bytes || stored_bytes > rest_.size()) {
    Refuse(field, fmt::format("needs {} bytes, says {}, input has {}", expected_bytes,
                              stored_bytes, rest_.size()));
    return {};
  }
  Result<AlignedTable> table = AlignedTable::Allocate(stored_bytes);
  if (!table) {
    Refuse(field, table.error());
    return {};
  }
  if (stored_bytes != 0) std::memcpy(table->data(), rest_.data(), stored_bytes);
  rest_ = rest_.subspan(stored_bytes);
  return std::move(*table);
}

void WireReader::Refuse(std::string_view field, std::string_view problem) {
  if (ok()) error_ = fmt::format("{}: {}", field, problem);
  rest_ = {};
}

void WireReader::ExpectEnd() {
  if (ok() && !rest_.empty()) Refuse("payload", fmt::format("{} bytes too many", rest_.size()));
}

}  // namespace filterbench
