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

struct RocksdbPolicy {
  std::shared_ptr<const rocksdb::FilterPolicy> policy;  // null: no filters
  bool is_ribbon = false;
  // Of rocksdb::NewBloomFilterPolicy or NewRibbonFilterPolicy.
  double bits_per_key = 0;
  // Ribbon: the rate that the engine was asked for, the same for files of all sizes.
  double ribbon_fpr = 0;
};

// Why RocksDB has no filter like this one, with all its parameters; empty if it has.
std::string WhyNoRocksdbPolicy(std::string_view filter, const nlohmann::json& params);

// The policy for a filter that WhyNoRocksdbPolicy lets pass. `file_keys`: of a typical file, as the
// rate of a Ribbon filter whose size is given depends on it a little.
Result<RocksdbPolicy> MakeRocksdbPolicy(const FilterSource& filters, uint64_t file_keys);

// The bits per key of RocksDB's Bloom filter for which NewRibbonFilterPolicy makes a Ribbon filter
// of this FPR; nothing if there are none in its range of 1..100.
std::optional<double> BloomEquivalentBits(double fpr);

// A filter of so many bytes over so many keys, by the properties of its file.
struct RocksdbFilterSize {
  uint64_t keys = 0;
  uint64_t bytes = 0;
};

// Whether it is a Bloom filter though the policy says Ribbon: of small files, to some two hundred
// keys, a Ribbon filter would not be the smaller one. Told by the size.
bool IsBloomInsteadOfRibbon(const RocksdbPolicy& policy, const RocksdbFilterSize& size);

// What the filter of a file ought to do: theory of the catalogue's filter.
Result<std::optional<FprEstimate>> ExpectedFprOfFile(const FilterSource& filters,
                                                     const RocksdbPolicy& policy,
                                                     const RocksdbFilterSize& size);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_ROCKSDB_POLICY_H_
