// The reference loops over any view: plain C++, one key at a time. Included once per SIMD target
// by loops-inl.h and once for the baseline by scalar_loops.h, each time with
//   FILTERBENCH_LOOPS_NAMESPACE  the namespace that the copy lives in
//   FILTERBENCH_LOOPS_ATTR       the attribute that lambdas need for the target's instructions
// It has no include guard for that reason.

namespace filterbench {
namespace FILTERBENCH_LOOPS_NAMESPACE {

// What answers for one key: the view itself, or `One<V>`, made from a specialised view V.
template <class V>
using Reference = V;

template <class View, template <class> class One = Reference>
uint64_t CountSingle(const View& any_view, const uint64_t* hashes, size_t n) {
  return SpecializeView(any_view, [=](const auto& view_ref) FILTERBENCH_LOOPS_ATTR {
    const One<std::decay_t<decltype(view_ref)>> view(view_ref);
    uint64_t count = 0;
    for (size_t i = 0; i < n; ++i) count += view.MayContain(hashes[i]) ? 1 : 0;
    return count;
  });
}

template <class View, template <class> class One = Reference>
uint64_t CountSingleU64(const View& any_view, const uint64_t* keys, size_t n, uint64_t seed) {
  return SpecializeView(any_view, [=](const auto& view_ref) FILTERBENCH_LOOPS_ATTR {
    const One<std::decay_t<decltype(view_ref)>> view(view_ref);
    uint64_t count = 0;
    for (size_t i = 0; i < n; ++i) {
      if constexpr (KeyHashingView<View>) {
        count += view.MayContain(keys[i]) ? 1 : 0;
      } else {
        count += view.MayContain(HashU64(keys[i], seed)) ? 1 : 0;
      }
    }
    return count;
  });
}

template <class View, template <class> class One = Reference>
uint64_t CountSingleBytes(const View& any_view, ByteKeys keys, uint64_t seed) {
  return SpecializeView(any_view, [=](const auto& view_ref) FILTERBENCH_LOOPS_ATTR {
    const One<std::decay_t<decltype(view_ref)>> view(view_ref);
    uint64_t count = 0;
    for (size_t i = 0; i < keys.size; ++i) {
      if constexpr (KeyHashingView<View>) {
        count += view.MayContainBytes(keys[i]) ? 1 : 0;
      } else {
        count += view.MayContain(HashBytes(keys[i], seed)) ? 1 : 0;
      }
    }
    return count;
  });
}

template <class View>
void BitsSingle(const View& any_view, const uint64_t* hashes, size_t n, uint64_t* bits) {
  SpecializeView(any_view, [=](const auto& view_ref) FILTERBENCH_LOOPS_ATTR {
    const auto view = view_ref;
    for (size_t i = 0; i < n; i += 64) {
      const size_t in_word = n - i < 64 ? n - i : 64;
      uint64_t word = 0;
      for (size_t j = 0; j < in_word; ++j) {
        word |= uint64_t{view.MayContain(hashes[i + j])} << j;
      }
      bits[i / 64] = word;
    }
  });
}

template <class View, template <class> class One = Reference>
uint64_t Chain(const View& any_view, const uint64_t* hashes, size_t n) {
  // Zero, but the compiler cannot know: every lookup depends on the answer before it.
  uint64_t zero = 0;
  asm volatile("" : "+r"(zero));
  return SpecializeView(any_view, [=](const auto& view_ref) FILTERBENCH_LOOPS_ATTR {
    const One<std::decay_t<decltype(view_ref)>> view(view_ref);
    uint64_t count = 0;
    uint64_t answer = 0;
    for (size_t i = 0; i < n; ++i) {
      answer = view.MayContain(hashes[i] ^ (answer & zero)) ? 1 : 0;
      count += answer;
    }
    return count;
  });
}

template <class View>
Kernel<View> ReferenceKernel(std::string_view target) {
  return {target,
          &CountSingle<View>,
          &BitsSingle<View>,
          &CountSingle<View>,
          &CountSingleU64<View>,
          &CountSingleBytes<View>,
          &Chain<View>,
          &CountSingle<View>};
}

// Lets `One` answer in the loops over single keys.
template <template <class> class One, class View>
void UseForSingleKeys(Kernel<View>& kernel) {
  kernel.count_single = &CountSingle<View, One>;
  kernel.count_single_u64 = &CountSingleU64<View, One>;
  kernel.count_single_bytes = &CountSingleBytes<View, One>;
  kernel.chain = &Chain<View, One>;
}

}  // namespace FILTERBENCH_LOOPS_NAMESPACE
}  // namespace filterbench
