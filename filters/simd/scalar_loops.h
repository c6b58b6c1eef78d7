#ifndef FILTERBENCH_FILTERS_SIMD_SCALAR_LOOPS_H_
#define FILTERBENCH_FILTERS_SIMD_SCALAR_LOOPS_H_

// The reference loops for the baseline of the build: the target that is called `scalar`.

#include "filters/simd/kernel.h"

#define FILTERBENCH_LOOPS_NAMESPACE scalar_loops
#define FILTERBENCH_LOOPS_ATTR
#include "filters/simd/reference_loops-inl.h"
#undef FILTERBENCH_LOOPS_NAMESPACE
#undef FILTERBENCH_LOOPS_ATTR

namespace filterbench {

template <class View>
Kernel<View> ScalarKernel() {
  return scalar_loops::ReferenceKernel<View>("scalar");
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_SIMD_SCALAR_LOOPS_H_
