#include "filters/theory/fuse.h"

#include <cmath>

namespace filterbench::theory {

double FingerprintSumFpr(double fingerprint_bits) { return std::exp2(-fingerprint_bits); }

}  // namespace filterbench::theory
