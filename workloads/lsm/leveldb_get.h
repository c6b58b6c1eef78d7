#ifndef FILTERBENCH_WORKLOADS_LSM_LEVELDB_GET_H_
#define FILTERBENCH_WORKLOADS_LSM_LEVELDB_GET_H_

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

// Point reads of a LevelDB database, with any filter as its policy. `always_maybe` is a database
// without a policy, `leveldb_peer` one with LevelDB's own, and `leveldb_bloom` writes the same
// bytes as that.
//
// LevelDB tells which filters it asks and which blocks it reads, but not which tables it passed
// over by their range of keys: candidates are tables that the key lies in the range of, and
// range_skips is not counted.
std::unique_ptr<Workload> MakeLevelDbGet();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LSM_LEVELDB_GET_H_
