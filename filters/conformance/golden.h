#ifndef FILTERBENCH_FILTERS_CONFORMANCE_GOLDEN_H_
#define FILTERBENCH_FILTERS_CONFORMANCE_GOLDEN_H_

// The same keys, parameters and seed give the same bytes and the same answers, on every machine and
// after every change of the code: filters/golden.json says which. A change that is meant to move
// them is made visible by writing the file anew,
//
//   FILTERBENCH_UPDATE_GOLDENS=filters/golden.json build/release/filters_test
//   --gtest_filter=*Golden*.Update
//
// and by explaining the difference in the commit. A new filter gets its block in the same way.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "filters/filter.h"
#include "filters/hash.h"
#include "filters/params_json.h"
#include "filters/conformance/tested.h"
#include "filters/test_support.h"

namespace filterbench {
namespace {

constexpr const char* kUpdateVariable = "FILTERBENCH_UPDATE_GOLDENS";
constexpr uint64_t kAbsent = 100000;

std::string HowToUpdate() {
  return fmt::format(
      "\n  {}=filters/golden.json build/release/filters_test --gtest_filter=*Golden*.Update\n"
      "from the root of the checkout writes it anew.",
      kUpdateVariable);
}

nlohmann::json ReadGoldens(const char* path) {
  std::ifstream file(path);
  return file ? nlohmann::json::parse(file) : nlohmann::json::object();
}

const nlohmann::json& Goldens() {
  static const nlohmann::json goldens = ReadGoldens(FILTERBENCH_FILTERS_DIRECTORY "/golden.json");
  return goldens;
}

std::string Digest(const void* data, size_t size) {
  return fmt::format("{:016x}", XXH3_64bits(data, size));
}

// What is compared. Keys are the test hashes below `keys`; absent keys are the 100000 that follow,
// and their answers are digested as bits. The indices of the first ten false positives count from
// the first absent key.
template <class F, class Kernel>
nlohmann::json Observe(const F& filter, const Kernel& kernel, uint64_t keys) {
  std::vector<uint64_t> bits((kAbsent + 63) / 64);
  kernel.bits_batched(filter.view(), test::TestHashes(keys, kAbsent).data(), kAbsent, bits.data());
  std::vector<uint64_t> first;
  for (uint64_t i = 0; i < kAbsent && first.size() < 10; ++i) {
    if ((bits[i / 64] >> (i % 64) & 1) != 0) first.push_back(i);
  }
  if constexpr (std::endian::native == std::endian::big) {
    for (uint64_t& word : bits) word = __builtin_bswap64(word);
  }
  return {{"table_bytes", filter.Table().size()},
          {"table_xxh3", Digest(filter.Table().data(), filter.Table().size())},
          {"answers_xxh3", Digest(bits.data(), bits.size() * sizeof(uint64_t))},
          {"first_false_positives", first}};
}

struct Setting {
  uint64_t keys;
  uint64_t seed;
};

// Calls `use(name, params, setting)` for all that is in the file about a filter.
template <class F, class Use>
void ForEachSetting(const Use& use) {
  for (const Setting setting : {Setting{1000, 1}, Setting{20000, 2}}) {
    for (const auto& [name, params] : test::UsualParams<F>(setting.seed)) {
      use(name, params, setting);
    }
  }
}

template <class F>
nlohmann::json Identity(const typename F::Params& params, const Setting& setting) {
  return {{"keys", setting.keys}, {"seed", setting.seed}, {"params", ParamsToJson<F>(params)}};
}

template <class F>
class GoldenTest : public ::testing::Test {};
TYPED_TEST_SUITE(GoldenTest, test::TestedFilters, test::FilterNames);

TYPED_TEST(GoldenTest, BytesAndAnswersAreThoseOfTheFile) {
  if (std::getenv(kUpdateVariable) != nullptr) GTEST_SKIP() << "the file is being written";
  if (FILTERBENCH_TESTED_FILTER_IS_EXTERNAL) GTEST_SKIP() << "goldens are kept for our own filters";
  const std::string filter_name(TypeParam::kInfo.name);
  ASSERT_TRUE(Goldens().contains(filter_name))
      << "filters/golden.json has nothing about " << filter_name << HowToUpdate();
  std::map<std::string, nlohmann::json> expected;
  for (const nlohmann::json& entry : Goldens().at(filter_name)) {
    expected[entry.at("of").dump()] = entry.at("is");
  }
  ForEachSetting<TypeParam>([&](const std::string& name, const auto& params,
                                const Setting& setting) {
    SCOPED_TRACE(fmt::format("{} keys={} seed={}", name, setting.keys, setting.seed));
    const std::string identity = Identity<TypeParam>(params, setting).dump();
    ASSERT_TRUE(expected.contains(identity))
        << "filters/golden.json has no entry for " << identity << HowToUpdate();
    const Result<TypeParam> filter = TypeParam::Build(test::TestHashes(0, setting.keys), params);
    ASSERT_TRUE(filter) << filter.error();
    for (const auto& kernel : TypeParam::Kernels()) {
      EXPECT_EQ(Observe(*filter, kernel, setting.keys), expected.at(identity)) << kernel.target;
    }
    expected.erase(identity);
  });
  for (const auto& [identity, is] : expected) {
    ADD_FAILURE() << "filters/golden.json has an entry that nobody asks for: " << identity
                  << HowToUpdate();
  }
}

// The file has one block per filter in the order of their names, two lines per setting: a change of
// one filter is a difference in its own block.
std::string Text(const nlohmann::json& goldens) {
  std::vector<std::string> blocks;
  for (const auto& [name, entries] : goldens.items()) {
    std::vector<std::string> lines;
    for (const nlohmann::json& entry : entries) {
      lines.push_back(fmt::format("    {{\"of\": {},\n     \"is\": {}}}", entry.at("of").dump(),
                                  entry.at("is").dump()));
    }
    blocks.push_back(fmt::format("  \"{}\": [\n{}\n  ]", name, fmt::join(lines, ",\n")));
  }
  return fmt::format("{{\n{}\n}}\n", fmt::join(blocks, ",\n"));
}

TYPED_TEST(GoldenTest, Update) {
  const char* path = std::getenv(kUpdateVariable);
  if (path == nullptr) GTEST_SKIP() << "only with " << kUpdateVariable << "=PATH";
  nlohmann::json block = nlohmann::json::array();
  ForEachSetting<TypeParam>(
      [&](const std::string& name, const auto& params, const Setting& setting) {
        SCOPED_TRACE(name);
        const Result<TypeParam> filter =
            TypeParam::Build(test::TestHashes(0, setting.keys), params);
        ASSERT_TRUE(filter) << filter.error();
        block.push_back({{"of", Identity<TypeParam>(params, setting)},
                         {"is", Observe(*filter, TypeParam::Kernels().back(), setting.keys)}});
      });
  if (::testing::Test::HasFailure()) return;
  nlohmann::json goldens = ReadGoldens(path);
  goldens[std::string(TypeParam::kInfo.name)] = block;
  std::ofstream file(path);
  file << Text(goldens);
  file.close();
  ASSERT_TRUE(file) << "cannot write " << path;
}

}  // namespace
}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CONFORMANCE_GOLDEN_H_
