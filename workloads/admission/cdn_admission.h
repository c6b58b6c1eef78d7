#ifndef FILTERBENCH_WORKLOADS_ADMISSION_CDN_ADMISSION_H_
#define FILTERBENCH_WORKLOADS_ADMISSION_CDN_ADMISSION_H_

// A cache of a content delivery network that writes an object to its disk at the second request
// only (Maggs, Sitaraman 2015, "Algorithmic nuggets in content delivery", section 4): about three
// quarters of the objects are asked for once. Two filters tell what was asked for before.

#include <memory>

#include "workloads/workload.h"

namespace filterbench {

std::unique_ptr<Workload> MakeCdnAdmission();

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_ADMISSION_CDN_ADMISSION_H_
