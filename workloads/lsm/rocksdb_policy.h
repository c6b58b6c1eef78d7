#ifndef FILTERBENCH_WORKLOADS_LSM_ROCKSDB_POLICY_H_
#define FILTERBENCH_WORKLOADS_LSM_ROCKSDB_POLICY_H_

// Which of RocksDB's own filters stands for one of the catalogue. Those are all that it can have:
// since 7.0 what builds and asks a filter (FilterBitsBuilder, FilterBitsReader) is internal to it,
// and a policy from outside may only choose among what is built in.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>
#include <rocksdb/filter_policy.h>

#include "filters/fpr.h"
#include "filters/result.h"
#include "workloads/key_filter.h"

namespace filterbench::lsm {

// RocksDB makes Bloom filters for files with fewer keys, whatever the policy: a Ribbon filter of
// less than 1024 slots is not made, and one has up to 1.05 slots per key, more where it is small.
inline constexpr uint64_t kLeastKeysOfRocksdbRibbon = 1024;

struct RocksdbPolicy {
  std::shared_ptr<const rocksdb::FilterPolicy> policy;  // null: no filters
  bool is_ribbon = false;
  // Ribbon: the rate that the engine was asked for, the same for files of all sizes.
  double ribbon_fpr = 0;
};

// Why RocksDB has no filter like this one, with all its parameters; empty if it has.
std::string WhyNoRocksdbPolicy(std::string_view filter, const nlohmann::json& params);

// The policy for a filter that WhyNoRocksdbPolicy lets pass. `file_keys`: of a typical file, as the rate of
// a Ribbon filter whose size is given depends on it a little.
Result<RocksdbPolicy> MakeRocksdbPolicy(const FilterSource& filters, uint64_t file_keys);

// The bits per key of RocksDB's Bloom filter for which NewRibbonFilterPolicy makes a Ribbon filter of
// this FPR; nothing if there are none in its range of 1..100.
std::optional<double> BloomEquivalentBits(double fpr);

// What the filter of a file with so many keys ought to do: theory of the catalogue's filter.
Result<std::optional<FprEstimate>> ExpectedFprOfFile(const FilterSource& filters,
                                                     const RocksdbPolicy& policy, uint64_t keys);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_ROCKSDB_POLICY_H_
