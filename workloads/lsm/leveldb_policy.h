#ifndef FILTERBENCH_WORKLOADS_LSM_LEVELDB_POLICY_H_
#define FILTERBENCH_WORKLOADS_LSM_LEVELDB_POLICY_H_

// Filters as LevelDB wants them: bytes that are made of some keys, and asked as bytes.
//
// LevelDB makes one filter for the data blocks that begin in the same 2 KiB of a table: with blocks
// of 4 KiB one for each block, over the 35 or so keys of 100 bytes that it holds. It keeps the
// bytes as one filter block per table, in memory while the table is open, and knows no other form
// of a filter.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include "filters/fpr.h"
#include "workloads/key_filter.h"

namespace filterbench::lsm {

// A filter that was made.
struct MadeFilter {
  uint64_t keys = 0;
  uint64_t stored_bytes = 0;  // what LevelDB keeps
  uint64_t size_bytes = 0;    // of the filter itself, KeyFilter::SizeInBytes
  std::optional<uint64_t> peak_build_bytes;
  uint64_t build_ns = 0;      // from keys to stored bytes
  std::optional<FprEstimate> expected;
};

enum class FilterAnswer {
  kNo,
  kMaybe,
  kNotBuilt,   // the filter could not be built: maybe
  kUnusable,   // the bytes are no filter: maybe
};

// How filters become bytes, and answer as bytes. Thread-safe.
class FilterFormat {
 public:
  virtual ~FilterFormat() = default;

  // Stored in each table; a filter of another name is not used.
  virtual const std::string& name() const = 0;
  // For people: the filter and how it is stored.
  virtual const std::string& description() const = 0;
  // Appends the filter over `n` keys to `bytes`; nothing where it cannot be built, `bytes` then
  // ends with what is asked as kNotBuilt.
  virtual std::optional<MadeFilter> Make(const leveldb::Slice* keys, int n,
                                         std::string& bytes) const = 0;
  virtual FilterAnswer Ask(std::string_view key, std::string_view filter) const = 0;
  // Filters that were made from bytes in order to be asked.
  virtual uint64_t loads() const { return 0; }
};

// Any filter, over HashBytes of the keys with `hash_seed`, as its Serialize() writes it: with
// header and checksum, which for so few keys are larger than the table.
//
// Bytes are loaded when they are first asked and then found by their own 128-bit hash, so that no
// answer can come from another filter's bytes, wherever these lay before: tables may close, and
// their memory be used again. This hash, a look-up and a lock are in the time of every answer.
// At most `loaded_filters` are kept; with one more, all are dropped.
std::unique_ptr<FilterFormat> SerializedFilters(const FilterPolicy& policy, uint64_t hash_seed,
                                                uint64_t filter_seed,
                                                uint64_t loaded_filters = uint64_t{1} << 20);

// `leveldb_bloom` over the bytes of the keys, stored as LevelDB's own: the table, of which the last
// byte is k. No checksum but that of LevelDB's block.
std::unique_ptr<FilterFormat> LevelDbBloomFilters(uint32_t bits_per_key);

// LevelDB's own, NewBloomFilterPolicy.
std::unique_ptr<FilterFormat> BuiltInFilters(uint32_t bits_per_key);

// What a policy was asked, one filter after the other.
struct FilterProbe {
  const char* filter = nullptr;  // where its bytes lie
  FilterAnswer answer = FilterAnswer::kMaybe;
};

// Gives a format to LevelDB and keeps account of it.
class CountingPolicy final : public leveldb::FilterPolicy {
 public:
  explicit CountingPolicy(std::unique_ptr<FilterFormat> format) : format_(std::move(format)) {}

  const char* Name() const override { return format_->name().c_str(); }
  void CreateFilter(const leveldb::Slice* keys, int n, std::string* bytes) const override;
  bool KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const override;

  const FilterFormat& format() const { return *format_; }
  // By its bytes, what was made; null where this policy did not make them.
  const MadeFilter* Find(std::string_view filter) const;
  uint64_t filters_made() const { return made_; }      // that could be built
  uint64_t filters_not_built() const { return not_built_; }
  uint64_t build_ns() const { return build_ns_; }      // of these

  // Every probe from now on is appended, and timed; null ends it. Only while one thread asks.
  void Trace(std::vector<FilterProbe>* probes) { trace_ = probes; }
  uint64_t traced_ns() const { return traced_ns_; }

 private:
  const std::unique_ptr<FilterFormat> format_;
  mutable std::mutex mutex_;
  mutable std::unordered_map<uint64_t, MadeFilter> filters_;  // by XXH3-64 of their bytes
  mutable std::atomic<uint64_t> made_ = 0;
  mutable std::atomic<uint64_t> not_built_ = 0;
  mutable std::atomic<uint64_t> build_ns_ = 0;
  std::vector<FilterProbe>* trace_ = nullptr;
  mutable uint64_t traced_ns_ = 0;
};

// The filters in a filter block, in order, without the empty ones of 2 KiB in which no block
// begins; nothing where it is none.
std::optional<std::vector<std::string_view>> FiltersOfBlock(std::string_view block);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_LEVELDB_POLICY_H_
