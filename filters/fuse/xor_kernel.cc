#include "filters/fuse/xor.h"

namespace filterbench {

std::span<const Kernel<Xor::View>> Xor::Kernels() {
  static const auto kernels = ScalarKernels<View>();
  return kernels;
}

}  // namespace filterbench
