#ifndef FILTERBENCH_FILTERS_OUT_OF_MEMORY_H_
#define FILTERBENCH_FILTERS_OUT_OF_MEMORY_H_

#include <new>

namespace filterbench {

// The error of a build whose containers were refused memory: they throw, a build says why. Tables
// say it themselves (filters/table.h). Whole functions are tried,
//
//   Result<F> F::Build(...) try {
//     ...
//   } catch (const std::bad_alloc&) {
//     return Error{kOutOfMemory};
//   }
inline constexpr const char* kOutOfMemory = "out of memory: what the build holds besides the table";

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_OUT_OF_MEMORY_H_
