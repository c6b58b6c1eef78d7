#ifndef FILTERBENCH_FILTERS_SIMD_TARGETS_H_
#define FILTERBENCH_FILTERS_SIMD_TARGETS_H_

// Which SIMD targets there are: one binary holds code for all that Highway can compile, and each
// that this machine runs can be asked for by name.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "filters/simd/kernel.h"

namespace filterbench {

// Highway's name in lower case: "avx2", "neon". Highway's one-lane fallback is "hwy_scalar", since
// `scalar` is the plain reference.
std::string_view TargetName(int64_t target);

// Highway target bits, the best first.
std::vector<int64_t> CompiledTargets();
std::vector<int64_t> SupportedTargets();

// Names of the targets that kernels may be asked for here, the best first, `scalar` last.
std::vector<std::string_view> SupportedTargetNames();

// Calls `use` once per supported target, best first, with Highway's dispatch forced to it. Not
// thread-safe: kernels are collected in static initialisers of functions, before threads look up.
void ForEachSupportedTarget(const std::function<void()>& use);

// All kernels of a filter: `dispatch` returns the table of the target that Highway is forced to,
// as in CollectKernels<View>([] { return HWY_DYNAMIC_DISPATCH(MyKernel)(); }).
template <class View, class Dispatch>
std::vector<Kernel<View>> CollectKernels(Dispatch&& dispatch) {
  std::vector<Kernel<View>> kernels;
  ForEachSupportedTarget([&] { kernels.push_back(dispatch()); });
  kernels.push_back(ScalarKernel<View>());
  return kernels;
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_SIMD_TARGETS_H_
