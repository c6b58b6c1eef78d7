#include "workloads/lsm/leveldb_database.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdarg>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/write_batch.h>

namespace filterbench::lsm {
namespace {

constexpr uint64_t kEntriesPerBatch = 256;
// Descriptors that are left to everything else.
constexpr uint64_t kOtherFiles = 64;

class NoLog final : public leveldb::Logger {
 public:
  void Logv(const char*, std::va_list) override {}
};

Error Failed(std::string_view what, const leveldb::Status& status) {
  return Error{fmt::format("leveldb: {}: {}", what, status.ToString())};
}

// Tables that may be open at once, each with `descriptors` of its own.
int MaxOpenFiles(uint64_t descriptors) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1000;
  const uint64_t files = std::min<uint64_t>(limit.rlim_cur, 1'000'000);
  const uint64_t free = files > kOtherFiles ? files - kOtherFiles : 1;
  return static_cast<int>(std::min<uint64_t>(free / descriptors, 50'000));
}

leveldb::ReadOptions Reading() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  options.fill_cache = false;
  return options;
}

}  // namespace

LevelDbDatabase::LevelDbDatabase(std::filesystem::path directory, const CountingPolicy* policy,
                                 bool direct_io)
    : directory_(std::move(directory)),
      policy_(policy),
      env_(direct_io),
      no_cache_(leveldb::NewLRUCache(0)),
      no_log_(std::make_unique<NoLog>()) {}

LevelDbDatabase::~LevelDbDatabase() { Close(); }

std::optional<Error> LevelDbDatabase::Open(bool hold_background_work) {
  leveldb::Options options;
  options.create_if_missing = true;
  options.paranoid_checks = true;  // of filter blocks and indexes: damaged ones are not used
  options.env = &env_;
  options.info_log = no_log_.get();
  options.write_buffer_size = kLargestMemtableBytes;  // flushes are ours to ask for
  options.max_open_files = MaxOpenFiles(2);
  options.block_cache = no_cache_.get();
  options.compression = leveldb::kNoCompression;
  options.filter_policy = policy_;
  env_.HoldBackgroundWork(hold_background_work);
  leveldb::DB* db = nullptr;
  const leveldb::Status status = leveldb::DB::Open(options, directory_.string(), &db);
  if (!status.ok()) return Failed("open", status);
  db_.reset(db);
  return std::nullopt;
}

void LevelDbDatabase::Close() {
  if (db_ == nullptr) return;
  env_.RunHeldInVain();
  db_.reset();
  env_.AllowWriting();
}

std::optional<Error> LevelDbDatabase::Write(uint64_t entries,
                                            const std::function<Entry(uint64_t i)>& entry) {
  leveldb::WriteBatch batch;
  for (uint64_t i = 0; i < entries; ++i) {
    const Entry put = entry(i);
    batch.Put(put.key, put.value);
    largest_key_ = std::max(largest_key_, put.key);
    if ((i + 1) % kEntriesPerBatch == 0 || i + 1 == entries) {
      const leveldb::Status status = db_->Write({}, &batch);
      if (!status.ok()) return Failed("write", status);
      batch.Clear();
    }
  }
  return std::nullopt;
}

std::optional<Error> LevelDbDatabase::AddTable(uint64_t entries,
                                               const std::function<Entry(uint64_t i)>& entry) {
  if (db_ == nullptr) {
    if (auto error = Open(true)) return error;
  }
  if (auto error = Write(entries, entry)) return error;
  Close();
  return Open(true);
}

std::optional<Error> LevelDbDatabase::PutAndCompact(
    uint64_t entries, const std::function<Entry(uint64_t i)>& entry) {
  if (db_ == nullptr) {
    if (auto error = Open(false)) return error;
  }
  if (auto error = Write(entries, entry)) return error;
  // Compacting a range that no table has flushes the memtable and does no more.
  const std::string beyond = largest_key_ + '\0';
  const leveldb::Slice range(beyond);
  db_->CompactRange(&range, &range);
  env_.WaitUntilIdle();
  return std::nullopt;
}

Result<uint64_t> LevelDbDatabase::OpenForReads(const CountingEnv::OnFilterBlock& on_filter_block) {
  Close();
  env_.ReadDirectly(false);
  env_.ObserveFilterBlocks(on_filter_block);
  if (auto error = Open(true)) return *error;
  const Result<std::vector<TableFile>> tables = Tables();
  if (!tables) return Error{tables.error()};
  // LevelDB keeps ten for other files.
  if (tables->size() + 10 > static_cast<size_t>(MaxOpenFiles(2))) {
    return Error{fmt::format("leveldb: {} tables, of which no more than {} may be open at once: "
                             "raise the limit of open files", tables->size(), MaxOpenFiles(2))};
  }
  const std::unique_ptr<leveldb::Iterator> entry(db_->NewIterator(Reading()));
  uint64_t entries = 0;
  for (entry->SeekToFirst(); entry->Valid(); entry->Next()) ++entries;
  if (!entry->status().ok()) return Failed("scan", entry->status());
  return entries;
}

Result<bool> LevelDbDatabase::Get(std::string_view key, std::string* value) {
  const leveldb::Status status = db_->Get(Reading(), {key.data(), key.size()}, value);
  if (status.ok()) return true;
  if (status.IsNotFound()) return false;
  return Failed("get", status);
}

std::string LevelDbDatabase::Property(const std::string& name) const {
  std::string value;
  if (!db_->GetProperty(name, &value)) {
    throw std::logic_error(fmt::format("leveldb has no property {}", name));
  }
  return value;
}

// From "leveldb.sstables": lines of "--- level N ---" and below them " <number>:<bytes>['..' ..
// '..']".
Result<std::vector<LevelDbDatabase::TableFile>> LevelDbDatabase::Tables() const {
  std::istringstream lines(Property("leveldb.sstables"));
  std::vector<TableFile> tables;
  std::map<int, uint64_t> by_level;
  int level = -1;
  for (std::string line; std::getline(lines, line);) {
    TableFile table;
    unsigned long long number = 0;
    unsigned long long bytes = 0;
    if (std::sscanf(line.c_str(), "--- level %d ---", &level) == 1) continue;
    if (level < 0 || std::sscanf(line.c_str(), " %llu:%llu[", &number, &bytes) != 2) {
      return Error{fmt::format("leveldb.sstables: cannot read '{}'", line)};
    }
    tables.push_back({.level = level, .number = number, .bytes = bytes});
    ++by_level[level];
  }
  for (const auto& [of_level, count] : by_level) {
    const std::string told = Property(fmt::format("leveldb.num-files-at-level{}", of_level));
    if (told != fmt::format("{}", count)) {
      return Error{fmt::format("leveldb.sstables: {} tables at level {}, "
                               "leveldb.num-files-at-level{} says {}", count, of_level, of_level,
                               told)};
    }
  }
  // Numbers of level 0 grow with time; within other levels the order is that of the keys.
  std::stable_sort(tables.begin(), tables.end(), [](const TableFile& a, const TableFile& b) {
    if (a.level != b.level) return a.level < b.level;
    return a.level == 0 && a.number > b.number;
  });
  return tables;
}

}  // namespace filterbench::lsm
