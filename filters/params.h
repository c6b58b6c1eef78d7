#ifndef FILTERBENCH_FILTERS_PARAMS_H_
#define FILTERBENCH_FILTERS_PARAMS_H_

// A filter describes each of its knobs once, as a constexpr tuple of Knob and Choice. The command
// line, the sweep specs, `filterbench list`, the records and the wire format are all made from it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace filterbench {

// A numeric knob: T is an unsigned integer type or double, its values lie in [low, high].
template <class Params, class T>
struct Knob {
  using Value = T;
  std::string_view name;
  T Params::*member;
  T low;
  T high;
  std::string_view meaning;
};

// A knob with named values: the enumerators of E count from 0 in the order of `choices`.
template <class Params, class E, size_t N>
struct Choice {
  using Value = E;
  std::string_view name;
  E Params::*member;
  std::array<std::string_view, N> choices;
  std::string_view meaning;
};
template <class Params, class E, size_t N>
Choice(std::string_view, E Params::*, std::array<std::string_view, N>, std::string_view)
    -> Choice<Params, E, N>;

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_PARAMS_H_
