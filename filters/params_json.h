#ifndef FILTERBENCH_FILTERS_PARAMS_JSON_H_
#define FILTERBENCH_FILTERS_PARAMS_JSON_H_

// Params to and from JSON, and their description, made from the knobs (filters/params.h). The
// seed is not a knob: it changes from round to round and is passed beside the parameters.

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "filters/nearest_name.h"
#include "filters/params.h"
#include "filters/result.h"

namespace filterbench {

// One knob as `filterbench list` shows it.
struct KnobInfo {
  std::string name;
  nlohmann::json default_value;
  nlohmann::json low;                // null for a choice
  nlohmann::json high;               // null for a choice
  std::vector<std::string> choices;  // empty for a number
  std::string meaning;
};

namespace params_internal {

template <class Params, class T>
nlohmann::json ToJson(const Knob<Params, T>& knob, const Params& params) {
  return params.*knob.member;
}

template <class Params, class E, size_t N>
nlohmann::json ToJson(const Choice<Params, E, N>& choice, const Params& params) {
  return choice.choices[static_cast<size_t>(params.*choice.member)];
}

// Empty, or what is wrong with the value.
template <class Params, class T>
std::string FromJson(const Knob<Params, T>& knob, const nlohmann::json& value, Params& params) {
  const auto refuse = [&] {
    return fmt::format("{}: must be {} in {}..{}, is {}", knob.name,
                       std::is_integral_v<T> ? "a whole number" : "a number", knob.low, knob.high,
                       value.dump());
  };
  if (!value.is_number()) return refuse();
  if constexpr (std::is_integral_v<T>) {
    // 1e6 is a whole number too.
    const double as_double = value.get<double>();
    if (as_double != std::floor(as_double) || as_double < 0 || as_double > 1.8e19) return refuse();
    const uint64_t whole = value.is_number_float() ? static_cast<uint64_t>(as_double)
                                                   : value.get<uint64_t>();
    if (whole < knob.low || whole > knob.high) return refuse();
    params.*knob.member = static_cast<T>(whole);
  } else {
    const T number = value.get<T>();
    if (!(number >= knob.low && number <= knob.high)) return refuse();
    params.*knob.member = number;
  }
  return {};
}

template <class Params, class E, size_t N>
std::string FromJson(const Choice<Params, E, N>& choice, const nlohmann::json& value,
                     Params& params) {
  // Choices such as "8" may be given as numbers.
  const std::string name = value.is_string() ? value.get<std::string>() : value.dump();
  for (size_t i = 0; i < N; ++i) {
    if (choice.choices[i] == name) {
      params.*choice.member = static_cast<E>(i);
      return {};
    }
  }
  return fmt::format("{}: must be one of {}, is {}", choice.name, fmt::join(choice.choices, ", "),
                     value.dump());
}

template <class Params, class T>
KnobInfo Describe(const Knob<Params, T>& knob) {
  return {std::string(knob.name), Params{}.*knob.member, knob.low, knob.high, {},
          std::string(knob.meaning)};
}

template <class Params, class E, size_t N>
KnobInfo Describe(const Choice<Params, E, N>& choice) {
  return {std::string(choice.name),
          ToJson(choice, Params{}),
          nullptr,
          nullptr,
          {choice.choices.begin(), choice.choices.end()},
          std::string(choice.meaning)};
}

}  // namespace params_internal

template <class F>
std::vector<KnobInfo> DescribeKnobs() {
  return std::apply(
      [](const auto&... knob) {
        return std::vector<KnobInfo>{params_internal::Describe(knob)...};
      },
      F::kKnobs);
}

// All knobs, defaults included; without the seed.
template <class F>
nlohmann::json ParamsToJson(const typename F::Params& params) {
  nlohmann::json json = nlohmann::json::object();
  std::apply(
      [&](const auto&... knob) {
        ((json[std::string(knob.name)] = params_internal::ToJson(knob, params)), ...);
      },
      F::kKnobs);
  return json;
}

// Knobs left out keep their defaults; unknown names are refused with the nearest valid one. The
// error starts with the name of the field.
template <class F>
Result<typename F::Params> ParamsFromJson(const nlohmann::json& json) {
  typename F::Params params;
  if (!json.is_object()) return Error{fmt::format("must be an object, is {}", json.dump())};
  std::vector<std::string> names;
  for (const KnobInfo& knob : DescribeKnobs<F>()) names.push_back(knob.name);
  for (const auto& item : json.items()) {
    const std::string& key = item.key();
    const nlohmann::json& value = item.value();
    bool known = false;
    std::string problem;
    std::apply(
        [&](const auto&... knob) {
          (
              [&] {
                if (knob.name == key) {
                  known = true;
                  problem = params_internal::FromJson(knob, value, params);
                }
              }(),
              ...);
        },
        F::kKnobs);
    if (!known) return Error{UnknownName("parameter", key, names)};
    if (!problem.empty()) return Error{problem};
  }
  return params;
}

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_PARAMS_JSON_H_
