// What every kernel file shares, compiled once per Highway target.

#if defined(FILTERBENCH_FILTERS_SIMD_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FILTERBENCH_FILTERS_SIMD_LOOPS_INL_H_
#undef FILTERBENCH_FILTERS_SIMD_LOOPS_INL_H_
#else
#define FILTERBENCH_FILTERS_SIMD_LOOPS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "filters/simd/hwy_compat-inl.h"
#include "filters/simd/kernel.h"
#include "filters/simd/targets.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();

#define FILTERBENCH_LOOPS_NAMESPACE HWY_NAMESPACE
#define FILTERBENCH_LOOPS_ATTR HWY_ATTR
#include "filters/simd/reference_loops-inl.h"
#undef FILTERBENCH_LOOPS_NAMESPACE
#undef FILTERBENCH_LOOPS_ATTR

namespace filterbench {
namespace HWY_NAMESPACE {

// The reference loops of this target with batched loops of the filter's own.
template <class View>
Kernel<View> MakeKernel(uint64_t (*count_batched)(const View&, const uint64_t*, size_t),
                        void (*bits_batched)(const View&, const uint64_t*, size_t, uint64_t*)) {
  Kernel<View> kernel = ReferenceKernel<View>(TargetName(HWY_TARGET));
  kernel.count_batched = count_batched;
  kernel.bits_batched = bits_batched;
  return kernel;
}

// The same from one loop: `kRun(view, hashes, n, bits)` returns the number of answers `maybe` and
// writes the answers to `bits` unless it is null.
template <class View, uint64_t (*kRun)(const View&, const uint64_t*, size_t, uint64_t*)>
Kernel<View> MakeKernel() {
  return MakeKernel<View>(
      [](const View& view, const uint64_t* hashes, size_t n) {
        return kRun(view, hashes, n, nullptr);
      },
      [](const View& view, const uint64_t* hashes, size_t n, uint64_t* bits) {
        kRun(view, hashes, n, bits);
      });
}

// Batched lookups by words of 64 answers: `word_of(hashes, n)` gives those of n <= 64 keys as bits.
// Returns the number of answers `maybe`; writes the words to `bits` unless it is null.
template <class WordOf>
HWY_INLINE uint64_t LookUpByWords(const uint64_t* HWY_RESTRICT hashes, size_t n,
                                  uint64_t* HWY_RESTRICT bits, const WordOf& word_of) {
  uint64_t count = 0;
  for (size_t i = 0; i < n; i += 64) {
    const uint64_t word = word_of(hashes + i, std::min<size_t>(64, n - i));
    count += hwy::PopCount(word);
    if (bits != nullptr) bits[i / 64] = word;
  }
  return count;
}

// Batched lookups in chunks of 64 keys. `Lookup<V>`, for the specialised view V, has
//   explicit Lookup(const V& view)
//   kGroup                    keys that are tested at once; divides 64
//   Chunk                     what is computed for 64 keys ahead of their test: addresses, masks
//   Prepare(hashes, chunk)    computes it; always 64 hashes, which stay where they are until tested
//   Prefetch(chunk, i)        asks for all lines of key i
//   Test(chunk, i)            the answers of keys i to i + kGroup - 1 as the lowest bits
// A chunk is prepared while the one before it is tested. With prefetching, the lines of the next
// chunk are asked for one group ahead of each group that is tested: a burst of 64 prefetches would
// wait for the line fill buffers (24 on Zen 3), and testing would wait for the burst.
//
// In the last chunk, keys that nobody asked for stand behind the others: any hash must be valid.
inline constexpr size_t kChunkKeys = 64;

// Number of answers `maybe`; writes the answers to `bits` unless it is null.
template <bool kPrefetch, class Lookup>
HWY_INLINE uint64_t LookUpInChunks(const Lookup& lookup, const uint64_t* HWY_RESTRICT hashes,
                                   size_t n, uint64_t* HWY_RESTRICT bits) {
  constexpr size_t kGroup = Lookup::kGroup;
  static_assert(kChunkKeys % kGroup == 0);
  if (n == 0) return 0;
  const size_t words = (n + kChunkKeys - 1) / kChunkKeys;
  const size_t in_last = n - (words - 1) * kChunkKeys;
  HWY_ALIGN uint64_t last_hashes[kChunkKeys] = {};
  if (in_last != kChunkKeys) std::copy(hashes + (n - in_last), hashes + n, last_hashes);
  typename Lookup::Chunk chunks[2];
  // A single word is tested while the other chunk is asked for, which nobody else prepares.
  if (kPrefetch && words == 1) lookup.Prepare(last_hashes, chunks[1]);
  uint64_t count = 0;
  // One round more than there are words: each round prepares a chunk and tests the one before.
  for (size_t word = 0; word <= words; ++word) {
    typename Lookup::Chunk& next = chunks[word % 2];
    if (word < words) {
      const bool padded = word + 1 == words && in_last != kChunkKeys;
      lookup.Prepare(padded ? last_hashes : hashes + word * kChunkKeys, next);
    }
    if (word == 0) {
      if (kPrefetch) {
        for (size_t i = 0; i < kChunkKeys; ++i) lookup.Prefetch(next, i);
      }
      continue;
    }
    const typename Lookup::Chunk& now = chunks[(word + 1) % 2];
    const size_t end = word == words ? in_last : kChunkKeys;
    uint64_t answers = 0;
    for (size_t i = 0; i < end; i += kGroup) {
      // After the last word these are the lines of the word before: in the cache, at no cost.
      if (kPrefetch) {
        for (size_t j = i; j < i + kGroup; ++j) lookup.Prefetch(next, j);
      }
      answers |= lookup.Test(now, i) << i;
    }
    if (word == words) answers &= ~uint64_t{0} >> (kChunkKeys - in_last);
    count += hwy::PopCount(answers);
    if (bits != nullptr) bits[word - 1] = answers;
  }
  return count;
}

// Inserts keys by a Lookup that also has Add(table, chunk, i), which sets the bits of key i.
template <bool kPrefetch, class Lookup>
HWY_INLINE void InsertInChunks(const Lookup& lookup, std::byte* HWY_RESTRICT table,
                               const uint64_t* HWY_RESTRICT hashes, size_t n) {
  HWY_ALIGN uint64_t last_hashes[kChunkKeys] = {};
  typename Lookup::Chunk chunks[2];
  const auto prepare = [&](size_t first) HWY_ATTR {
    typename Lookup::Chunk& chunk = chunks[first / kChunkKeys % 2];
    const uint64_t* from = hashes + first;
    if (n - first < kChunkKeys) {
      std::copy(from, hashes + n, last_hashes);
      from = last_hashes;
    }
    lookup.Prepare(from, chunk);
  };
  if (n != 0) prepare(0);
  for (size_t first = 0; first < n; first += kChunkKeys) {
    typename Lookup::Chunk& now = chunks[first / kChunkKeys % 2];
    const size_t keys = std::min(kChunkKeys, n - first);
    if (first + kChunkKeys < n) prepare(first + kChunkKeys);
    if (kPrefetch && first + kChunkKeys < n) {
      const typename Lookup::Chunk& next = chunks[(first / kChunkKeys + 1) % 2];
      for (size_t i = 0; i < keys; ++i) {
        lookup.Prefetch(next, i);
        lookup.Add(table, now, i);
      }
    } else {
      for (size_t i = 0; i < keys; ++i) lookup.Add(table, now, i);
    }
  }
}

template <class View, template <class> class Lookup>
struct ChunkedLoops {
  static uint64_t Run(const View& any_view, const uint64_t* hashes, size_t n, uint64_t* bits) {
    return SpecializeView(any_view, [=](const auto& view) HWY_ATTR {
      const Lookup<std::decay_t<decltype(view)>> lookup(view);
      return view.prefetch ? LookUpInChunks<true>(lookup, hashes, n, bits)
                           : LookUpInChunks<false>(lookup, hashes, n, bits);
    });
  }

  static void Insert(const View& any_view, std::byte* table, const uint64_t* hashes, size_t n) {
    SpecializeView(any_view, [=](const auto& view) HWY_ATTR {
      const Lookup<std::decay_t<decltype(view)>> lookup(view);
      if (view.prefetch) {
        InsertInChunks<true>(lookup, table, hashes, n);
      } else {
        InsertInChunks<false>(lookup, table, hashes, n);
      }
    });
  }

  static Kernel<View> Make() { return MakeKernel<View, &Run>(); }
  // Where Lookup has Add.
  static Kernel<View> MakeWithInsert() {
    Kernel<View> kernel = Make();
    kernel.insert = &Insert;
    return kernel;
  }
  // Where Lookup also has MayContain(hash): the vectors within one key.
  static Kernel<View> MakeWithSingleAndInsert() {
    Kernel<View> kernel = MakeWithInsert();
    UseForSingleKeys<Lookup>(kernel);
    return kernel;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace filterbench
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
