// What the harness adds to a loop that somebody writes by hand: the same table, the same stream,
// the same number of iterations, once through the erased filter and the timing loop of a run, once
// through the kernel between two readings of the clock. Prints Markdown.
//
//   overhead_benchmark [KEYS...]        default 1e3 1e4 1e5 1e6 1e7
//
// Ratios are medians over pairs, in an order that favours neither, with the 95 % interval of the
// median. At most 1.02 is the goal at every number of keys.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "filters/bloom/blocked.h"
#include "filters/hash.h"
#include "harness/registry/erased_filter.h"
#include "harness/run/measure.h"
#include "harness/statistics.h"
#include "workloads/lookups.h"

namespace filterbench {
namespace {

constexpr int kPairs = 40;
constexpr double kPassSeconds = 0.01;

void Compare(uint64_t keys, uint64_t lookups, Mode mode) {
  std::vector<uint64_t> present(keys);
  for (uint64_t i = 0; i < keys; ++i) present[i] = Mix64(i);
  std::vector<uint64_t> stream(lookups);
  for (uint64_t i = 0; i < lookups; ++i) stream[i] = Mix64(keys + i);

  const FilterType& type = **FindFilterType("blocked_bloom");
  const auto params = *type.CompleteParams(nlohmann::json::object());
  const std::unique_ptr<BuiltFilter> erased = *type.Build({.words = present}, params, 1);
  // The very table of the other: where a table lies moves times by more than what is looked for.
  const BlockedBloom twin = *BlockedBloom::Build(present, {.seed = 1});
  BlockedBloom::View view = twin.view();
  view.words = reinterpret_cast<const uint32_t*>(erased->Table().data());
  const Kernel<BlockedBloom::View>& kernel = BlockedBloom::Kernels().front();
  const auto loop = mode == Mode::kLookupBatched ? kernel.count_batched : kernel.count_single;
  const std::string_view target = type.targets().front();
  const KeyStream key_stream{.words = stream};
  const uint64_t expected = loop(view, stream.data(), stream.size());

  uint64_t iterations = 0;
  const auto by_harness = [&] {
    const Measured measured =
        MeasureLoop({.name = "overhead", .passes = 1, .pass_seconds = kPassSeconds}, expected,
                    [&] { return erased->Count(key_stream, mode, target); });
    iterations = measured.iterations;
    return measured.seconds.front() / static_cast<double>(measured.iterations);
  };
  const auto by_hand = [&] {
    uint64_t sum = loop(view, stream.data(), stream.size());  // warms what the other warms
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t i = 0; i < iterations; ++i) {
      sum += loop(view, stream.data(), stream.size());
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    if (sum != (iterations + 1) * expected) std::abort();
    return seconds.count() / static_cast<double>(iterations);
  };

  by_harness();
  std::vector<double> ratios;
  std::vector<double> hand_ns;
  std::vector<double> harness_ns;
  for (int pair = 0; pair < kPairs; ++pair) {
    double hand = 0;
    double harness = 0;
    if (pair % 2 == 0) hand = by_hand();
    harness = by_harness();
    if (pair % 2 == 1) hand = by_hand();
    hand_ns.push_back(hand * 1e9 / static_cast<double>(lookups));
    harness_ns.push_back(harness * 1e9 / static_cast<double>(lookups));
    ratios.push_back(harness / hand);
  }
  const Interval interval = *MedianInterval(ratios);
  fmt::print("| {} | {} | {} | {:.3f} | {:.3f} | {:.4f} | {:.4f}..{:.4f} |\n", keys, lookups,
             kModeNames[static_cast<size_t>(mode)], *Median(hand_ns), *Median(harness_ns),
             *Median(ratios), interval.low, interval.high);
}

}  // namespace
}  // namespace filterbench

int main(int argc, char** argv) {
  using namespace filterbench;  // NOLINT: main lives outside of the namespace
  std::vector<uint64_t> sizes;
  for (int i = 1; i < argc; ++i) {
    const double keys = std::strtod(argv[i], nullptr);
    if (!(keys >= 1 && keys <= 1e9)) {
      fmt::print(stderr, "overhead_benchmark: '{}' is no number of keys in 1..1e9\n", argv[i]);
      return 2;
    }
    sizes.push_back(static_cast<uint64_t>(keys));
  }
  if (sizes.empty()) sizes = {1'000, 10'000, 100'000, 1'000'000, 10'000'000};
  fmt::print("| keys | lookups | mode | by hand, ns | harness, ns | ratio | 95 % |\n");
  fmt::print("|---|---|---|---|---|---|---|\n");
  for (const uint64_t keys : sizes) {
    Compare(keys, 4096, Mode::kLookupBatched);
    Compare(keys, DefaultStreamLookups(keys), Mode::kLookupBatched);
    Compare(keys, DefaultStreamLookups(keys), Mode::kLookupSingle);
  }
  return 0;
}
