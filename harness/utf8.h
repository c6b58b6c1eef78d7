#ifndef FILTERBENCH_HARNESS_UTF8_H_
#define FILTERBENCH_HARNESS_UTF8_H_

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace filterbench {

// Text from code that is not ours: bytes that are no UTF-8 become U+FFFD, so that it can be
// recorded.
inline std::string ToValidUtf8(std::string_view text) {
  using Json = nlohmann::json;
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))
      .get<std::string>();
}

inline bool IsValidUtf8(std::string_view text) { return ToValidUtf8(text) == text; }

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_UTF8_H_
