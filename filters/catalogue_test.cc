// The list of filters itself.

#include "filters/catalogue.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

namespace filterbench {
namespace {

TEST(CatalogueTest, NamesAreUnique) {
  std::set<std::string_view> names;
  size_t count = 0;
  Catalogue::ForEach([&]<class F>() {
    names.insert(F::kInfo.name);
    ++count;
  });
  EXPECT_EQ(names.size(), count);
  EXPECT_GE(count, 1u);
}

// Case B9: a filter that is not built is listed with the reason.
TEST(CatalogueTest, WhatIsNotBuiltSaysWhy) {
  for (const FilterNotBuilt& filter : kFiltersNotBuilt) {
    EXPECT_FALSE(filter.type.empty());
    EXPECT_FALSE(filter.reason.empty());
  }
}

TEST(CatalogueTest, GoldensAreOfItsFilters) {
  if (!kFiltersNotBuilt.empty()) GTEST_SKIP() << "filters that are not built keep their goldens";
  std::set<std::string_view> known;
  Catalogue::ForEach([&]<class F>() { known.insert(F::kInfo.name); });
  std::ifstream file(FILTERBENCH_FILTERS_DIRECTORY "/golden.json");
  ASSERT_TRUE(file);
  const nlohmann::json goldens = nlohmann::json::parse(file);
  for (const auto& [name, block] : goldens.items()) {
    EXPECT_TRUE(known.contains(name)) << "golden.json has a block of " << name;
  }
}

}  // namespace
}  // namespace filterbench
