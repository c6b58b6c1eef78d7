#include "workloads/lsm/table.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "workloads/lsm/table_format.h"

namespace filterbench::lsm {
namespace {

using Clock = std::chrono::steady_clock;

// Memory for direct reads, which grows as it must and is used again.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(const AlignedBuffer&) = delete;
  AlignedBuffer& operator=(const AlignedBuffer&) = delete;
  ~AlignedBuffer() { std::free(bytes_); }

  std::span<std::byte> Take(uint64_t size) {
    if (size > capacity_) {
      std::free(bytes_);
      capacity_ = 0;
      bytes_ = static_cast<std::byte*>(std::aligned_alloc(kDirectAlignment, RoundedUp(size)));
      if (bytes_ == nullptr) throw std::bad_alloc();
      capacity_ = RoundedUp(size);
    }
    return {bytes_, size};
  }

 private:
  std::byte* bytes_ = nullptr;
  uint64_t capacity_ = 0;
};

// Adds the time since its last mark to a phase; nothing without phases.
class PhaseClock {
 public:
  explicit PhaseClock(ReadPhases* phases) : phases_(phases) {
    if (phases_ != nullptr) last_ = Clock::now();
  }
  void Mark(double ReadPhases::*phase) {
    if (phases_ == nullptr) return;
    const Clock::time_point now = Clock::now();
    ++phases_->clock_readings;
    phases_->*phase += std::chrono::duration<double, std::nano>(now - last_).count();
    last_ = now;
  }

 private:
  ReadPhases* phases_;
  Clock::time_point last_;
};

struct Place {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct Entry {
  std::string_view key;
  std::optional<std::string_view> value;
};

// A data block in memory whose checksum was right: bounds are still checked, since a checksum may
// be right by chance or by intent.
class Block {
 public:
  Block() = default;
  // The error says what is wrong.
  static Result<Block> Parse(std::string_view bytes, const Home& home) {
    Decoder header(bytes);
    const uint64_t checksum = header.U64();
    const uint64_t entries = header.U32();
    const uint64_t used = header.U32();
    if (!header.ok() || checksum != SectionChecksum(bytes, home)) {
      return Error{"its checksum is wrong"};
    }
    const uint64_t offset_bytes = entries * sizeof(uint32_t);
    if (entries == 0 || used > bytes.size() || used < kBlockHeaderBytes ||
        used - kBlockHeaderBytes < offset_bytes) {
      return Error{"its header is impossible"};
    }
    Block block;
    block.body_ = bytes.substr(0, used - offset_bytes);
    block.offsets_ = bytes.substr(used - offset_bytes, offset_bytes);
    return block;
  }

  uint64_t size() const { return offsets_.size() / sizeof(uint32_t); }

  std::optional<Entry> At(uint64_t index) const {
    const uint32_t offset = Decoder(offsets_.substr(index * sizeof(uint32_t))).U32();
    if (offset < kBlockHeaderBytes || offset > body_.size()) return std::nullopt;
    Decoder decoder(body_.substr(offset));
    const uint64_t key_bytes = decoder.Varint();
    const uint64_t value_bytes = decoder.Varint();
    Entry entry{.key = decoder.Raw(key_bytes), .value = std::nullopt};
    if (value_bytes != 0) entry.value = decoder.Raw(value_bytes - 1);
    if (!decoder.ok()) return std::nullopt;
    return entry;
  }

