#include <algorithm>
#include <chrono>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "workloads/lsm/table.h"
#include "workloads/lsm/table_format.h"

namespace filterbench::lsm {
namespace {

using Clock = std::chrono::steady_clock;

class Builder final : public TableBuilder {
 public:
  Builder(Files& files, const std::filesystem::path& directory, uint64_t number,
          const TableFormat& format, std::unique_ptr<WritableFile> file,
          std::filesystem::path temporary)
      : files_(files),
        path_(directory / TableName(number)),
        temporary_(std::move(temporary)),
        format_(format),
        file_(std::move(file)) {
    facts_.number = number;
  }

  ~Builder() override {
    if (finished_) return;
    file_.reset();
    files_.Remove(temporary_);
  }

  std::optional<Error> Add(std::string_view key, std::optional<std::string_view> value) override {
    if (failed_) return failed_;
    if (facts_.entries != 0 && key <= last_key_) {
      return Error{path_.string() + ": keys must be added in ascending order, each once"};
    }
    Encoder entry;
    entry.Varint(key.size());
    entry.Varint(value ? value->size() + 1 : 0);
    entry.Raw(key);
    if (value) entry.Raw(*value);
    const uint64_t bytes = entry.size() + sizeof(uint32_t);
    if (!offsets_.empty() && BlockBytes() + bytes > format_.block_bytes) {
      if (auto error = FinishBlock()) return error;
    }
    if (offsets_.empty()) block_.Raw(std::string(kBlockHeaderBytes, '\0'));
    if (block_.size() + bytes > UINT32_MAX) {
      return Error{path_.string() + ": an entry of 4 GiB or more"};
    }
    offsets_.push_back(static_cast<uint32_t>(block_.size()));
    block_.Raw(entry.bytes());

    if (facts_.entries == 0) facts_.smallest = key;
    last_key_ = key;
    ++facts_.entries;
    if (!value) ++facts_.tombstones;
    if (format_.policy == nullptr) return std::nullopt;
    hashes_.push_back(HashBytes(key, format_.hash_seed));
    if (format_.prefix_bytes != 0 && key.size() >= format_.prefix_bytes) {
      const std::string_view prefix = key.substr(0, format_.prefix_bytes);
      if (prefix_hashes_.empty() || prefix != last_prefix_) {
        last_prefix_ = prefix;
        prefix_hashes_.push_back(HashBytes(prefix, format_.hash_seed));
      }
    }
    return std::nullopt;
  }

  uint64_t bytes_so_far() const override {
    return written_ + (offsets_.empty() ? 0 : RoundedUp(BlockBytes()));
  }

  Result<TableFacts> Finish() override {
    if (failed_) return *failed_;
    if (facts_.entries == 0) return Error{path_.string() + ": a table must have an entry"};
    if (auto error = FinishBlock()) return *error;
    facts_.largest = last_key_;

    Place filter;
    Place prefix_filter;
    if (format_.policy != nullptr) {
      facts_.filter_keys = hashes_.size();
      if (auto error = WriteFilter(hashes_, filter)) return *error;
      if (format_.prefix_bytes != 0) {
        if (auto error = WriteFilter(prefix_hashes_, prefix_filter)) return *error;
      }
    }
    facts_.file_bytes = 0;  // known once the index is: its size does not depend on the number
    const uint64_t index_bytes = RoundedUp(IndexSection().size());
    facts_.file_bytes = written_ + index_bytes + kFooterBytes;
    Place index;
    if (auto error = Write(IndexSection(), index)) return *error;

    Encoder footer;
    footer.U64(0);
    footer.U64(kMagic);
    footer.U32(kVersion);
    footer.U32(format_.policy != nullptr ? format_.prefix_bytes : 0);
    footer.U64(format_.hash_seed);
    footer.U64(facts_.number);
    for (const Place& place : {filter, prefix_filter, index}) {
      footer.U64(place.offset);
      footer.U64(place.bytes);
    }
    Place ignored;
    if (auto error = Write(footer.FinishSection({.offset = written_}), ignored)) return *error;
    if (auto error = file_->SyncAndClose()) return *error;
    if (auto error = files_.Rename(temporary_, path_)) return *error;
    finished_ = true;
    return facts_;
  }

