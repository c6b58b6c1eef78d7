#ifndef FILTERBENCH_WORKLOADS_LSM_LEVELDB_DATABASE_H_
#define FILTERBENCH_WORKLOADS_LSM_LEVELDB_DATABASE_H_

// A LevelDB database whose tables are what a measurement asks for, and stay so while it is read.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <leveldb/cache.h>
#include <leveldb/db.h>

#include "filters/result.h"
#include "workloads/lsm/counting_env.h"
#include "workloads/lsm/leveldb_policy.h"

namespace filterbench::lsm {

class LevelDbDatabase {
 public:
  struct Entry {
    std::string key;
    std::string value;
  };
  // A table that is asked, in the order in which a get comes to them: those of level 0 from the
  // newest on, then level by level.
  struct TableFile {
    int level = 0;
    uint64_t number = 0;
    uint64_t bytes = 0;
  };

  // A new one in an empty directory; `policy` may be null, outlives it, and is asked by one thread.
  // No block cache, no compression, checksums verified.
  LevelDbDatabase(std::filesystem::path directory, const CountingPolicy* policy, bool direct_io);
  ~LevelDbDatabase();

  // The entries as one more table of level 0, which overlaps the others and which no compaction
  // touches. It is what opening the database makes of its log.
  std::optional<Error> AddTable(uint64_t entries, const std::function<Entry(uint64_t i)>& entry);
  // A memtable's worth of entries, then a flush and all compactions that are due.
  std::optional<Error> PutAndCompact(uint64_t entries,
                                     const std::function<Entry(uint64_t i)>& entry);

  // Opens all tables by reading everything once through the page cache; from then on nothing
  // changes, since LevelDB compacts because of reads too. The number of entries.
  Result<uint64_t> OpenForReads(const CountingEnv::OnFilterBlock& on_filter_block);

  // Whether it was found.
  Result<bool> Get(std::string_view key, std::string* value);

  CountingEnv& env() { return env_; }
  const CountingEnv& env() const { return env_; }
  std::string Property(const std::string& name) const;  // "leveldb.stats"; throws if there is none
  Result<std::vector<TableFile>> Tables() const;

 private:
  std::optional<Error> Open(bool hold_background_work);
  // Changes nothing on the disk, whatever compactions wait.
  void Close();
  std::optional<Error> Write(uint64_t entries, const std::function<Entry(uint64_t i)>& entry);

  const std::filesystem::path directory_;
  const CountingPolicy* const policy_;
  CountingEnv env_;
  const std::unique_ptr<leveldb::Cache> no_cache_;
  const std::unique_ptr<leveldb::Logger> no_log_;
  std::string largest_key_;
  std::unique_ptr<leveldb::DB> db_;
};

// The largest memtable that LevelDB takes; it counts some 40 bytes an entry besides key and value.
inline constexpr uint64_t kLargestMemtableBytes = uint64_t{1} << 30;

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_LEVELDB_DATABASE_H_
