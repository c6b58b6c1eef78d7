#include "workloads/lsm/block_reads.h"

namespace filterbench {

BlockReads BlockReadsPerGet(uint64_t candidate_files, SoughtKey key) {
  const double files = static_cast<double>(candidate_files);
  if (key == SoughtKey::kAbsent) return {.certain = 0, .per_fpr = files};
  return {.certain = 1, .per_fpr = files - 1};
}

}  // namespace filterbench
