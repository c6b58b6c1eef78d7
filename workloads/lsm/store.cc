#include "workloads/lsm/store.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "filters/hash.h"
#include "workloads/lsm/cursors.h"
#include "workloads/lsm/manifest.h"
#include "workloads/lsm/memtable.h"
#include "workloads/lsm/picking.h"

namespace filterbench::lsm {
namespace {

using Clock = std::chrono::steady_clock;

double NsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// Adds the time of its life to `ns`.
class AddTime {
 public:
  explicit AddTime(double& ns) : ns_(ns) {}
  ~AddTime() { ns_ += NsSince(begin_); }
  AddTime(const AddTime&) = delete;
  AddTime& operator=(const AddTime&) = delete;

 private:
  double& ns_;
  const Clock::time_point begin_ = Clock::now();
};

constexpr std::string_view kTableSuffix = ".table";
// A merge of one file after another calls StoreOptions::alive this often as well.
constexpr uint64_t kEntriesBetweenSignsOfLife = 1 << 16;

// The number in the name of a table, finished or not (TableName); nothing for any other name.
std::optional<uint64_t> NumberOfTable(std::string_view name) {
  const size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  // 18 digits are below 2^64, and more than a store will ever count to.
  if (digits < 6 || digits > 18 || !name.substr(digits).starts_with(kTableSuffix)) {
    return std::nullopt;
  }
  uint64_t number = 0;
  for (const char digit : name.substr(0, digits)) {
    number = number * 10 + static_cast<uint64_t>(digit - '0');
  }
  return number;
}

std::string Contradiction(const StoreOptions& options) {
  if (options.files == nullptr) return "files: is null";
  if (options.memtable_bytes < 1) return "memtable_bytes: must be at least 1, is 0";
  if (options.level1_bytes < 1) return "level1_bytes: must be at least 1, is 0";
  if (options.level0_files < 1) return "level0_files: must be at least 1, is 0";
  if (options.size_ratio < 2) {
    return fmt::format("size_ratio: must be at least 2, is {}", options.size_ratio);
  }
  if (options.file_bytes < 1) return "file_bytes: must be at least 1, is 0";
  if (options.min_threshold < 2) {
    return fmt::format("min_threshold: must be at least 2, is {}", options.min_threshold);
  }
  if (options.max_threshold < options.min_threshold) {
    return fmt::format("max_threshold: must be at least min_threshold {}, is {}",
                       options.min_threshold, options.max_threshold);
  }
  if (!(options.bucket_low < 1)) {
    return fmt::format("bucket_low: must be below 1, is {}", options.bucket_low);
  }
  if (!(options.bucket_high > 1)) {
    return fmt::format("bucket_high: must be above 1, is {}", options.bucket_high);
  }
  return {};
}

struct File {
  uint64_t number = 0;
  uint64_t data_bytes = 0;  // of keys and values: what sizes of levels and buckets are counted in
  std::string filter;       // identity of the policy that it was written with; empty: none
  bool policy_known = true;  // whether there was one to read that filter with
  std::shared_ptr<const Table> table;
};

// levels[0] from the newest to the oldest, deeper ones in the order of their keys.
using Levels = std::vector<std::vector<File>>;

std::vector<const Table*> TablesOf(std::span<const File> files) {
  std::vector<const Table*> tables;
  for (const File& file : files) tables.push_back(file.table.get());
  return tables;
}

std::span<const File> Part(const std::vector<File>& files, Stretch stretch) {
  return std::span(files).subspan(stretch.begin, stretch.size());
}

// The file of a level that does not overlap that may have the key: of a key between two files or
// beyond the last, one that its range rules out.
const File& CandidateIn(const std::vector<File>& level, std::string_view key) {
  const auto at = std::partition_point(level.begin(), level.end(), [&](const File& file) {
    return file.table->facts().largest < key;
  });
  return at == level.end() ? level.back() : *at;
}

bool Covers(const std::vector<File>& level, std::string_view key) {
  if (level.empty()) return false;
  const TableFacts& facts = CandidateIn(level, key).table->facts();
  return facts.smallest <= key && key <= facts.largest;
}

class StoreImplementation final : public Store {
 public:
  StoreImplementation(const std::filesystem::path& directory, const StoreOptions& options)
      : directory_(directory), options_(options) {}

