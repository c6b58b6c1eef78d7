#ifndef FILTERBENCH_FILTERS_LIMITS_TOUCH_LINES_H_
#define FILTERBENCH_FILTERS_LIMITS_TOUCH_LINES_H_

// Baseline: what the memory system charges for k random cache lines per key. No filter that reads k
// lines can be faster at the same table size; every speed is reported beside it.
//
// The table holds pseudo-random words. A lookup reads one word of each of its lines and answers
// with the parity of one bit of each: about half of all answers are yes, whatever was inserted, and
// no answer can be had without the lines.
//
// A floor is only as honest as the fastest way to reach it, and which way that is depends on the
// table's size and the machine: there are several, all with the same answers, as the knob `way`.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "filters/filter.h"
#include "filters/table.h"

namespace filterbench {

class TouchLines {
 public:
  static constexpr FilterInfo kInfo = {
      .name = "touch_lines",
      .summary = "baseline: reads k random cache lines per key",
      .source = "the machine's memory system",
      .fpr_formula = "none: a baseline",
      .is_baseline = true,
  };

  // How batched lookups reach their lines.
  enum class Way {
    kBest,           // the one that won at this size, see Resolve
    kPlain,          // one key after the other; the out-of-order window finds the parallelism
    kFullLine,       // the same with vector loads of the whole line
    kGather,         // addresses in vectors, words by gather instructions
    kRing16,         // prefetch 16 keys ahead
    kRing32,
    kRing64,
    kVectorAddress,  // addresses of 64 keys in vectors, words by scalar loads
    kVectorWord,     // the same, words loaded into vectors one by one
    kAhead,          // addresses in vectors, each line prefetched 64 keys ahead
  };

  struct Params {
    double bits_per_key = 10;
    uint32_t lines = 1;
    Way way = Way::kBest;
    uint64_t seed = 0;
    bool operator==(const Params&) const = default;
  };
  static constexpr auto kKnobs = std::tuple{
      Knob<Params, double>{"bits_per_key", &Params::bits_per_key, 0.5, 128,
                           "size of the table over the number of keys"},
      Knob<Params, uint32_t>{"lines", &Params::lines, 1, 8, "random cache lines read per key"},
      Choice{"way", &Params::way,
             std::array<std::string_view, 10>{"best", "plain", "full_line", "gather", "ring_16",
                                              "ring_32", "ring_64", "vector_address",
                                              "vector_word", "ahead"},
             "how batched lookups reach their lines; the answers are the same"},
  };

  static constexpr uint64_t kWordsPerLine = kCacheLineBytes / sizeof(uint64_t);
  static constexpr uint64_t kMaxLines = uint64_t{1} << 31;  // 2^40 bits

  struct View {
    const uint64_t* words;
    uint64_t word_count;
    uint32_t lines;
    Way way;  // never kBest

    // The hash decides the first word by its high bits, and so the line; each further one by the
    // hash times one more of this odd number (2^64 over the golden ratio), which brings lower bits
    // up.
    static constexpr uint64_t kNextLine = 0x9e3779b97f4a7c15;

    uint64_t WordIndex(uint64_t hash) const { return FastRange64(hash, word_count); }

    bool MayContain(uint64_t hash) const noexcept {
      uint64_t parity = 0;
      for (uint32_t j = 0; j < lines; ++j, hash *= kNextLine) {
        parity ^= words[WordIndex(hash)] >> (hash % 64);
      }
      return (parity & 1) != 0;
    }

    template <class Use>
    decltype(auto) Specialize(Use&& use) const;
  };

  static Result<TouchLines> Build(std::span<const uint64_t> hashes, const Params& params);
  static Result<TouchLines> Deserialize(std::span<const std::byte> wire);
  std::vector<std::byte> Serialize() const;

  View view() const {
    return {table_.As<uint64_t>(), table_.size() / sizeof(uint64_t), params_.lines, way_};
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels();

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const;
  std::optional<FprEstimate> ExpectedFpr() const { return std::nullopt; }
  static std::optional<double> TheoryFpr(double) { return std::nullopt; }

  // Cache lines of the table for n keys, at least 1; beyond kMaxLines where it is too large to be
  // offered.
  static uint64_t LinesFor(uint64_t n, double bits_per_key);

 private:
  TouchLines(const Params& params, uint64_t n, AlignedTable table);

  Params params_;
  uint64_t n_;
  Way way_;
  AlignedTable table_;
  BuildReport report_;
};

namespace touch_lines_internal {

// A view whose number of lines is known at compile time.
template <uint32_t kLines>
struct FixedLines : TouchLines::View {
  static constexpr uint32_t lines = kLines;
  explicit FixedLines(const TouchLines::View& view) : View(view) {}

  bool MayContain(uint64_t hash) const noexcept {
    uint64_t parity = 0;
    for (uint32_t j = 0; j < kLines; ++j, hash *= kNextLine) {
      parity ^= words[WordIndex(hash)] >> (hash % 64);
    }
    return (parity & 1) != 0;
  }
};

}  // namespace touch_lines_internal

// The numbers of lines that a filter reads: one (blocked), two (cuckoo), three (xor, fuse).
template <class Use>
decltype(auto) TouchLines::View::Specialize(Use&& use) const {
  using touch_lines_internal::FixedLines;
  switch (lines) {
    case 1:
      return use(FixedLines<1>(*this));
    case 2:
      return use(FixedLines<2>(*this));
    case 3:
      return use(FixedLines<3>(*this));
    default:
      return use(*this);
  }
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_LIMITS_TOUCH_LINES_H_
