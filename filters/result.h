#ifndef FILTERBENCH_FILTERS_RESULT_H_
#define FILTERBENCH_FILTERS_RESULT_H_

#include <string>
#include <utility>
#include <variant>

namespace filterbench {

// Why something could not be done, in words for the person who asked for it.
struct Error {
  std::string message;
};

// Either a value or the reason why there is none. Filters and readers of input report failure as
// a value: a sweep records it and goes on.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  bool has_value() const { return state_.index() == 0; }

  // Only where has_value(); throws std::bad_variant_access otherwise, in release builds too.
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }

  // Only where !has_value().
  const std::string& error() const { return std::get<1>(state_).message; }

 private:
  std::variant<T, Error> state_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_RESULT_H_