  std::optional<Error> Recover();

  std::optional<Error> Put(std::string_view key, std::string_view value) override {
    facts_.user_bytes += key.size() + value.size();
    return Write(key, value);
  }
  std::optional<Error> Delete(std::string_view key) override {
    facts_.user_bytes += key.size();
    return Write(key, std::nullopt);
  }
  std::optional<Error> Flush() override;
  std::optional<Error> CompactAll() override;
  std::optional<Error> RebuildFilters() override;

  Result<bool> Get(std::string_view key, std::string* value, ReadStats* stats) override;
  std::optional<Error> Scan(
      std::string_view first, ReadStats* stats,
      const std::function<bool(std::string_view, std::string_view)>& use) override;
  std::optional<Error> ScanPrefix(
      std::string_view prefix, ReadStats* stats,
      const std::function<bool(std::string_view, std::string_view)>& use) override;

  std::vector<RunInfo> runs() const override;
  std::vector<const Table*> tables(size_t run) const override {
    return TablesOf(RunFiles(run).second);
  }
  const WriteFacts& write_facts() const override { return facts_; }
  uint64_t memtable_entries() const override { return memtable_.entries(); }
  std::vector<std::string> warnings() const override;
  void DropFromPageCache() const override;

 private:
  // What files are written for.
  struct Output {
    int level = 0;
    bool deepest = false;
    uint64_t cut_bytes = std::numeric_limits<uint64_t>::max();
    // Whether an older version of the key may be in a file that does not take part.
    std::function<bool(std::string_view key)> has_older;
  };

  std::filesystem::path PathOf(uint64_t number) const { return directory_ / TableName(number); }
  // Why the filter of a file cannot be used; empty if it can, or has none.
  std::string ProblemOf(const File& file) const {
    if (file.policy_known) return file.table->filter_problem();
    return fmt::format("{}: its filter is not used: no policy is given for {}",
                       PathOf(file.number).string(), file.filter);
  }
  const FilterPolicy* PolicyOf(int level, bool deepest) const {
    return options_.policy_of ? options_.policy_of(level, deepest) : nullptr;
  }
  // Whether no other file is older than those of a level, for policy_of.
  bool IsDeepest(const Levels& levels, size_t level) const;

  std::optional<Error> Write(std::string_view key, std::optional<std::string_view> value);
  std::optional<Error> FlushMemtable();
  std::optional<Error> CompactWhatIsDue();
  std::optional<Error> CompactLevel(const LeveledPick& pick);
  std::optional<Error> CompactStretch(Stretch stretch);

  Result<File> OpenFile(uint64_t number, uint64_t data_bytes, const std::string& filter,
                        const FilterPolicy* policy);
  // All entries to new files, tombstones without need left out. After an error none is left.
  Result<std::vector<File>> WriteFiles(Table::Cursor& entries, const Output& output,
                                       uint64_t& bytes_written);
  Result<File> FinishFile(TableBuilder& builder, uint64_t data_bytes, const FilterPolicy* policy,
                          uint64_t& bytes_written);
  // Makes these the store's files; those that no longer are become obsolete.
  std::optional<Error> Install(Levels levels);
  std::optional<Error> RemoveObsolete();

  // Level and files of a sorted run, counted as runs() does.
  std::pair<int, std::span<const File>> RunFiles(size_t run) const;
  size_t RunCount() const;
  // Live entries whose keys begin with `prefix`, from where the cursors are.
  std::optional<Error> UseLive(
      std::vector<std::unique_ptr<Table::Cursor>> newest_first, std::string_view prefix,
      const std::function<bool(std::string_view, std::string_view)>& use) const;

