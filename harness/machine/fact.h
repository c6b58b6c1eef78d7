// A fact about the machine: either a value or the reason why it is not known.
//
// Results are compared between machines years later, so "not known" must survive as such: it is
// written as null beside a `<field>_reason`, and never as 0, false or an empty list.

#ifndef FILTERBENCH_HARNESS_MACHINE_FACT_H_
#define FILTERBENCH_HARNESS_MACHINE_FACT_H_

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace filterbench {

template <typename T>
class Fact {
 public:
  static Fact Known(T value) {
    Fact fact;
    fact.value_ = std::move(value);
    return fact;
  }
  static Fact Unknown(std::string reason) {
    Fact fact;
    fact.reason_ = std::move(reason);
    return fact;
  }

  bool known() const { return value_.has_value(); }
  // Only for a known fact.
  const T& value() const { return *value_; }
  // Empty for a known fact.
  const std::string& reason() const { return reason_; }

 private:
  Fact() = default;

  std::optional<T> value_;
  std::string reason_;
};

inline void PutUnknown(nlohmann::json& object, const std::string& field, std::string reason) {
  object[field] = nullptr;
  object[field + "_reason"] = std::move(reason);
}

template <typename T>
void PutFact(nlohmann::json& object, const std::string& field, const Fact<T>& fact) {
  if (fact.known()) {
    object[field] = fact.value();
  } else {
    PutUnknown(object, field, fact.reason());
  }
}

// By how much a counter that only grows has grown.
inline Fact<int64_t> Difference(const Fact<int64_t>& before, const Fact<int64_t>& after) {
  if (!before.known()) return before;
  if (!after.known()) return after;
  if (after.value() < before.value()) {
    return Fact<int64_t>::Unknown(
        fmt::format("the counter fell from {} to {}", before.value(), after.value()));
  }
  return Fact<int64_t>::Known(after.value() - before.value());
}

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_FACT_H_
