#ifndef FILTERBENCH_FILTERS_PLUGIN_PLUGIN_H_
#define FILTERBENCH_FILTERS_PLUGIN_PLUGIN_H_

// For plug-ins in C++: the table of filters/plugin/abi.h from one class, with all loops compiled
// around its inlined lookup. Needs abi.h and a C++20 compiler, nothing else of this project.
//
// A class F has
//   static constexpr filterbench_knob kKnobs[]   or   std::array<filterbench_knob, 0>
//   F(const uint64_t* hashes, size_t n, const double* values, uint64_t seed)
//                                        throws std::exception where it cannot be built: its what()
//                                        is the reason
//   bool MayContain(uint64_t hash) const
//   uint64_t SizeInBytes() const
// and, where it has them,
//   uint64_t CountBatched(const uint64_t* hashes, size_t n) const
//   void MayContainBits(const uint64_t* hashes, size_t n, uint64_t* bits) const
//   double ExpectedFpr() const
//   std::span<const std::byte> Table() const
//   F(uint64_t keys, const double* values, uint64_t seed) with bool Insert(uint64_t hash)
//   bool Erase(uint64_t hash)
// `FILTERBENCH_PLUGIN(Plugin<F>("name", "summary", "source", "formula"), ...)`, once, exports it.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <span>
#include <tuple>

#include "filters/plugin/abi.h"

namespace filterbench {

template <class F>
class Plugin : public filterbench_plugin_filter {
 public:
  constexpr Plugin(const char* name, const char* summary, const char* source = nullptr,
                   const char* fpr_formula = nullptr)
      : filterbench_plugin_filter{} {
    this->name = name;
    this->summary = summary;
    this->source = source;
    this->fpr_formula = fpr_formula;
    hash_bits = 64;
    knobs = std::data(F::kKnobs);
    knob_count = std::size(F::kKnobs);
    build = [](const uint64_t* hashes, size_t n, const double* values, uint64_t seed,
               char* reason) -> void* {
      return Make(reason, [&] { return new F(hashes, n, values, seed); });
    };
    destroy = [](void* filter) { delete static_cast<F*>(filter); };
    may_contain = [](const void* filter, uint64_t hash) {
      return Of(filter).MayContain(hash) ? 1 : 0;
    };
    size_in_bytes = [](const void* filter) -> uint64_t { return Of(filter).SizeInBytes(); };
    count_single = &CountSingle;
    if constexpr (requires(const F& f, const uint64_t* hashes) {
                    f.CountBatched(hashes, size_t{});
                  }) {
      count_batched = [](const void* filter, const uint64_t* hashes, size_t n) -> uint64_t {
        return Of(filter).CountBatched(hashes, n);
      };
    } else {
      count_batched = &CountSingle;
    }
    if constexpr (requires(const F& f, const uint64_t* hashes, uint64_t* bits) {
                    f.MayContainBits(hashes, size_t{}, bits);
                  }) {
      bits_batched = [](const void* filter, const uint64_t* hashes, size_t n, uint64_t* bits) {
        Of(filter).MayContainBits(hashes, n, bits);
      };
    }
    chain = [](const void* filter, const uint64_t* hashes, size_t n) -> uint64_t {
      const F& f = Of(filter);
      uint64_t zero = 0;
      asm volatile("" : "+r"(zero));
      uint64_t count = 0;
      uint64_t answer = 0;
      for (size_t i = 0; i < n; ++i) {
        answer = f.MayContain(hashes[i] ^ (answer & zero)) ? 1 : 0;
        count += answer;
      }
      return count;
    };
    if constexpr (requires(const F& f) { { f.ExpectedFpr() } -> std::convertible_to<double>; }) {
      expected_fpr = [](const void* filter) -> double { return Of(filter).ExpectedFpr(); };
    }
    if constexpr (requires(const F& f) { f.Table(); }) {
      table = [](const void* filter, size_t* bytes) -> const void* {
        const std::span<const std::byte> stored = Of(filter).Table();
        *bytes = stored.size();
        return stored.data();
      };
    }
    if constexpr (requires(F& f, uint64_t hash) { f.Insert(hash); }) {
      create = [](uint64_t keys, const double* values, uint64_t seed, char* reason) -> void* {
        return Make(reason, [&] { return new F(keys, values, seed); });
      };
      insert = [](void* filter, uint64_t hash) {
        return static_cast<F*>(filter)->Insert(hash) ? 1 : 0;
      };
    }
    if constexpr (requires(F& f, uint64_t hash) { f.Erase(hash); }) {
      erase = [](void* filter, uint64_t hash) {
        return static_cast<F*>(filter)->Erase(hash) ? 1 : 0;
      };
    }
  }

 private:
  static const F& Of(const void* filter) { return *static_cast<const F*>(filter); }

  template <class New>
  static void* Make(char* reason, const New& make) {
    try {
      return make();
    } catch (const std::exception& error) {
      std::snprintf(reason, FILTERBENCH_REASON_BYTES, "%s", error.what());
      return nullptr;
    }
  }

  static uint64_t CountSingle(const void* filter, const uint64_t* hashes, size_t n) {
    const F& f = Of(filter);
    uint64_t count = 0;
    for (size_t i = 0; i < n; ++i) count += f.MayContain(hashes[i]) ? 1 : 0;
    return count;
  }
};

}  // namespace filterbench

// The one exported function of a plug-in, over objects of Plugin<F>.
#define FILTERBENCH_PLUGIN(...)                                                             \
  extern "C" __attribute__((visibility("default"))) const filterbench_plugin*               \
  filterbench_plugin_entry(void) {                                                          \
    static const auto filters = std::tuple{__VA_ARGS__};                                    \
    static const auto table = std::apply(                                                   \
        [](const auto&... filter) {                                                         \
          return std::array<const filterbench_plugin_filter*, sizeof...(filter)>{&filter...}; \
        },                                                                                  \
        filters);                                                                           \
    static const filterbench_plugin plugin = {                                              \
        FILTERBENCH_PLUGIN_ABI, sizeof(filterbench_plugin_filter), table.data(), table.size()}; \
    return &plugin;                                                                         \
  }

#endif  // FILTERBENCH_FILTERS_PLUGIN_PLUGIN_H_