 private:
  struct Place {
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  // Of the section that is written next.
  Home NextHome() const { return {.file_number = facts_.number, .offset = written_}; }

  // Of the block under way, with its offsets.
  uint64_t BlockBytes() const { return block_.size() + offsets_.size() * sizeof(uint32_t); }

  std::optional<Error> Write(std::string_view section, Place& place) {
    place = {written_, section.size()};
    written_ += section.size();
    failed_ = file_->Append(std::as_bytes(std::span(section)));
    return failed_;
  }

  std::optional<Error> FinishBlock() {
    for (const uint32_t offset : offsets_) block_.U32(offset);
    block_.Patch(kChecksumBytes, offsets_.size() | block_.size() << 32);
    offsets_.clear();
    blocks_.push_back({{}, last_key_});
    return Write(block_.FinishSection(NextHome()), blocks_.back().first);
  }

  std::optional<Error> WriteFilter(const std::vector<uint64_t>& hashes, Place& place) {
    const Clock::time_point start = Clock::now();
    const uint64_t seed = Mix64(format_.filter_seed + kGoldenGamma * (&hashes == &hashes_ ? 1 : 2));
    const auto filter = format_.policy->Build(hashes, seed);
    facts_.filter_build_ns += static_cast<double>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
    if (!filter) return Error{fmt::format("{}: its filter: {}", path_.string(), filter.error())};
    if (const auto peak = (*filter)->PeakBuildBytes()) {
      facts_.filter_peak_bytes = std::max(facts_.filter_peak_bytes.value_or(0), *peak);
    }
    facts_.filter_bytes += (*filter)->SizeInBytes();
    const std::vector<std::byte> bytes = (*filter)->Serialize();
    Encoder section;
    section.U64(0);
    section.U64(0);
    section.Text(format_.policy->identity());
    section.U64(hashes.size());
    section.Text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    section.Patch(kChecksumBytes, section.size());
    return Write(section.FinishSection(NextHome()), place);
  }

  std::string IndexSection() const {
    Encoder section;
    section.U64(0);
    section.U64(0);
    for (const uint64_t fact :
         {facts_.file_bytes, facts_.entries, facts_.tombstones, facts_.filter_bytes,
          facts_.filter_keys, uint64_t{facts_.filter_peak_bytes.has_value()},
          facts_.filter_peak_bytes.value_or(0), static_cast<uint64_t>(facts_.filter_build_ns)}) {
      section.U64(fact);
    }
    section.Text(facts_.smallest);
    section.Text(facts_.largest);
    section.U64(blocks_.size());
    for (const auto& [place, last_key] : blocks_) {
      section.U64(place.offset);
      section.U64(place.bytes);
      section.Text(last_key);
    }
    section.Patch(kChecksumBytes, section.size());
    return section.FinishSection(NextHome());
  }

  Files& files_;
  const std::filesystem::path path_;
  const std::filesystem::path temporary_;
  const TableFormat format_;
  std::unique_ptr<WritableFile> file_;
  bool finished_ = false;
  std::optional<Error> failed_;  // of a write: what follows it would be in the wrong place

  TableFacts facts_;
  uint64_t written_ = 0;
  std::string last_key_;
  Encoder block_;
  std::vector<uint32_t> offsets_;
  std::vector<std::pair<Place, std::string>> blocks_;  // with their last keys
  std::vector<uint64_t> hashes_;
  std::vector<uint64_t> prefix_hashes_;
  std::string last_prefix_;
};

}  // namespace

std::string TableName(uint64_t number) { return fmt::format("{:06}.table", number); }

Result<std::unique_ptr<TableBuilder>> TableBuilder::Create(Files& files,
                                                           const std::filesystem::path& directory,
                                                           uint64_t number,
                                                           const TableFormat& format) {
  const std::filesystem::path temporary = directory / (TableName(number) + ".new");
  auto file = files.CreateNew(temporary);
  if (!file) return Error{file.error()};
  return std::unique_ptr<TableBuilder>(std::make_unique<Builder>(
      files, directory, number, format, std::move(*file), temporary));
}

}  // namespace filterbench::lsm
