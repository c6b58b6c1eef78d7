#ifndef FILTERBENCH_HARNESS_EXPLAIN_DRAW_H_
#define FILTERBENCH_HARNESS_EXPLAIN_DRAW_H_

// A scene as text of a terminal: plain ASCII but for keys, and those only where `utf8`.

#include <cstddef>
#include <string>
#include <string_view>

#include "harness/explain/scene.h"

namespace filterbench::explain {

inline constexpr size_t kMinWidth = 20;
inline constexpr size_t kMaxWidth = 500;

struct Look {
  size_t width = 80;    // columns; no line of prose or drawing is longer, kMinWidth or more
  bool colour = false;  // with escape sequences
  bool utf8 = false;    // the terminal shows UTF-8
};

// A key as it can be shown anywhere, on one line: in quotation marks unless it is a plain word, with
// escapes (\n, \x1b, \u{202e}) for whatever is no visible character, for what is no UTF-8, and for
// what is not ASCII unless `utf8`. Cut where it is long.
std::string ShowKey(std::string_view key, bool utf8);

// Ends with a newline.
std::string Draw(const Scene& scene, const Look& look);

}  // namespace filterbench::explain

#endif  // FILTERBENCH_HARNESS_EXPLAIN_DRAW_H_
