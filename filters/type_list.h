#ifndef FILTERBENCH_FILTERS_TYPE_LIST_H_
#define FILTERBENCH_FILTERS_TYPE_LIST_H_

#include <string_view>

namespace filterbench {

template <class... Ts>
struct TypeList {
  // Calls use.template operator()<T>() for every type in order.
  template <class Use>
  static void ForEach(Use&& use) {
    (use.template operator()<Ts>(), ...);
  }
};

// A filter of the catalogue that this build cannot offer.
struct FilterNotBuilt {
  std::string_view type;
  std::string_view reason;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_TYPE_LIST_H_
