#ifndef FILTERBENCH_WORKLOADS_LSM_ROCKSDB_GET_H_
#define FILTERBENCH_WORKLOADS_LSM_ROCKSDB_GET_H_

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

// Point reads of a RocksDB that was loaded and is not written to, with RocksDB's own filters. Built
// where the library is (FILTERBENCH_HAS_LIBROCKSDB).
std::unique_ptr<Workload> MakeRocksdbGet();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LSM_ROCKSDB_GET_H_
