#include "workloads/lsm/leveldb_policy.h"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "filters/bloom/leveldb_bloom.h"
#include "filters/bloom/remainder.h"
#include "filters/hash.h"
#include "filters/theory/systems.h"

namespace filterbench::lsm {
namespace {

// Of a filter that could not be built. No format's filter has a single byte, and it is not empty,
// which is what LevelDB stores where there are no keys.
constexpr char kNotBuiltByte = 0;
bool IsNotBuilt(std::string_view filter) {
  return filter.size() == 1 && filter.front() == kNotBuiltByte;
}

class Stopwatch {
 public:
  uint64_t ns() const {
    return static_cast<uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin_).count());
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

uint64_t ContentHash(std::string_view bytes) { return HashBytes(bytes, 0); }

// By number of keys and size: of filters of one policy that agree in these, theory says the same.
// Some of these estimates take a millisecond, and a table has thousands of filters.
class ExpectedBySize {
 public:
  template <class Compute>
  std::optional<FprEstimate> Get(uint64_t keys, uint64_t bytes, const Compute& compute) {
    const std::lock_guard lock(mutex_);
    const auto [entry, is_new] = known_.try_emplace({keys, bytes});
    if (is_new) entry->second = compute();
    return entry->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<uint64_t, uint64_t>, std::optional<FprEstimate>> known_;
};

class Serialized final : public FilterFormat {
 public:
  Serialized(const FilterPolicy& policy, uint64_t hash_seed, uint64_t filter_seed,
             uint64_t loaded_filters)
      : policy_(policy),
        hash_seed_(hash_seed),
        filter_seed_(filter_seed),
        limit_(loaded_filters),
        // With another seed of the hashes the same bytes would deny keys that they hold.
        name_(fmt::format("filterbench {} {:016x}", policy.identity(), hash_seed)),
        description_(fmt::format("{}, serialized", policy.identity())) {}

  const std::string& name() const override { return name_; }
  const std::string& description() const override { return description_; }

  std::optional<MadeFilter> Make(const leveldb::Slice* keys, int n,
                                 std::string& bytes) const override {
    const Stopwatch watch;
    std::vector<uint64_t> hashes(static_cast<size_t>(n));
    for (size_t i = 0; i < hashes.size(); ++i) {
      hashes[i] = HashBytes({keys[i].data(), keys[i].size()}, hash_seed_);
    }
    const auto filter = policy_.Build(hashes, filter_seed_);
    if (!filter) {
      bytes.push_back(kNotBuiltByte);
      return std::nullopt;
    }
    const std::vector<std::byte> wire = (*filter)->Serialize();
    bytes.append(reinterpret_cast<const char*>(wire.data()), wire.size());
    const uint64_t build_ns = watch.ns();
    const uint64_t size = (*filter)->SizeInBytes();
    return MadeFilter{
        .keys = hashes.size(),
        .stored_bytes = wire.size(),
        .size_bytes = size,
        .peak_build_bytes = (*filter)->PeakBuildBytes(),
        .build_ns = build_ns,
        .expected = expected_.Get(hashes.size(), size, [&] { return (*filter)->ExpectedFpr(); })};
  }

  FilterAnswer Ask(std::string_view key, std::string_view bytes) const override {
    if (IsNotBuilt(bytes)) return FilterAnswer::kNotBuilt;
    const uint64_t hash = HashBytes(key, hash_seed_);
    const XXH128_hash_t content = XXH3_128bits(bytes.data(), bytes.size());
    const std::lock_guard lock(mutex_);
    auto entry = loaded_.find(content);
    if (entry == loaded_.end()) {
      if (loaded_.size() >= limit_) loaded_.clear();
      ++loads_;
      auto filter = policy_.Load(std::as_bytes(std::span(bytes)));
      entry = loaded_.emplace(content, filter ? std::move(*filter) : nullptr).first;
    }
    if (entry->second == nullptr) return FilterAnswer::kUnusable;
    return entry->second->MayContain(hash) ? FilterAnswer::kMaybe : FilterAnswer::kNo;
  }

  uint64_t loads() const override {
    const std::lock_guard lock(mutex_);
    return loads_;
  }

