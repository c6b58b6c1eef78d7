#ifndef FILTERBENCH_FILTERS_FUZZER_H_
#define FILTERBENCH_FILTERS_FUZZER_H_

// A fuzzer, `<x>_fuzzer.cc` beside the code that it feeds with anything:
//
//   FILTERBENCH_FUZZER(Wire) { ... use(input); FuzzRequire(..., "..."); }
//
// With Clang and FILTERBENCH_FUZZERS=ON each is a program of its own on libFuzzer (scripts/fuzz).
// In every build it is a test as well, which gives it each file of its corpus, testdata/fuzz/<x>/
// beside it: what was found once stays mended.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace filterbench {

// Ends the input as a finding.
inline void FuzzRequire(bool holds, std::string_view what) {
  if (!holds) throw std::logic_error(std::string(what));
}

// Takes values off the front of an input; where that has ended they are zeros.
class FuzzInput {
 public:
  explicit FuzzInput(std::span<const uint8_t> bytes) : rest_(bytes) {}

  template <class T>
  T Number() {
    T value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) {
      const uint8_t byte = i < rest_.size() ? rest_[i] : 0;
      value |= static_cast<T>(static_cast<T>(byte) << (8 * i));
    }
    (void)Bytes(sizeof(T));
    return value;
  }
  // In [low, high].
  uint64_t InRange(uint64_t low, uint64_t high) {
    const uint64_t value = Number<uint16_t>();
    return low + value % (high - low + 1);
  }
  std::span<const uint8_t> Bytes(size_t n) {
    const std::span<const uint8_t> taken = rest_.first(std::min(n, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::span<const uint8_t> rest() const { return rest_; }
  bool empty() const { return rest_.empty(); }

 private:
  std::span<const uint8_t> rest_;
};

inline std::string_view FuzzText(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace filterbench

#ifdef FILTERBENCH_LIBFUZZER

#define FILTERBENCH_FUZZER(name)                                        \
  namespace filterbench {                                               \
  static void Fuzz##name(std::span<const uint8_t> input);               \
  }                                                                     \
  extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size); \
  int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {        \
    filterbench::Fuzz##name({data, size});                              \
    return 0;                                                           \
  }                                                                     \
  void filterbench::Fuzz##name(std::span<const uint8_t> input)

#else

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include <gtest/gtest.h>

// Buffers of just the size of the input, so that AddressSanitizer sees what is read beyond them.
#define FILTERBENCH_FUZZER(name)                                                       \
  namespace filterbench {                                                              \
  static void Fuzz##name(std::span<const uint8_t> input);                              \
  TEST(FuzzCorpusTest, name) {                                                         \
    size_t inputs = 0;                                                                 \
    for (const auto& entry : std::filesystem::directory_iterator(FILTERBENCH_CORPUS)) { \
      SCOPED_TRACE(entry.path().string());                                             \
      std::ifstream file(entry.path(), std::ios::binary);                              \
      const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};         \
      const std::vector<uint8_t> input(bytes.begin(), bytes.end());                    \
      EXPECT_NO_THROW(Fuzz##name(input));                                              \
      ++inputs;                                                                        \
    }                                                                                  \
    EXPECT_GT(inputs, 0u) << FILTERBENCH_CORPUS;                                       \
  }                                                                                    \
  }                                                                                    \
  void filterbench::Fuzz##name(std::span<const uint8_t> input)

#endif

#endif  // FILTERBENCH_FILTERS_FUZZER_H_
