#ifndef FILTERBENCH_WORKLOADS_LSM_TABLE_FORMAT_H_
#define FILTERBENCH_WORKLOADS_LSM_TABLE_FORMAT_H_

// The bytes of a table file. All numbers are little-endian. Every section begins at a multiple of
// kDirectAlignment and is filled up to one with zeros, so that each is read by one aligned read.
// Its first eight bytes are the XXH3-64 of all others, padding included, seeded with the file's
// number and the section's offset: a write that was lost, or went elsewhere, leaves a section that
// is right, but not here. Only the footer, which has the number in it, goes without it in the seed.
//
//   data block   checksum u64, entries u32, used u32 (bytes up to the end of the offsets);
//                per entry: key length varint, value length + 1 varint (0: a tombstone), key,
//                value; offset of each entry from the begin of the block, u32
//   filter       checksum u64, used u64; identity of its policy, keys u64, bytes of the filter
//   index        checksum u64, used u64; facts of the file; blocks u64; per block: offset u64,
//                bytes u64, last key
//   footer       checksum u64, magic u64, version u32, prefix length u32, hash seed u64, number of
//                the file u64; offset u64 and bytes u64 of the filter, of the filter of prefixes,
//                and of the index (0 bytes: none)
//
// in this order: data blocks, filter, filter of prefixes, index, footer. Texts are a length u64 and
// the bytes.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "filters/hash.h"
#include "workloads/lsm/files.h"

namespace filterbench::lsm {

static_assert(std::endian::native == std::endian::little, "files are written as memory has them");

inline constexpr uint64_t kMagic = 0x31454c4241544246;  // "FBTABLE1"
inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kFooterBytes = kDirectAlignment;
inline constexpr uint64_t kChecksumBytes = 8;
inline constexpr uint64_t kBlockHeaderBytes = 16;
inline constexpr uint64_t kSectionHeaderBytes = 16;

inline uint64_t RoundedUp(uint64_t bytes) {
  return (bytes + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
}

// Where a section belongs.
struct Home {
  uint64_t file_number = 0;  // 0 for the footer
  uint64_t offset = 0;
};

// Of a section as it lies in the file.
inline uint64_t SectionChecksum(std::string_view section, const Home& home) {
  return HashBytes(section.substr(kChecksumBytes),
                   Mix64(Mix64(kMagic + home.file_number) + home.offset));
}

class Encoder {
 public:
  void U32(uint32_t value) { Number(value); }
  void U64(uint64_t value) { Number(value); }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void Raw(std::string_view bytes) { bytes_ += bytes; }
  void Text(std::string_view text) {
    U64(text.size());
    Raw(text);
  }
  void Patch(uint64_t at, uint64_t value) { std::memcpy(&bytes_[at], &value, sizeof(value)); }
  uint64_t size() const { return bytes_.size(); }
  std::string_view bytes() const { return bytes_; }

  // Filled up, with its checksum: a section as it is written. The encoder is empty again.
  std::string FinishSection(const Home& home) {
    bytes_.resize(RoundedUp(bytes_.size()));
    Patch(0, SectionChecksum(bytes_, home));
    return std::exchange(bytes_, {});
  }

 private:
  template <class T>
  void Number(T value) {
    char raw[sizeof(value)];
    std::memcpy(raw, &value, sizeof(value));
    bytes_.append(raw, sizeof(value));
  }

  std::string bytes_;
};

// Reads what an Encoder wrote and trusts nothing: beyond the end, and after what is impossible,
// everything is 0 and ok() is false.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  uint32_t U32() { return Number<uint32_t>(); }
  uint64_t U64() { return Number<uint64_t>(); }
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view raw = Raw(1);
      if (!ok_) return 0;
      const auto byte = static_cast<uint8_t>(raw.front());
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    ok_ = false;
    return 0;
  }
  std::string_view Raw(uint64_t bytes) {
    if (!ok_ || bytes > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view raw = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return raw;
  }
  std::string_view Text() { return Raw(U64()); }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }
  uint64_t left() const { return rest_.size(); }

 private:
  template <class T>
  T Number() {
    const std::string_view raw = Raw(sizeof(T));
    T value = 0;
    if (ok_) std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_TABLE_FORMAT_H_
