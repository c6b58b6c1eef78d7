#ifndef FILTERBENCH_FILTERS_BLOOM_BLOCK_FILTER_H_
#define FILTERBENCH_FILTERS_BLOOM_BLOCK_FILTER_H_

// A Bloom filter whose hash chooses one small block, in which all bits of the key lie. Everything
// but the bits themselves is here; a `Scheme` says what a block is and which bits a key has:
//
//   kInfo, Params, kKnobs           as in filters/filter.h; Params has bits_per_key and seed
//   View                            pointer to the table, `blocks`, `prefetch`, what else a lookup
//                                   needs, and
//     BlockOf(hash) -> uint64_t     below `blocks`
//     MayContain(hash) -> bool      the scalar reference
//   kMaxBlocks                      the largest number of blocks that BlockOf reaches evenly
//   BlockBytes(params)              size of a block, 64 bytes at most
//   ProbesFor(params)               bits per key
//   MakeView(params, probes, table, blocks, prefetch)
//   Insert(view, table, hash)       sets the bits of a key
//   Fpr(params, probes, n, blocks), TheoryFpr(bits_per_key)
//
// and where it needs them
//
//   Contradiction(params)           as in filters/filter.h
//   BlocksFor(n, params)            at least 1; by default what bits_per_key asks for
//   MaxBlocks(params)               where it is not kMaxBlocks for all of them
//
// The kernel file of a scheme specialises Kernels().

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/filter.h"
#include "filters/bloom/key_count.h"
#include "filters/simd/prefetch.h"
#include "filters/table.h"
#include "filters/wire.h"

namespace filterbench {

template <class SchemeT>
class BlockFilter {
 public:
  using Scheme = SchemeT;
  using Params = typename Scheme::Params;
  using View = typename Scheme::View;
  static constexpr FilterInfo kInfo = Scheme::kInfo;
  static constexpr auto kKnobs = Scheme::kKnobs;

  static std::string Contradiction(const Params& params) {
    if constexpr (requires { Scheme::Contradiction(params); }) {
      return Scheme::Contradiction(params);
    } else {
      return {};
    }
  }

  static Result<BlockFilter> Create(uint64_t keys, const Params& params) {
    if (std::string problem = Contradiction(params); !problem.empty()) return Error{problem};
    const uint64_t blocks = BlocksFor(keys, params);
    const uint64_t block_bytes = Scheme::BlockBytes(params);
    if (blocks > MaxBlocks(params)) {
      return Error{fmt::format("too large: needs {} bytes, limit {}", blocks * block_bytes,
                               MaxBlocks(params) * block_bytes)};
    }
    Result<AlignedTable> table = AlignedTable::Allocate(blocks * block_bytes);
    if (!table) return Error{table.error()};
    return BlockFilter(params, keys, 0, blocks, std::move(*table));
  }

  static Result<BlockFilter> Build(std::span<const uint64_t> hashes, const Params& params) {
    Result<BlockFilter> filter = Create(hashes.size(), params);
    if (filter) filter->InsertAll(hashes);
    return filter;
  }

  // A filter made for `capacity` keys that holds `inserted` keys in this table. An error where the
  // table has another size than such a filter.
  static Result<BlockFilter> FromTable(std::span<const std::byte> table, uint64_t capacity,
                                       uint64_t inserted, const Params& params) {
    Result<BlockFilter> filter = Create(capacity, params);
    if (!filter) return filter;
    if (table.size() != filter->table_.size()) {
      return Error{fmt::format("table: has {} bytes, {} keys need {}", table.size(), capacity,
                               filter->table_.size())};
    }
    std::copy(table.begin(), table.end(), filter->table_.data());
    filter->CountInserted(inserted);
    return filter;
  }

  // Each thread sets the bits of its own part of the table: no two write to the same block, and the
  // bytes do not depend on their number.
  void InsertAll(std::span<const uint64_t> hashes, unsigned threads = 1) {
    CountInserted(hashes.size());
    const auto insert = [this](const uint64_t* first, size_t n) {
      InsertSome(first, n);
    };
    if (threads <= 1) return insert(hashes.data(), hashes.size());
    std::vector<std::jthread> workers;
    for (unsigned t = 0; t < threads; ++t) {
      const uint64_t first_block = FirstBlockOfPart(t, threads);
      const uint64_t blocks = FirstBlockOfPart(t + 1, threads) - first_block;
      if (blocks == 0) continue;
      workers.emplace_back([hashes, first_block, blocks, insert, all = view()] {
        std::array<uint64_t, 1024> mine;
        size_t count = 0;
        for (const uint64_t hash : hashes) {
          mine[count] = hash;
          count += all.BlockOf(hash) - first_block < blocks ? 1 : 0;
          if (count == mine.size()) {
            insert(mine.data(), count);
            count = 0;
          }
        }
        insert(mine.data(), count);
      });
    }
  }

