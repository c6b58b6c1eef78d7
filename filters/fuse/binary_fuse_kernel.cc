#include "filters/fuse/binary_fuse.h"

namespace filterbench {

std::span<const Kernel<BinaryFuse::View>> BinaryFuse::Kernels() {
  static const auto kernels = ScalarKernels<View>();
  return kernels;
}

}  // namespace filterbench
