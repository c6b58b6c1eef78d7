#ifndef FILTERBENCH_FILTERS_FPR_H_
#define FILTERBENCH_FILTERS_FPR_H_

namespace filterbench {

// What theory says of the false-positive rate of one filter: false positives over absent keys
// asked. Two filters built alike with two seeds differ a little (one happens to have more bits
// set); `instance_sd` is the standard deviation of the rate over such filters.
struct FprEstimate {
  double mean = 0;
  double instance_sd = 0;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_FPR_H_