  // Never refused; each key beyond the number that the filter was made for raises the FPR.
  InsertStatus Insert(uint64_t hash) {
    CountInserted(1);
    Scheme::Insert(view(), table_.data(), hash);
    return InsertStatus::kOk;
  }

  std::vector<std::byte> Serialize() const {
    WireWriter writer(kInfo.name, kWireVersion);
    WriteParams<BlockFilter>(writer, params_);
    writer.U64(capacity_).U64(inserted_).U64(blocks_).Bytes(table_.bytes());
    return std::move(writer).Finish();
  }

  static Result<BlockFilter> Deserialize(std::span<const std::byte> wire) {
    WireReader reader(wire, kInfo.name, kWireVersion);
    const Params params = ReadParams<BlockFilter>(reader);
    const std::string problem = Contradiction(params);
    if (reader.ok() && !problem.empty()) reader.Refuse("params", problem);
    const uint64_t capacity = reader.U64("capacity", 0, UINT64_MAX);
    const uint64_t inserted = reader.U64("inserted", 0, UINT64_MAX);
    const uint64_t blocks = reader.U64("blocks", 1, MaxBlocks(params));
    if (reader.ok()) {
      const uint64_t expected = BlocksFor(capacity, params);
      if (blocks != expected) {
        reader.Refuse("blocks", fmt::format("is {}, {} keys need {}", blocks, capacity, expected));
      }
    }
    AlignedTable table =
        reader.Table("table", reader.ok() ? blocks * Scheme::BlockBytes(params) : 0);
    reader.ExpectEnd();
    if (reader.ok()) {
      CheckKeys(reader, "inserted", inserted, Scheme::ProbesFor(params), table.bytes());
    }
    if (!reader.ok()) return Error{reader.error()};
    return BlockFilter(params, capacity, inserted, blocks, std::move(table));
  }

  View view() const {
    return Scheme::MakeView(params_, probes_, table_.data(), blocks_, PrefetchPays(table_.size()));
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const {
    return {{"k", static_cast<double>(probes_)}, {"blocks", static_cast<double>(blocks_)}};
  }
  std::optional<FprEstimate> ExpectedFpr() const {
    return Scheme::Fpr(params_, probes_, inserted_, blocks_);
  }
  static std::optional<double> TheoryFpr(double bits_per_key) {
    return Scheme::TheoryFpr(bits_per_key);
  }

  static uint64_t MaxBlocks(const Params& params) {
    if constexpr (requires { Scheme::MaxBlocks(params); }) {
      return Scheme::MaxBlocks(params);
    } else {
      return Scheme::kMaxBlocks;
    }
  }
  // Blocks for n keys, at least 1; beyond MaxBlocks where that is too large to be offered.
  static uint64_t BlocksFor(uint64_t n, const Params& params) {
    if constexpr (requires { Scheme::BlocksFor(n, params); }) {
      return Scheme::BlocksFor(n, params);
    } else {
      const double block_bits = 8.0 * static_cast<double>(Scheme::BlockBytes(params));
      const double blocks = std::ceil(static_cast<double>(n) * params.bits_per_key / block_bits);
      return static_cast<uint64_t>(std::clamp(blocks, 1.0, 0x1p57));
    }
  }

 private:
  static constexpr uint32_t kWireVersion = 2;

  BlockFilter(const Params& params, uint64_t capacity, uint64_t inserted, uint64_t blocks,
              AlignedTable table)
      : params_(params),
        capacity_(capacity),
        inserted_(inserted),
        blocks_(blocks),
        probes_(Scheme::ProbesFor(params)),
        table_(std::move(table)) {
    report_ = {.attempts = 1,
               .distinct_keys = inserted_,
               .peak_bytes = table_.allocated_bytes() + sizeof(*this)};
  }

  void CountInserted(uint64_t keys) {
    inserted_ += keys;
    report_.distinct_keys = inserted_;
  }

  void InsertSome(const uint64_t* hashes, size_t n) {
    const View all = view();
    for (const Kernel<View>& kernel : Kernels()) {
      if (kernel.insert != nullptr) return kernel.insert(all, table_.data(), hashes, n);
    }
    for (size_t i = 0; i < n; ++i) Scheme::Insert(all, table_.data(), hashes[i]);
  }

  uint64_t FirstBlockOfPart(unsigned part, unsigned parts) const {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(blocks_) * part / parts);
  }

  Params params_;
  uint64_t capacity_;  // the number of keys that it was sized for
  uint64_t inserted_;  // keys, duplicates counted
  uint64_t blocks_;
  uint32_t probes_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_BLOOM_BLOCK_FILTER_H_
