#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "filters/hash.h"
#include "harness/registry/erased_filter.h"

namespace filterbench {
namespace {

std::vector<uint64_t> Hashes(uint64_t n) {
  std::vector<uint64_t> hashes(n);
  for (uint64_t i = 0; i < n; ++i) hashes[i] = Mix64(i);
  return hashes;
}

TEST(Registry, FiltersThatAreFilledInPiecesEqualThoseBuiltAtOnce) {
  const std::vector<uint64_t> hashes = Hashes(10'000);
  const std::span<const uint64_t> all = hashes;
  size_t tried = 0;
  for (const auto& type : FilterTypes()) {
    if (!type->can_stream()) continue;
    ++tried;
    SCOPED_TRACE(std::string(type->info().name));
    const nlohmann::json params = *type->CompleteParams(nlohmann::json::object());
    const auto built = type->Build({.words = hashes}, params, 7);
    ASSERT_TRUE(built) << built.error();
    const auto pieces = type->Create(hashes.size(), params, 7);
    ASSERT_TRUE(pieces) << pieces.error();
    (*pieces)->InsertAll(all.first(4321), 1);
    (*pieces)->InsertAll(all.subspan(4321), 2);
    EXPECT_TRUE(std::ranges::equal((*pieces)->Table(), (*built)->Table()));
  }
  EXPECT_GT(tried, 0u);
}

TEST(Registry, TheScalarTargetIsTheReferenceAndTheBestOneIsNot) {
  for (const auto& type : FilterTypes()) {
    EXPECT_TRUE(type->batched_by_reference("scalar")) << type->info().name;
  }
  const Result<const FilterType*> type = FindFilterType("split_block");
  ASSERT_TRUE(type) << type.error();
  if ((*type)->targets().front() != "scalar") {
    EXPECT_FALSE((*type)->batched_by_reference((*type)->targets().front()));
  }
}

}  // namespace
}  // namespace filterbench
