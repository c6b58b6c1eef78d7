#ifndef FILTERBENCH_WORKLOADS_SAFE_BROWSING_SAFE_BROWSING_H_
#define FILTERBENCH_WORKLOADS_SAFE_BROWSING_SAFE_BROWSING_H_

// A browser's list of unsafe sites: the client keeps a filter of the first bits of the listed URLs'
// hashes, and asks the server only about URLs that it does not rule out.

#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/workload.h"

namespace filterbench {

std::unique_ptr<Workload> MakeSafeBrowsing();

// Bytes of a list of ascending prefixes of 32 bits as Chrome's PrefixSet keeps it in memory
// (Chromium, components/safe_browsing/db/prefix_set.{h,cc}): an index entry of 8 bytes (prefix,
// position) for each run, a new run after 100 differences or where one exceeds 16 bits, and two
// bytes per difference. Its file has a header and a digest besides. Entries were 16 bytes in the
// first versions on 64-bit machines.
uint64_t PrefixSetBytes(const std::vector<uint64_t>& ascending_prefixes);

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_SAFE_BROWSING_SAFE_BROWSING_H_