 private:
  struct Low {
    size_t operator()(const XXH128_hash_t& hash) const { return hash.low64; }
  };
  struct Equal {
    bool operator()(const XXH128_hash_t& a, const XXH128_hash_t& b) const {
      return a.low64 == b.low64 && a.high64 == b.high64;
    }
  };

  const FilterPolicy& policy_;
  const uint64_t hash_seed_;
  const uint64_t filter_seed_;
  const uint64_t limit_;
  const std::string name_;
  const std::string description_;
  mutable ExpectedBySize expected_;
  mutable std::mutex mutex_;
  mutable uint64_t loads_ = 0;
  // Null for bytes that are no filter.
  mutable std::unordered_map<XXH128_hash_t, std::unique_ptr<KeyFilter>, Low, Equal> loaded_;
};

// What is known of a filter in LevelDB's own format.
MadeFilter InLevelDbsFormat(uint64_t keys, std::string_view filter, uint64_t build_ns,
                            ExpectedBySize& expected) {
  return {.keys = keys,
          .stored_bytes = filter.size(),
          .size_bytes = filter.size(),
          .peak_build_bytes = std::nullopt,
          .build_ns = build_ns,
          .expected = expected.Get(keys, filter.size(), [&] {
            return theory::RotatedDoubleHashingFpr(keys, (filter.size() - 1) * 8, filter.back());
          })};
}

class LevelDbBlooms final : public FilterFormat {
 public:
  explicit LevelDbBlooms(uint32_t bits_per_key)
      : params_{.bits_per_key = bits_per_key},
        description_(fmt::format("leveldb_bloom, {} bits per key, in LevelDB's own format",
                                 bits_per_key)) {}

  const std::string& name() const override { return name_; }
  const std::string& description() const override { return description_; }

  std::optional<MadeFilter> Make(const leveldb::Slice* keys, int n,
                                 std::string& bytes) const override {
    const Stopwatch watch;
    std::string arena;
    std::vector<uint64_t> offsets{0};
    for (int i = 0; i < n; ++i) {
      arena.append(keys[i].data(), keys[i].size());
      offsets.push_back(arena.size());
    }
    const auto filter = LevelDbBloom::BuildFromBytes(
        {arena.data(), offsets.data(), static_cast<size_t>(n)}, params_);
    if (!filter) {
      bytes.push_back(kNotBuiltByte);
      return std::nullopt;
    }
    const std::string_view table(reinterpret_cast<const char*>(filter->Table().data()),
                                 filter->Table().size());
    bytes.append(table);
    MadeFilter made = InLevelDbsFormat(static_cast<uint64_t>(n), table, watch.ns(), expected_);
    made.peak_build_bytes = filter->report().peak_bytes;
    return made;
  }

  FilterAnswer Ask(std::string_view key, std::string_view filter) const override {
    // What LevelDB answers to bytes that it did not make.
    if (IsNotBuilt(filter)) return FilterAnswer::kNotBuilt;
    if (filter.size() < 2) return FilterAnswer::kNo;
    const auto k = static_cast<uint8_t>(filter.back());
    if (k > LevelDbBloom::kMaxProbes) return FilterAnswer::kMaybe;
    // The bits are read as words, which the bytes are not aligned for, nor a multiple of.
    thread_local std::vector<uint64_t> words;
    const size_t bytes = filter.size() - 1;
    words.resize(bytes / sizeof(uint64_t) + 1);
    std::memcpy(words.data(), filter.data(), bytes);
    const LevelDbBloom::View view{words.data(), Remainder32(bytes * 8), k, false};
    return view.MayContainBytes(key) ? FilterAnswer::kMaybe : FilterAnswer::kNo;
  }

 private:
  const LevelDbBloom::Params params_;
  // So that either can read what the other wrote.
  const std::string name_ = "leveldb.BuiltinBloomFilter2";
  const std::string description_;
  mutable ExpectedBySize expected_;
};

class BuiltIn final : public FilterFormat {
 public:
  explicit BuiltIn(uint32_t bits_per_key)
      : policy_(leveldb::NewBloomFilterPolicy(static_cast<int>(bits_per_key))),
        name_(policy_->Name()),
        description_(fmt::format("NewBloomFilterPolicy({})", bits_per_key)) {}