  // Index of the first entry that is not less than `key`; size() if there is none.
  std::optional<uint64_t> LowerBound(std::string_view key) const {
    uint64_t low = 0;
    uint64_t high = size();
    while (low < high) {
      const uint64_t middle = low + (high - low) / 2;
      const std::optional<Entry> entry = At(middle);
      if (!entry) return std::nullopt;
      if (entry->key < key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

 private:
  std::string_view body_;
  std::string_view offsets_;
};

class OpenTable final : public Table {
 public:
  OpenTable(std::filesystem::path path, const TableReading& reading,
            std::unique_ptr<ReadableFile> file)
      : path_(std::move(path)), reading_(reading), file_(std::move(file)) {}

  // Once, right after construction.
  std::optional<Error> ReadMeta(uint64_t number) {
    const uint64_t size = file_->size();
    if (size < kFooterBytes || size % kDirectAlignment != 0) {
      return Damage(fmt::format("has {} bytes, which no table has", size));
    }
    Result<std::string_view> footer =
        ReadSection({size - kFooterBytes, kFooterBytes}, /*file_number=*/0);
    if (!footer) return Error{footer.error()};
    Decoder decoder(*footer);
    decoder.U64();
    if (decoder.U64() != kMagic) return Damage("is no table");
    if (const uint32_t version = decoder.U32(); version != kVersion) {
      return Damage(fmt::format("has version {}, this program reads {}", version, kVersion));
    }
    prefix_bytes_ = decoder.U32();
    hash_seed_ = decoder.U64();
    facts_.number = decoder.U64();
    if (facts_.number != number) {
      return Damage(fmt::format("is file {} by its own account", facts_.number));
    }
    Place index;
    for (Place* place : {&filter_place_, &prefix_filter_place_, &index}) {
      place->offset = decoder.U64();
      place->bytes = decoder.U64();
      if (!IsPlace(*place)) return Damage("its footer points outside of it");
    }
    if (auto error = ReadIndex(index)) return error;
    if (facts_.file_bytes != size) {
      return Damage(fmt::format("has {} bytes, {} were written", size, facts_.file_bytes));
    }
    return TakeFilters();
  }

  const TableFacts& facts() const override { return facts_; }
  const KeyFilter* filter() const override { return filter_.get(); }
  const KeyFilter* prefix_filter() const override { return prefix_filter_.get(); }
  const std::string& filter_problem() const override { return filter_problem_; }

  Result<Found> Get(std::string_view key, uint64_t hash, std::string* value,
                    ReadCounters& counters, ReadPhases* phases) const override {
    PhaseClock clock(phases);
    ++counters.candidates;
    if (key < facts_.smallest || key > facts_.largest) {
      ++counters.range_skips;
      clock.Mark(&ReadPhases::filter_ns);
      return Found::kNothing;
    }
    const Result<Answer> asked = AskFilter(filter_, filter_place_, hash, counters);
    if (!asked) return Error{asked.error()};
    const Answer answer = *asked;
    clock.Mark(&ReadPhases::filter_ns);
    if (answer == Answer::kNo) {
      ++counters.filter_negatives;
      return Found::kNothing;
    }
    ++counters.index_lookups;
    const uint64_t index = BlockOf(key);
    clock.Mark(&ReadPhases::index_ns);
    const Result<Block> block = ReadBlock(index, buffer_, counters);
    if (!block) return Error{block.error()};
    const std::optional<uint64_t> at = block->LowerBound(key);
    std::optional<Entry> entry;
    if (at && *at < block->size()) entry = block->At(*at);
    if (!at || (*at < block->size() && !entry)) {
      return BlockDamage(index, "has an impossible entry");
    }
    const bool found = entry && entry->key == key;
    if (answer == Answer::kNotAsked) {
      ++counters.not_consulted;
    } else {
      ++(found ? counters.maybe_true : counters.maybe_false);
    }
    if (found && entry->value && value != nullptr) *value = *entry->value;
    clock.Mark(&ReadPhases::block_ns);
    if (!found) return Found::kNothing;
    return entry->value ? Found::kValue : Found::kTombstone;
  }

  Result<bool> MayHavePrefix(std::string_view prefix, ReadCounters& counters) const override {
    ++counters.candidates;
    if (facts_.largest < prefix || facts_.smallest.substr(0, prefix.size()) > prefix) {
      ++counters.range_skips;
      return false;
    }
    const Result<Answer> answer =
        prefix.size() == prefix_bytes_
            ? AskFilter(prefix_filter_, prefix_filter_place_,
                        HashBytes(prefix, reading_.hash_seed), counters)
            : Answer::kNotAsked;
    if (!answer) return Error{answer.error()};
    if (*answer == Answer::kNo) {
      ++counters.filter_negatives;
      return false;
    }
    // Whether a maybe was true is known once the file is read.
    if (*answer == Answer::kNotAsked) ++counters.not_consulted;
    return true;
  }

  class BlockCursor final : public Cursor {
   public:
    BlockCursor(const OpenTable& table, std::string_view first, ReadCounters& counters)
        : table_(table), counters_(counters) {
      if (first > table.facts_.largest) {
        block_index_ = table.blocks_.size();
        return;
      }
      block_index_ = table.BlockOf(first);
      if (!Load()) return;
      const std::optional<uint64_t> at = block_.LowerBound(first);
      if (!at) {
        Fail();
        return;
      }
      entry_index_ = *at;
      Settle();
    }

    bool valid() const override { return valid_; }
    std::string_view key() const override { return entry_.key; }
    std::optional<std::string_view> value() const override { return entry_.value; }
    void Next() override {
      valid_ = false;
      ++entry_index_;
      Settle();
    }
    const std::optional<Error>& error() const override { return error_; }

   private:
    bool Load() {
      Result<Block> block = table_.ReadBlock(block_index_, buffer_, counters_);
      if (!block) {
        error_ = Error{block.error()};
        return false;
      }
      block_ = *block;
      entry_index_ = 0;
      return true;
    }
    // At entry_index_, or at the begin of the next block.
    void Settle() {
      if (entry_index_ == block_.size()) {
        if (++block_index_ == table_.blocks_.size() || !Load()) return;
      }
      const std::optional<Entry> entry = block_.At(entry_index_);
      if (!entry) return Fail();
      entry_ = *entry;
      valid_ = true;
    }
    void Fail() { error_ = table_.BlockDamage(block_index_, "has an impossible entry"); }

    const OpenTable& table_;
    ReadCounters& counters_;
    AlignedBuffer buffer_;
    uint64_t block_index_ = 0;
    uint64_t entry_index_ = 0;
    Block block_;
    Entry entry_;
    bool valid_ = false;
    std::optional<Error> error_;
  };

  void DropFromPageCache() const override { file_->DropFromPageCache(); }

  std::unique_ptr<Cursor> Seek(std::string_view first, ReadCounters& counters) const override {
    return std::make_unique<BlockCursor>(*this, first, counters);
  }

  std::optional<Error> Scan(
      std::string_view first, ReadCounters& counters,
      const std::function<bool(std::string_view, std::optional<std::string_view>)>& use)
      const override {
    BlockCursor cursor(*this, first, counters);
    while (cursor.valid() && use(cursor.key(), cursor.value())) cursor.Next();
    return cursor.error();
  }

 private:
  enum class Answer { kNo, kMaybe, kNotAsked };

  Error Damage(std::string_view what) const {
    return Error{fmt::format("{}: {}", path_.string(), what)};
  }
  Error BlockDamage(uint64_t index, std::string_view what) const {
    return Damage(fmt::format("the data block at {} {}", blocks_[index].first.offset, what));
  }

  bool IsPlace(const Place& place) const {
    return place.offset % kDirectAlignment == 0 && place.bytes % kDirectAlignment == 0 &&
           place.offset <= file_->size() && place.bytes <= file_->size() - place.offset;
  }

  Home HomeOf(const Place& place) const {
    return {.file_number = facts_.number, .offset = place.offset};
  }

  Result<std::string_view> ReadBytes(const Place& place, AlignedBuffer& buffer) const {
    const std::span<std::byte> bytes = buffer.Take(place.bytes);
    if (auto error = file_->Read(place.offset, bytes)) return *error;
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }

  // The bytes of a section whose checksum is right; valid until buffer_ is used again.
  Result<std::string_view> ReadSection(const Place& place, uint64_t file_number) const {
    const Result<std::string_view> section = ReadBytes(place, buffer_);
    const Home home = {.file_number = file_number, .offset = place.offset};
    if (section && Decoder(*section).U64() != SectionChecksum(*section, home)) {
      return Damage(fmt::format("the section at {} has a wrong checksum", place.offset));
    }
    return section;
  }

  std::optional<Error> ReadIndex(const Place& place) {
    if (place.bytes < kSectionHeaderBytes) return Damage("has no index");
    Result<std::string_view> section = ReadSection(place, facts_.number);
    if (!section) return Error{section.error()};
    Decoder decoder(*section);
    decoder.U64();
    const uint64_t used = decoder.U64();
    uint64_t has_peak = 0;
    uint64_t peak = 0;
    uint64_t build_ns = 0;
    for (uint64_t* fact :
         {&facts_.file_bytes, &facts_.entries, &facts_.tombstones, &facts_.filter_bytes,
          &facts_.filter_keys, &has_peak, &peak, &build_ns}) {
      *fact = decoder.U64();
    }
    if (has_peak != 0) facts_.filter_peak_bytes = peak;
    facts_.filter_build_ns = static_cast<double>(build_ns);
    facts_.smallest = decoder.Text();
    facts_.largest = decoder.Text();
    const uint64_t blocks = decoder.U64();
    // Each takes 24 bytes or more.
    if (!decoder.ok() || used > section->size() || blocks == 0 || blocks > decoder.left() / 24) {
      return Damage("its index is impossible");
    }
    blocks_.reserve(blocks);
    for (uint64_t i = 0; i < blocks; ++i) {
      Place block;
      block.offset = decoder.U64();
      block.bytes = decoder.U64();
      std::string last_key(decoder.Text());
      const bool ascends = i == 0 || blocks_.back().second < last_key;
      if (!decoder.ok() || !IsPlace(block) || block.bytes == 0 || !ascends) {
        return Damage("its index is impossible");
      }
      blocks_.emplace_back(block, std::move(last_key));
    }
    if (blocks_.back().second != facts_.largest || facts_.largest < facts_.smallest) {
      return Damage("its index contradicts its largest key");
    }
    return std::nullopt;
  }

  // Decides whether the filters can be used, and keeps them where they are to be in memory.
  std::optional<Error> TakeFilters() {
    if (filter_place_.bytes == 0) return std::nullopt;
    if (reading_.policy == nullptr) {
      filter_problem_ = fmt::format("{}: its filter is not used: no filter was asked for",
                                    path_.string());
    } else if (reading_.hash_seed != hash_seed_) {
      filter_problem_ = fmt::format("{}: its filter is not used: keys were hashed with seed {}, "
                                    "not {}",
                                    path_.string(), hash_seed_, reading_.hash_seed);
    }
    if (!filter_problem_.empty()) return std::nullopt;
    auto filter = LoadFilter(filter_place_);
    if (!filter) return Error{filter.error()};
    filter_ = std::move(*filter);
    if (prefix_filter_place_.bytes != 0 && reading_.prefix_bytes == prefix_bytes_) {
      auto prefix_filter = LoadFilter(prefix_filter_place_);
      if (!prefix_filter) return Error{prefix_filter.error()};
      prefix_filter_ = std::move(*prefix_filter);
    } else {
      prefix_filter_place_ = {};
    }
    // Where filters are read anew each time, this was to find out whether they can be.
    if (!reading_.filters_in_memory || !filter_problem_.empty()) {
      filter_.reset();
      prefix_filter_.reset();
    }
    return std::nullopt;
  }

  // Null with filter_problem_ set where it cannot be used; the error is one of reading.
  Result<std::unique_ptr<KeyFilter>> LoadFilter(const Place& place) const {
    const auto refuse = [&](std::string_view why) {
      filter_problem_ = fmt::format("{}: its filter is not used: {}", path_.string(), why);
      return std::unique_ptr<KeyFilter>();
    };
    const Result<std::string_view> section = ReadBytes(place, filter_buffer_);
    if (!section) return Error{section.error()};
    Decoder decoder(*section);
    if (decoder.U64() != SectionChecksum(*section, HomeOf(place))) {
      return refuse("its checksum is wrong");
    }
    decoder.U64();
    const std::string_view identity = decoder.Text();
    decoder.U64();
    const std::string_view bytes = decoder.Text();
    if (!decoder.ok()) return refuse("its section is impossible");
    if (identity != reading_.policy->identity()) {
      return refuse(fmt::format("it is {}, {} was asked for", identity,
                                reading_.policy->identity()));
    }
    auto filter = reading_.policy->Load(std::as_bytes(std::span(bytes)));
    if (!filter) return refuse(filter.error());
    return std::move(*filter);
  }

  Result<Answer> AskFilter(const std::unique_ptr<KeyFilter>& filter, const Place& place,
                           uint64_t hash, ReadCounters& counters) const {
    if (filter != nullptr) return filter->MayContain(hash) ? Answer::kMaybe : Answer::kNo;
    if (reading_.filters_in_memory || place.bytes == 0 || !filter_problem_.empty()) {
      return Answer::kNotAsked;
    }
    ++counters.filter_reads;
    counters.filter_bytes += place.bytes;
    const auto loaded = LoadFilter(place);
    if (!loaded) return Error{loaded.error()};
    if (*loaded == nullptr) return Answer::kNotAsked;
    return (*loaded)->MayContain(hash) ? Answer::kMaybe : Answer::kNo;
  }

  // Of the first block whose last key is not less than `key`, which is not beyond the largest.
  uint64_t BlockOf(std::string_view key) const {
    const auto block = std::lower_bound(
        blocks_.begin(), blocks_.end(), key,
        [](const auto& candidate, std::string_view sought) { return candidate.second < sought; });
    return static_cast<uint64_t>(block - blocks_.begin());
  }

  Result<Block> ReadBlock(uint64_t index, AlignedBuffer& buffer, ReadCounters& counters) const {
    const Place& place = blocks_[index].first;
    const std::span<std::byte> bytes = buffer.Take(place.bytes);
    if (auto error = file_->Read(place.offset, bytes)) return *error;
    ++counters.block_reads;
    counters.block_bytes += place.bytes;
    Result<Block> block =
        Block::Parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, HomeOf(place));
    if (!block) return BlockDamage(index, "is damaged: " + block.error());
    return block;
  }

  const std::filesystem::path path_;
  const TableReading reading_;
  const std::unique_ptr<ReadableFile> file_;
  TableFacts facts_;
  uint32_t prefix_bytes_ = 0;
  uint64_t hash_seed_ = 0;
  Place filter_place_;
  Place prefix_filter_place_;
  std::vector<std::pair<Place, std::string>> blocks_;  // with their last keys
  std::unique_ptr<KeyFilter> filter_;
  std::unique_ptr<KeyFilter> prefix_filter_;
  mutable std::string filter_problem_;  // also found when a filter is read anew
  mutable AlignedBuffer buffer_;
  mutable AlignedBuffer filter_buffer_;
};

}  // namespace

ReadCounters& ReadCounters::operator+=(const ReadCounters& other) {
  for (uint64_t ReadCounters::*counter :
       {&ReadCounters::candidates, &ReadCounters::range_skips, &ReadCounters::not_consulted,
        &ReadCounters::filter_negatives, &ReadCounters::maybe_true, &ReadCounters::maybe_false,
        &ReadCounters::index_lookups, &ReadCounters::block_reads, &ReadCounters::block_bytes,
        &ReadCounters::filter_reads, &ReadCounters::filter_bytes}) {
    this->*counter += other.*counter;
  }
  return *this;
}

Result<std::unique_ptr<Table>> Table::Open(Files& files, const std::filesystem::path& directory,
                                           uint64_t number, const TableReading& reading) {
  const std::filesystem::path path = directory / TableName(number);
  auto file = files.OpenForReading(path, reading.direct_io);
  if (!file) return Error{file.error()};
  auto table = std::make_unique<OpenTable>(path, reading, std::move(*file));
  if (auto error = table->ReadMeta(number)) return *error;
  return std::unique_ptr<Table>(std::move(table));
}

}  // namespace filterbench::lsm
