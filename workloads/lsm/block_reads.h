#ifndef FILTERBENCH_WORKLOADS_LSM_BLOCK_READS_H_
#define FILTERBENCH_WORKLOADS_LSM_BLOCK_READS_H_

// What filters save a point read of a log-structured merge tree.

#include <cstdint>

namespace filterbench {

// Where the key of a get is.
enum class SoughtKey {
  kAbsent,          // in no file
  kInDeepestLevel,  // in the last file that is asked
};

// Mean number of data blocks that a get reads, as a linear function of the FPR.
struct BlockReads {
  double certain;   // at FPR 0
  double per_fpr;   // added by an FPR of 1, which is the tree without filters
  double At(double fpr) const { return certain + per_fpr * fpr; }
};

// `candidate_files` >= 1 is the number of files that may hold the key by their range of keys: each
// file of level 0, one of every deeper level. They are asked from the newest to the oldest, the
// block of a file is read if its filter says maybe, and the search ends where the key is. All files
// have filters of one FPR; filters and indexes are in memory (Dayan, Athanassoulis, Idreos 2017,
// "Monkey", section 4: R, the sum of the FPRs, for absent keys; R - p + 1, p the last of them, for
// keys in the last file). No independence of the filters is assumed: it is a mean.
BlockReads BlockReadsPerGet(uint64_t candidate_files, SoughtKey key);

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_LSM_BLOCK_READS_H_
