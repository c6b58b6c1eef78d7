// The contract of filters/filter.h, for every filter of the catalogue on every target.

#include <gtest/gtest.h>

#include "filters/catalogue.h"
#include "filters/filter.h"
namespace filterbench { namespace {
TEST(X, Y) {
  Catalogue::ForEach([]<class F>() {
    static_assert(Filter<F>);
    std::vector<uint64_t> h; for (int i = 0; i < 100000; ++i) h.push_back(Mix64(i));
    auto f = F::Build({h.data(), 50000}, {}); ASSERT_TRUE(f) << f.error();
    for (auto& k : F::Kernels()) { printf("%s %s %lu\n", F::kInfo.name.data(), k.target.data(), k.count_batched(f->view(), h.data(), h.size())); }
    if (auto e = f->ExpectedFpr()) printf("%g\n", e->mean);
    auto g = F::Deserialize(f->Serialize()); ASSERT_TRUE(g) << g.error();
  });
}
}}