  const std::filesystem::path directory_;
  const StoreOptions options_;
  Memtable memtable_;
  Levels levels_{1};
  uint64_t next_number_ = 1;
  std::vector<uint64_t> obsolete_;  // files that are to be removed
  std::vector<std::string> resume_after_;
  std::optional<Error> unwritable_;
  WriteFacts facts_;
};

std::optional<Error> StoreImplementation::Recover() {
  const Result<std::vector<std::string>> names = options_.files->List(directory_);
  if (!names) return Error{names.error()};
  const std::set<std::string, std::less<>> present(names->begin(), names->end());

  if (!present.contains(kManifestName)) {
    // A store has a list of its files from its first moment on, so tables without one are those of
    // a store that lost it: nothing to be removed, or to be taken for an empty store.
    for (const std::string& name : present) {
      if (name == kNewManifestName) continue;
      return Error{fmt::format("{}: is missing, but the directory has {}",
                               (directory_ / kManifestName).string(), name)};
    }
    if (present.contains(kNewManifestName)) {
      if (auto error = options_.files->Remove(directory_ / kNewManifestName)) return error;
    }
    return WriteManifest(*options_.files, directory_, {.next_number = 1, .levels = {{}}});
  }

  const Result<Manifest> manifest = ReadManifest(*options_.files, directory_);
  if (!manifest) return Error{manifest.error()};
  next_number_ = manifest->next_number;
  std::set<uint64_t> listed;
  levels_.assign(std::max<size_t>(manifest->levels.size(), 1), {});
  for (size_t i = 0; i < manifest->levels.size(); ++i) {
    for (const Manifest::File& file : manifest->levels[i]) {
      if (!present.contains(TableName(file.number))) {
        return Error{fmt::format("{}: is missing", PathOf(file.number).string())};
      }
      listed.insert(file.number);
    }
    if (i > 0 && !manifest->levels[i].empty() && options_.shape != Shape::kLeveled) {
      return Error{fmt::format("{}: the store has files in level {}; it cannot be opened as {}",
                               (directory_ / kManifestName).string(), i,
                               kShapeNames[static_cast<size_t>(options_.shape)])};
    }
  }

  // Before anything is removed: is what is listed sound?
  for (size_t i = 0; i < manifest->levels.size(); ++i) {
    // The level as it is listed says which level is the deepest.
    for (const Manifest::File& file : manifest->levels[i]) {
      levels_[i].push_back({.number = file.number});
    }
  }
  for (size_t i = 0; i < manifest->levels.size(); ++i) {
    for (size_t j = 0; j < levels_[i].size(); ++j) {
      const Manifest::File& entry = manifest->levels[i][j];
      const FilterPolicy* policy = nullptr;
      if (!entry.filter.empty()) {
        policy = options_.policy_named ? options_.policy_named(entry.filter)
                                       : PolicyOf(static_cast<int>(i), IsDeepest(levels_, i));
      }
      Result<File> file = OpenFile(entry.number, entry.data_bytes, entry.filter, policy);
      if (!file) return Error{file.error()};
      const TableFacts& facts = file->table->facts();
      if (facts.file_bytes != entry.file_bytes) {
        return Error{fmt::format("{}: damaged: it has {} bytes, {} says {}",
                                 PathOf(entry.number).string(), facts.file_bytes, kManifestName,
                                 entry.file_bytes)};
      }
      if (i > 0 && j > 0 && levels_[i][j - 1].table->facts().largest >= facts.smallest) {
        return Error{fmt::format("{}: damaged: {} and {} of level {} overlap",
                                 (directory_ / kManifestName).string(),
                                 TableName(levels_[i][j - 1].number), TableName(entry.number), i)};
      }
      levels_[i][j] = *std::move(file);
    }
  }

  // What a crash left behind. Other files are not ours.
  for (const std::string& name : present) {
    const std::optional<uint64_t> number = NumberOfTable(name);
    const bool live = number && listed.contains(*number) && name == TableName(*number);
    if (live || (!number && name != kNewManifestName)) continue;
    if (number) next_number_ = std::max(next_number_, *number + 1);
    if (auto error = options_.files->Remove(directory_ / name)) return error;
  }
  return std::nullopt;
}

bool StoreImplementation::IsDeepest(const Levels& levels, size_t level) const {
  if (options_.shape != Shape::kLeveled) return levels[0].size() == 1;
  if (level == 0) return false;
  return std::all_of(levels.begin() + static_cast<ptrdiff_t>(level) + 1, levels.end(),
                     [](const std::vector<File>& deeper) { return deeper.empty(); });
}

// --- Writing ---

std::optional<Error> StoreImplementation::Write(std::string_view key,
                                                std::optional<std::string_view> value) {
  memtable_.Write(key, value);
  if (memtable_.bytes() < options_.memtable_bytes) return std::nullopt;
  return Flush();
}

std::optional<Error> StoreImplementation::Flush() {
  if (auto error = FlushMemtable()) return error;
  if (auto error = CompactWhatIsDue()) return error;
  return RemoveObsolete();
}

std::optional<Error> StoreImplementation::FlushMemtable() {
  if (memtable_.entries() == 0) return std::nullopt;
  const AddTime time(facts_.flush_ns);
  const std::unique_ptr<Table::Cursor> entries = memtable_.Seek({});
  const Output output = {.level = 0,
                         .has_older = [](std::string_view) { return true; }};
  Result<std::vector<File>> files = WriteFiles(*entries, output, facts_.flushed_bytes);
  if (!files) return Error{files.error()};
  Levels levels = levels_;
  levels[0].insert(levels[0].begin(), files->begin(), files->end());
  if (auto error = Install(std::move(levels))) return error;
  memtable_.Clear();
  ++facts_.flushes;
  return std::nullopt;
}

std::optional<Error> StoreImplementation::CompactWhatIsDue() {
  while (true) {
    std::optional<Error> error;
    if (options_.shape == Shape::kLeveled) {
      std::vector<std::vector<FileExtent>> extents(levels_.size());
      for (size_t i = 0; i < levels_.size(); ++i) {
        for (const File& file : levels_[i]) {
          const TableFacts& facts = file.table->facts();
          extents[i].push_back({file.data_bytes, facts.smallest, facts.largest});
        }
      }
      const auto pick = PickLeveled(extents, options_, resume_after_);
      if (!pick) return std::nullopt;
      error = CompactLevel(*pick);
    } else if (options_.shape == Shape::kSizeTiered) {
      std::vector<uint64_t> bytes;
      for (const File& file : levels_[0]) bytes.push_back(file.data_bytes);
      const auto stretch = PickSizeTiered(bytes, options_);
      if (!stretch) return std::nullopt;
      error = CompactStretch(*stretch);
    } else {
      return std::nullopt;
    }
    if (error) return error;
    ++facts_.compactions;
    if ((error = RemoveObsolete())) return error;
  }
}

std::optional<Error> StoreImplementation::CompactLevel(const LeveledPick& pick) {
  const AddTime time(facts_.compaction_ns);
  Levels levels = levels_;
  const size_t from = static_cast<size_t>(pick.level);
  const size_t to = from + 1;
  if (levels.size() <= to) levels.resize(to + 1);

  ReadCounters unused;
  std::vector<std::unique_ptr<Table::Cursor>> inputs;
  // A file of level 0 by itself, since they overlap; of a deeper level it is one anyway.
  for (const File& file : Part(levels[from], pick.upper)) {
    inputs.push_back(file.table->Seek({}, unused));
  }
  inputs.push_back(SeekInRun(TablesOf(Part(levels[to], pick.lower)), {}, unused));
  const std::unique_ptr<Table::Cursor> entries = Merge(std::move(inputs));
  const Output output = {.level = static_cast<int>(to),
                         .deepest = IsDeepest(levels, to),
                         .cut_bytes = options_.file_bytes,
                         .has_older = [&](std::string_view key) {
                           for (size_t i = to + 1; i < levels_.size(); ++i) {
                             if (Covers(levels_[i], key)) return true;
                           }
                           return false;
                         }};
  Result<std::vector<File>> files = WriteFiles(*entries, output, facts_.compacted_bytes);
  if (!files) return Error{files.error()};

  const auto replace = [](std::vector<File>& level, Stretch stretch, std::span<const File> by) {
    const auto at = level.erase(level.begin() + static_cast<ptrdiff_t>(stretch.begin),
                                level.begin() + static_cast<ptrdiff_t>(stretch.end));
    level.insert(at, by.begin(), by.end());
  };
  replace(levels[from], pick.upper, {});
  replace(levels[to], pick.lower, *files);
  return Install(std::move(levels));
}

std::optional<Error> StoreImplementation::CompactStretch(Stretch stretch) {
  const AddTime time(facts_.compaction_ns);
  Levels levels = levels_;
  ReadCounters unused;
  std::vector<std::unique_ptr<Table::Cursor>> inputs;
  for (const File& file : Part(levels[0], stretch)) {
    inputs.push_back(file.table->Seek({}, unused));
  }
  const std::unique_ptr<Table::Cursor> entries = Merge(std::move(inputs));
  const bool oldest = stretch.end == levels[0].size();
  const Output output = {.level = 0,
                         .deepest = stretch.size() == levels[0].size(),
                         .has_older = [&](std::string_view) { return !oldest; }};
  Result<std::vector<File>> files = WriteFiles(*entries, output, facts_.compacted_bytes);
  if (!files) return Error{files.error()};
  const auto at = levels[0].erase(levels[0].begin() + static_cast<ptrdiff_t>(stretch.begin),
                                  levels[0].begin() + static_cast<ptrdiff_t>(stretch.end));
  levels[0].insert(at, files->begin(), files->end());
  return Install(std::move(levels));
}

std::optional<Error> StoreImplementation::CompactAll() {
  if (auto error = FlushMemtable()) return error;
  uint64_t bytes = 0;
  size_t deepest = 1;
  std::vector<std::unique_ptr<Table::Cursor>> inputs;
  ReadCounters unused;
  for (size_t run = 0; run < RunCount(); ++run) {
    const auto [level, files] = RunFiles(run);
    for (const File& file : files) bytes += file.data_bytes;
    deepest = std::max(deepest, static_cast<size_t>(level));
    inputs.push_back(SeekInRun(TablesOf(files), {}, unused));
  }
  if (inputs.empty()) return std::nullopt;

  const AddTime time(facts_.compaction_ns);
  const bool leveled = options_.shape == Shape::kLeveled;
  size_t to = 0;
  if (leveled) {
    // As deep as it takes to be within the limit, so that the next flush does not move it.
    to = deepest;
    while (LevelLimitBytes(static_cast<int>(to), options_) < bytes) ++to;
  }
  const std::unique_ptr<Table::Cursor> entries = Merge(std::move(inputs));
  const Output output = {
      .level = static_cast<int>(to),
      .deepest = true,
      .cut_bytes = leveled ? options_.file_bytes : std::numeric_limits<uint64_t>::max(),
      .has_older = [](std::string_view) { return false; }};
  Result<std::vector<File>> files = WriteFiles(*entries, output, facts_.compacted_bytes);
  if (!files) return Error{files.error()};
  Levels levels(to + 1);
  levels[to] = *std::move(files);
  if (auto error = Install(std::move(levels))) return error;
  ++facts_.compactions;
  return RemoveObsolete();
}

std::optional<Error> StoreImplementation::RebuildFilters() {
  Levels levels = levels_;
  std::vector<uint64_t> written;
  for (size_t i = 0; i < levels.size(); ++i) {
    const Output output = {.level = static_cast<int>(i),
                           .deepest = IsDeepest(levels_, i),
                           .has_older = [](std::string_view) { return true; }};
    for (File& file : levels[i]) {
      ReadCounters unused;
      uint64_t bytes_written = 0;
      const std::unique_ptr<Table::Cursor> entries = file.table->Seek({}, unused);
      Result<std::vector<File>> rebuilt = WriteFiles(*entries, output, bytes_written);
      if (!rebuilt) {
        for (const uint64_t number : written) obsolete_.push_back(number);
        (void)RemoveObsolete();
        return Error{rebuilt.error()};
      }
      file = std::move(rebuilt->front());
      written.push_back(file.number);
    }
  }
  if (auto error = Install(std::move(levels))) return error;
  return RemoveObsolete();
}

Result<File> StoreImplementation::OpenFile(uint64_t number, uint64_t data_bytes,
                                           const std::string& filter,
                                           const FilterPolicy* policy) {
  const TableReading reading = {.policy = policy,
                                .prefix_bytes = options_.prefix_bytes,
                                .hash_seed = options_.hash_seed,
                                .direct_io = options_.direct_io,
                                .filters_in_memory = options_.filters_in_memory};
  Result<std::unique_ptr<Table>> table =
      Table::Open(*options_.files, directory_, number, reading);
  if (!table) return Error{table.error()};
  File file = {.number = number,
               .data_bytes = data_bytes,
               .filter = filter,
               .policy_known = filter.empty() || policy != nullptr};
  file.table = *std::move(table);
  return file;
}

Result<std::vector<File>> StoreImplementation::WriteFiles(Table::Cursor& entries,
                                                          const Output& output,
                                                          uint64_t& bytes_written) {
  if (unwritable_) return *unwritable_;
  const FilterPolicy* policy = PolicyOf(output.level, output.deepest);
  std::vector<File> files;
  const auto fail = [&](Error error) {
    for (const File& file : files) obsolete_.push_back(file.number);
    // The first error is the one to be told; what cannot be removed is tried again.
    (void)RemoveObsolete();
    return error;
  };

  std::unique_ptr<TableBuilder> builder;
  uint64_t data_bytes = 0;
  const auto finish = [&]() -> std::optional<Error> {
    Result<File> file = FinishFile(*builder, data_bytes, policy, bytes_written);
    builder.reset();
    data_bytes = 0;
    if (!file) return Error{file.error()};
    files.push_back(*std::move(file));
    options_.alive();
    return std::nullopt;
  };
  uint64_t dropped = 0;
  for (uint64_t read = 1; entries.valid(); entries.Next(), ++read) {
    if (read % kEntriesBetweenSignsOfLife == 0) options_.alive();
    if (!entries.value() && !output.has_older(entries.key())) {
      ++dropped;
      continue;
    }
    if (builder != nullptr && data_bytes >= output.cut_bytes) {
      if (auto error = finish()) return fail(*error);
    }
    if (builder == nullptr) {
      const uint64_t number = next_number_++;
      const TableFormat format = {
          .block_bytes = options_.block_bytes,
          .policy = policy,
          .prefix_bytes = options_.prefix_bytes,
          .hash_seed = options_.hash_seed,
          .filter_seed = Mix64(options_.filter_seed + number * kGoldenGamma)};
      Result<std::unique_ptr<TableBuilder>> created =
          TableBuilder::Create(*options_.files, directory_, number, format);
      if (!created) return fail({created.error()});
      builder = *std::move(created);
    }
    if (auto error = builder->Add(entries.key(), entries.value())) {
      builder.reset();
      return fail(*error);
    }
    data_bytes += entries.key().size() + (entries.value() ? entries.value()->size() : 0);
  }
  if (entries.error()) {
    builder.reset();
    return fail(*entries.error());
  }
  if (builder != nullptr) {
    if (auto error = finish()) return fail(*error);
  }
  facts_.tombstones_dropped += dropped;
  return files;
}

Result<File> StoreImplementation::FinishFile(TableBuilder& builder, uint64_t data_bytes,
                                             const FilterPolicy* policy,
                                             uint64_t& bytes_written) {
  const Result<TableFacts> written = builder.Finish();
  if (!written) return Error{written.error()};
  Result<File> file =
      OpenFile(written->number, data_bytes,
               policy == nullptr ? std::string() : std::string(policy->identity()), policy);
  if (!file) {
    obsolete_.push_back(written->number);
    return file;
  }
  bytes_written += written->file_bytes;
  facts_.entries_written += written->entries;
  if (policy != nullptr) {
    ++facts_.filter_builds;
    facts_.filter_keys += written->filter_keys;
    facts_.filter_build_ns += written->filter_build_ns;
    facts_.largest_filter_peak_bytes =
        std::max(facts_.largest_filter_peak_bytes, written->filter_peak_bytes.value_or(0));
  }
  return file;
}

std::optional<Error> StoreImplementation::Install(Levels levels) {
  if (unwritable_) return unwritable_;
  Manifest manifest = {.next_number = next_number_};
  std::set<uint64_t> live;
  for (const std::vector<File>& level : levels) {
    std::vector<Manifest::File>& entries = manifest.levels.emplace_back();
    for (const File& file : level) {
      entries.push_back(
          {file.number, file.table->facts().file_bytes, file.data_bytes, file.filter});
      live.insert(file.number);
    }
  }
  if (auto error = WriteManifest(*options_.files, directory_, manifest)) {
    // Whether the old list or the new one is on the disk is not known, so neither may lose a file.
    unwritable_ = Error{fmt::format("{}: not written, the store has to be opened again: {}",
                                    (directory_ / kManifestName).string(), error->message)};
    return unwritable_;
  }
  for (const std::vector<File>& level : levels_) {
    for (const File& file : level) {
      if (!live.contains(file.number)) obsolete_.push_back(file.number);
    }
  }
  levels_ = std::move(levels);
  return std::nullopt;
}

std::optional<Error> StoreImplementation::RemoveObsolete() {
  std::optional<Error> first;
  std::vector<uint64_t> left;
  for (const uint64_t number : obsolete_) {
    if (auto error = options_.files->Remove(PathOf(number))) {
      left.push_back(number);
      if (!first) first = std::move(error);
    }
  }
  obsolete_ = std::move(left);
  return first;
}

// --- Reading ---

size_t StoreImplementation::RunCount() const {
  size_t count = levels_[0].size();
  for (size_t i = 1; i < levels_.size(); ++i) count += levels_[i].empty() ? 0 : 1;
  return count;
}

std::pair<int, std::span<const File>> StoreImplementation::RunFiles(size_t run) const {
  if (run < levels_[0].size()) return {0, std::span(levels_[0]).subspan(run, 1)};
  run -= levels_[0].size();
  for (size_t i = 1; i < levels_.size(); ++i) {
    if (levels_[i].empty()) continue;
    if (run == 0) return {static_cast<int>(i), levels_[i]};
    --run;
  }
  return {0, {}};
}

Result<bool> StoreImplementation::Get(std::string_view key, std::string* value,
                                      ReadStats* stats) {
  ReadPhases* const phases = stats != nullptr && stats->time_phases ? &stats->phases : nullptr;
  // The time of `work`, a reading of the clock in it, to a phase.
  const auto timed = [&](double ReadPhases::*phase, const auto& work) -> decltype(auto) {
    if (phases == nullptr) return work();
    ++phases->clock_readings;
    const AddTime time(phases->*phase);
    return work();
  };
  std::string unwanted;
  if (value == nullptr) value = &unwanted;

  const Found in_memory =
      timed(&ReadPhases::memtable_ns, [&] { return memtable_.Get(key, value); });
  if (in_memory != Found::kNothing) {
    if (stats != nullptr) ++stats->memtable_hits;
    return in_memory == Found::kValue;
  }
  if (stats != nullptr && stats->runs.size() < RunCount()) stats->runs.resize(RunCount());

  const uint64_t hash = timed(&ReadPhases::filter_ns,
                              [&] { return HashBytes(key, options_.hash_seed); });
  ReadCounters uncounted;
  size_t run = 0;
  const auto ask = [&](const File& file) {
    ReadCounters& counters = stats == nullptr ? uncounted : stats->runs[run];
    ++run;
    return file.table->Get(key, hash, value, counters, phases);
  };
  for (const File& file : levels_[0]) {
    const Result<Found> found = ask(file);
    if (!found) return Error{found.error()};
    if (*found != Found::kNothing) return *found == Found::kValue;
  }
  for (size_t i = 1; i < levels_.size(); ++i) {
    if (levels_[i].empty()) continue;
    const File& file = timed(&ReadPhases::index_ns, [&]() -> const File& {
      return CandidateIn(levels_[i], key);
    });
    const Result<Found> found = ask(file);
    if (!found) return Error{found.error()};
    if (*found != Found::kNothing) return *found == Found::kValue;
  }
  return false;
}

std::optional<Error> StoreImplementation::UseLive(
    std::vector<std::unique_ptr<Table::Cursor>> newest_first, std::string_view prefix,
    const std::function<bool(std::string_view, std::string_view)>& use) const {
  const std::unique_ptr<Table::Cursor> entries = Merge(std::move(newest_first));
  for (; entries->valid() && entries->key().starts_with(prefix); entries->Next()) {
    const std::optional<std::string_view> value = entries->value();
    if (value && !use(entries->key(), *value)) return std::nullopt;
  }
  return entries->error();
}

std::optional<Error> StoreImplementation::Scan(
    std::string_view first, ReadStats* stats,
    const std::function<bool(std::string_view, std::string_view)>& use) {
  ReadCounters uncounted;
  if (stats != nullptr && stats->runs.size() < RunCount()) stats->runs.resize(RunCount());
  std::vector<std::unique_ptr<Table::Cursor>> cursors;
  cursors.push_back(memtable_.Seek(first));
  for (size_t run = 0; run < RunCount(); ++run) {
    cursors.push_back(SeekInRun(TablesOf(RunFiles(run).second), first,
                                stats == nullptr ? uncounted : stats->runs[run]));
  }
  return UseLive(std::move(cursors), {}, use);
}

std::optional<Error> StoreImplementation::ScanPrefix(
    std::string_view prefix, ReadStats* stats,
    const std::function<bool(std::string_view, std::string_view)>& use) {
  const bool filtered = options_.prefix_bytes > 0 && prefix.size() == options_.prefix_bytes;
  ReadCounters uncounted;
  if (stats != nullptr && stats->runs.size() < RunCount()) stats->runs.resize(RunCount());
  std::vector<std::unique_ptr<Table::Cursor>> cursors;
  cursors.push_back(memtable_.Seek(prefix));
  for (size_t run = 0; run < RunCount(); ++run) {
    ReadCounters& counters = stats == nullptr ? uncounted : stats->runs[run];
    const std::span<const File> files = RunFiles(run).second;
    const auto begins_before = [&](const File& file) {
      return std::string_view(file.table->facts().smallest).substr(0, prefix.size()) <= prefix;
    };
    // Where no file meets the prefix, one is a candidate all the same, which its range rules out.
    size_t at = static_cast<size_t>(
        std::partition_point(
            files.begin(), files.end(),
            [&](const File& file) { return file.table->facts().largest < prefix; }) -
        files.begin());
    at = std::min(at, files.size() - 1);
    do {
      const Table& table = *files[at].table;
      if (!filtered) {
        const bool meets = table.facts().largest >= prefix && begins_before(files[at]);
        ++counters.candidates;
        ++(meets ? counters.not_consulted : counters.range_skips);
        if (meets) cursors.push_back(table.Seek(prefix, counters));
        continue;
      }
      const uint64_t not_consulted = counters.not_consulted;
      const Result<bool> may_have = table.MayHavePrefix(prefix, counters);
      if (!may_have) return Error{may_have.error()};
      if (!*may_have) continue;
      cursors.push_back(table.Seek(prefix, counters));
      if (cursors.back()->error()) return cursors.back()->error();
      if (counters.not_consulted != not_consulted) continue;
      const bool has = cursors.back()->valid() && cursors.back()->key().starts_with(prefix);
      ++(has ? counters.maybe_true : counters.maybe_false);
    } while (++at < files.size() && begins_before(files[at]));
  }
  return UseLive(std::move(cursors), prefix, use);
}

// --- What it is ---

std::vector<RunInfo> StoreImplementation::runs() const {
  std::vector<RunInfo> infos;
  for (size_t run = 0; run < RunCount(); ++run) {
    const auto [level, files] = RunFiles(run);
    RunInfo& info = infos.emplace_back();
    info.level = level;
    info.files = files.size();
    for (const File& file : files) {
      const TableFacts& facts = file.table->facts();
      info.entries += facts.entries;
      info.file_bytes += facts.file_bytes;
      info.filter_bytes += facts.filter_bytes;
      info.filter_keys += facts.filter_keys;
      info.unusable_filters += ProblemOf(file).empty() ? 0 : 1;
    }
  }
  return infos;
}

std::vector<std::string> StoreImplementation::warnings() const {
  std::vector<std::string> lines;
  for (const std::vector<File>& level : levels_) {
    for (const File& file : level) {
      if (std::string problem = ProblemOf(file); !problem.empty()) {
        lines.push_back(std::move(problem));
      }
    }
  }
  return lines;
}

void StoreImplementation::DropFromPageCache() const {
  for (const std::vector<File>& level : levels_) {
    for (const File& file : level) file.table->DropFromPageCache();
  }
}

}  // namespace

ReadCounters ReadStats::total() const {
  ReadCounters sum;
  for (const ReadCounters& counters : runs) sum += counters;
  return sum;
}

Result<std::unique_ptr<Store>> Store::Open(const std::filesystem::path& directory,
                                           const StoreOptions& options) {
  if (const std::string problem = Contradiction(options); !problem.empty()) return Error{problem};
  auto store = std::make_unique<StoreImplementation>(directory, options);
  if (auto error = store->Recover()) return *std::move(error);
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace filterbench::lsm
