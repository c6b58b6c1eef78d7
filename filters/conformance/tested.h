#ifndef FILTERBENCH_FILTERS_CONFORMANCE_TESTED_H_
#define FILTERBENCH_FILTERS_CONFORMANCE_TESTED_H_

// What every filter must do is written as typed tests in the headers of this folder. For a few
// filters at a time the build makes a translation unit (cmake/catalogue.cmake) that defines
// FILTERBENCH_TESTED_FILTER, their types with commas between them, and includes all headers: a new
// filter compiles its own tests and few others. FILTERBENCH_TESTED_FILTER_IS_EXTERNAL is 1 for
// filters that come from outside of the tree.

#include <gtest/gtest.h>

namespace filterbench::test {

using TestedFilters = ::testing::Types<FILTERBENCH_TESTED_FILTER>;

}  // namespace filterbench::test

#endif  // FILTERBENCH_FILTERS_CONFORMANCE_TESTED_H_
