#ifndef FILTERBENCH_HARNESS_EXPLAIN_DRAW_H_
#define FILTERBENCH_HARNESS_EXPLAIN_DRAW_H_

// A scene as text of a terminal: plain ASCII but for keys, and those only where `utf8`.

#include <cstddef>
#include <string>

#include "harness/explain/scene.h"

namespace filterbench::explain {

inline constexpr size_t kMinWidth = 20;
inline constexpr size_t kMaxWidth = 500;

struct Look {
  size_t width = 80;    // columns; no line of prose or drawing is longer, kMinWidth or more
  bool colour = false;  // with escape sequences
  bool utf8 = false;    // the terminal shows UTF-8
};

// Ends with a newline.
std::string Draw(const Scene& scene, const Look& look);

}  // namespace filterbench::explain

#endif  // FILTERBENCH_HARNESS_EXPLAIN_DRAW_H_
