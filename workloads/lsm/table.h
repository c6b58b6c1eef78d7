#ifndef FILTERBENCH_WORKLOADS_LSM_TABLE_H_
#define FILTERBENCH_WORKLOADS_LSM_TABLE_H_

// An immutable file of sorted keys: data blocks, filter blocks, an index of the data blocks, and a
// footer, each with a checksum. table_format.h has the layout.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "filters/result.h"
#include "workloads/key_filter.h"
#include "workloads/lsm/files.h"

namespace filterbench::lsm {

// What a file, or the memtable, says of a key.
enum class Found {
  kNothing,
  kValue,
  kTombstone,  // it was deleted: older files need not be asked
};

// What reading did, over some gets. Of one file, or added up over a sorted run.
struct ReadCounters {
  uint64_t candidates = 0;         // files that a get came to
  uint64_t range_skips = 0;        // of these: the key lies outside of the file's keys
  uint64_t not_consulted = 0;      // of these: it has no filter, or none that can be used
  uint64_t filter_negatives = 0;   // of these: the filter said no
  uint64_t maybe_true = 0;         // of these: it said maybe, and the file has the key
  uint64_t maybe_false = 0;        // of these: it said maybe, and the file has it not
  uint64_t index_lookups = 0;
  uint64_t block_reads = 0;        // of data blocks
  uint64_t block_bytes = 0;
  uint64_t filter_reads = 0;       // of filter blocks that are not kept in memory
  uint64_t filter_bytes = 0;

  uint64_t probes() const { return filter_negatives + maybe_true + maybe_false; }
  ReadCounters& operator+=(const ReadCounters& other);
  bool operator==(const ReadCounters&) const = default;
};

// Where the time of gets went; sums. The clock's own cost is in them, a reading per phase begun.
struct ReadPhases {
  double memtable_ns = 0;
  double filter_ns = 0;  // with reading it, where it is not kept in memory
  double index_ns = 0;
  double block_ns = 0;   // reading, checking and searching data blocks
  uint64_t clock_readings = 0;
};

struct TableFormat {
  uint32_t block_bytes = 4096;     // a data block is cut before it exceeds this, padding included
  const FilterPolicy* policy = nullptr;  // nothing: no filter
  // Where not 0: a second filter, over the first so many bytes of the keys, for scans.
  uint32_t prefix_bytes = 0;
  uint64_t hash_seed = 0;          // of the keys' hashes (HashBytes)
  uint64_t filter_seed = 0;
};

// What became of a file.
struct TableFacts {
  uint64_t number = 0;
  uint64_t file_bytes = 0;
  uint64_t entries = 0;            // tombstones included
  uint64_t tombstones = 0;
  std::string smallest;
  std::string largest;
  uint64_t filter_bytes = 0;       // KeyFilter::SizeInBytes, of both filters
  uint64_t filter_keys = 0;        // of the filter over whole keys
  double filter_build_ns = 0;
  std::optional<uint64_t> filter_peak_bytes;

  bool operator==(const TableFacts&) const = default;
};

// The name of file `number`.
std::string TableName(uint64_t number);

// Writes a file: keys in ascending order, each once.
class TableBuilder {
 public:
  // The file is made new; it exists under its name only after Finish.
  static Result<std::unique_ptr<TableBuilder>> Create(Files& files,
                                                      const std::filesystem::path& directory,
                                                      uint64_t number, const TableFormat& format);
  virtual ~TableBuilder() = default;

  // A tombstone where `value` is nothing.
  virtual std::optional<Error> Add(std::string_view key,
                                   std::optional<std::string_view> value) = 0;
  virtual uint64_t bytes_so_far() const = 0;
  // Written, flushed to the disk and renamed. Not called: nothing is left.
  virtual Result<TableFacts> Finish() = 0;
};

struct TableReading {
  const FilterPolicy* policy = nullptr;  // as the file was written with
  uint32_t prefix_bytes = 0;
  uint64_t hash_seed = 0;
  bool direct_io = false;          // O_DIRECT; where the file system has it not, Open fails
  bool filters_in_memory = true;   // otherwise each lookup reads the filter block first
};

class Table {
 public:
  // Checks footer and index, and the filters if they are to be kept in memory. A filter that is
  // damaged, or of another policy, is not used; filter_problem then says why. Any other damage, and
  // bytes that the system does not read, are an error that names the file.
  static Result<std::unique_ptr<Table>> Open(Files& files, const std::filesystem::path& directory,
                                             uint64_t number, const TableReading& reading);
  virtual ~Table() = default;

  virtual const TableFacts& facts() const = 0;
  virtual const KeyFilter* filter() const = 0;         // nothing where there is none in memory
  virtual const KeyFilter* prefix_filter() const = 0;
  virtual const std::string& filter_problem() const = 0;  // empty where all is well

  // Range, filter, index, and at most one data block. `hash` is the key's (HashBytes with
  // hash_seed). `value` is set where a value was found. `phases` may be null. A damaged block is an
  // error that names file and offset.
  virtual Result<Found> Get(std::string_view key, uint64_t hash, std::string* value,
                            ReadCounters& counters, ReadPhases* phases) const = 0;
  // Whether a key may begin with `prefix`, of prefix_bytes bytes: by range, then by the filter of
  // prefixes. Counted like a get's candidate, all but the reading.
  virtual Result<bool> MayHavePrefix(std::string_view prefix, ReadCounters& counters) const = 0;

  // Entries from the first that is not less than `first`, in order, until `use` returns false.
  // Blocks that were read are counted.
  virtual std::optional<Error> Scan(
      std::string_view first, ReadCounters& counters,
      const std::function<bool(std::string_view key, std::optional<std::string_view> value)>& use)
      const = 0;
  // An iterator over all entries, for merging.
  class Cursor {
   public:
    virtual ~Cursor() = default;
    virtual bool valid() const = 0;  // false at the end, and after an error
    virtual std::string_view key() const = 0;
    virtual std::optional<std::string_view> value() const = 0;
    virtual void Next() = 0;
    virtual const std::optional<Error>& error() const = 0;
  };
  // At the first entry that is not less than `first`; blocks that it reads are added to `counters`,
  // which outlives it.
  virtual std::unique_ptr<Cursor> Seek(std::string_view first, ReadCounters& counters) const = 0;
  // See ReadableFile.
  virtual void DropFromPageCache() const = 0;
};

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_TABLE_H_
