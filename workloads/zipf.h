#ifndef FILTERBENCH_WORKLOADS_ZIPF_H_
#define FILTERBENCH_WORKLOADS_ZIPF_H_

// Zipf's law: the object of rank r is asked for with a probability proportional to r^-exponent.

#include <cstdint>

namespace filterbench {

// Ranks 1..ranks, drawn exactly, in a time that does not depend on `ranks` (rejection-inversion:
// Hoermann and Derflinger 1996, "Rejection-inversion to generate variates from monotone discrete
// distributions").
class ZipfSampler {
 public:
  // exponent > 0; ranks in 1..2^52.
  ZipfSampler(double exponent, uint64_t ranks);

  // Advances `state`, from which every draw follows.
  uint64_t Draw(uint64_t& state) const;

 private:
  // The integral of x^-exponent, up to a constant, and its inverse.
  double Area(double x) const;
  double AreaInverse(double area) const;
  double Weight(double x) const;

  double exponent_;
  double ranks_;
  double area_first_;
  double area_last_;
  double always_accepted_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_ZIPF_H_