  const std::string& name() const override { return name_; }
  const std::string& description() const override { return description_; }

  std::optional<MadeFilter> Make(const leveldb::Slice* keys, int n,
                                 std::string& bytes) const override {
    const Stopwatch watch;
    const size_t before = bytes.size();
    policy_->CreateFilter(keys, n, &bytes);
    return InLevelDbsFormat(static_cast<uint64_t>(n), std::string_view(bytes).substr(before),
                            watch.ns(), expected_);
  }
  FilterAnswer Ask(std::string_view key, std::string_view filter) const override {
    return policy_->KeyMayMatch({key.data(), key.size()}, {filter.data(), filter.size()})
               ? FilterAnswer::kMaybe
               : FilterAnswer::kNo;
  }

 private:
  const std::unique_ptr<const leveldb::FilterPolicy> policy_;
  const std::string name_;
  const std::string description_;
  mutable ExpectedBySize expected_;
};

// LevelDB stores numbers of four bytes with the lowest first.
uint64_t U32At(std::string_view bytes, size_t offset) {
  uint64_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[offset + i])} << (8 * i);
  }
  return value;
}

}  // namespace

std::unique_ptr<FilterFormat> SerializedFilters(const FilterPolicy& policy, uint64_t hash_seed,
                                                uint64_t filter_seed, uint64_t loaded_filters) {
  return std::make_unique<Serialized>(policy, hash_seed, filter_seed, loaded_filters);
}

std::unique_ptr<FilterFormat> LevelDbBloomFilters(uint32_t bits_per_key) {
  return std::make_unique<LevelDbBlooms>(bits_per_key);
}

std::unique_ptr<FilterFormat> BuiltInFilters(uint32_t bits_per_key) {
  return std::make_unique<BuiltIn>(bits_per_key);
}

void CountingPolicy::CreateFilter(const leveldb::Slice* keys, int n, std::string* bytes) const {
  const size_t before = bytes->size();
  const std::optional<MadeFilter> made = format_->Make(keys, n, *bytes);
  if (!made) {
    ++not_built_;
    return;
  }
  ++made_;
  build_ns_ += made->build_ns;
  const std::lock_guard lock(mutex_);
  filters_[ContentHash(std::string_view(*bytes).substr(before))] = *made;
}

bool CountingPolicy::KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const {
  const std::string_view key_bytes(key.data(), key.size());
  const std::string_view filter_bytes(filter.data(), filter.size());
  if (trace_ == nullptr) return format_->Ask(key_bytes, filter_bytes) != FilterAnswer::kNo;
  const Stopwatch watch;
  const FilterAnswer answer = format_->Ask(key_bytes, filter_bytes);
  traced_ns_ += watch.ns();
  trace_->push_back({filter.data(), answer});
  return answer != FilterAnswer::kNo;
}

const MadeFilter* CountingPolicy::Find(std::string_view filter) const {
  const std::lock_guard lock(mutex_);
  const auto found = filters_.find(ContentHash(filter));
  return found != filters_.end() ? &found->second : nullptr;
}

std::optional<std::vector<std::string_view>> FiltersOfBlock(std::string_view block) {
  // The filters, the offset of each, the offset of these offsets, and the logarithm of 2 KiB.
  constexpr size_t kOffsetBytes = 4;
  if (block.size() < kOffsetBytes + 1) return std::nullopt;
  const size_t end = block.size() - kOffsetBytes - 1;
  const uint64_t offsets = U32At(block, end);
  if (offsets > end || (end - offsets) % kOffsetBytes != 0) return std::nullopt;
  std::vector<std::string_view> filters;
  for (size_t at = offsets; at < end; at += kOffsetBytes) {
    const uint64_t begin = U32At(block, at);
    // Behind the last one lies the offset of the offsets, which is where it ends.
    const uint64_t limit = U32At(block, at + kOffsetBytes);
    if (begin > limit || limit > offsets) return std::nullopt;
    if (begin < limit) filters.push_back(block.substr(begin, limit - begin));
  }
  return filters;
}

}  // namespace filterbench::lsm
