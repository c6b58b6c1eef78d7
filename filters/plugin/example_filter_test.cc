// The example for filters from outside of the tree, under the tests that every filter passes.

#include "filters/plugin/example_filter.h"

#define FILTERBENCH_TESTED_FILTER filterbench::WordBloom
#define FILTERBENCH_TESTED_FILTER_IS_EXTERNAL 1
#include "filters/conformance/contract.h"
#include "filters/conformance/fpr.h"
#include "filters/conformance/golden.h"
#include "filters/conformance/kernel.h"
#include "filters/conformance/params.h"
#include "filters/conformance/wire.h"

namespace filterbench {
namespace {

// What the documentation promises of the two templates.
TEST(ExamplesTest, FitIntoFortyLines) {
  for (const char* name : {"example_filter.h", "example_plugin.cc"}) {
    std::ifstream file(std::string(FILTERBENCH_FILTERS_DIRECTORY "/plugin/") + name);
    ASSERT_TRUE(file) << name;
    std::string line;
    int lines = 0;
    while (std::getline(file, line)) ++lines;
    EXPECT_LE(lines, 40) << name;
  }
}

}  // namespace
}  // namespace filterbench
