#ifndef FILTERBENCH_WORKLOADS_LSM_MEMTABLE_H_
#define FILTERBENCH_WORKLOADS_LSM_MEMTABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "workloads/lsm/table.h"

namespace filterbench::lsm {

// The newest version of each key that was written since the last flush, tombstones included.
class Memtable {
 public:
  // A tombstone where `value` is nothing.
  void Write(std::string_view key, std::optional<std::string_view> value);
  // `value` is set where a value was found; it may be null.
  Found Get(std::string_view key, std::string* value) const;
  void Clear();

  uint64_t entries() const { return entries_.size(); }
  uint64_t bytes() const { return bytes_; }  // of keys and values
  // At the first entry that is not less than `first`; valid until the memtable is written to.
  std::unique_ptr<Table::Cursor> Seek(std::string_view first) const;

 private:
  std::map<std::string, std::optional<std::string>, std::less<>> entries_;
  uint64_t bytes_ = 0;
};

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_MEMTABLE_H_
