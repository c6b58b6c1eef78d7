#ifndef FILTERBENCH_FILTERS_THEORY_TEST_SUPPORT_H_
#define FILTERBENCH_FILTERS_THEORY_TEST_SUPPORT_H_

// The tables that theory is checked against: filters/testdata/theory_tables.json, computed
// elsewhere.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace filterbench::test {

inline nlohmann::json ReferenceRows(const std::string& table) {
  const std::string path = FILTERBENCH_FILTERS_DIRECTORY "/testdata/theory_tables.json";
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return nlohmann::json::parse(file).at(table).at("rows");
}

inline void ExpectRelative(double actual, double expected, double tolerance) {
  EXPECT_NEAR(actual, expected, tolerance * std::abs(expected))
      << fmt::format("relative deviation {:.3g}", actual / expected - 1);
}

// Putze, Sanders, Singler 2007, eq. 3 as printed: the mean number of set bits where BlockedBloomFpr

}  // namespace filterbench::test

#endif  // FILTERBENCH_FILTERS_THEORY_TEST_SUPPORT_H_
