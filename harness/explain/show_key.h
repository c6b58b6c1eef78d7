#ifndef FILTERBENCH_HARNESS_EXPLAIN_SHOW_KEY_H_
#define FILTERBENCH_HARNESS_EXPLAIN_SHOW_KEY_H_

// Keys are any bytes; what is printed must not move the cursor or turn the line around.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace filterbench::explain {

// A well-formed code point at the front of a text that is not empty (RFC 3629, section 4).
struct CodePoint {
  uint32_t value;
  size_t bytes;
};
std::optional<CodePoint> Decode(std::string_view text);

// A key as it can be shown anywhere, on one line: in quotation marks unless it is a plain word,
// with escapes (\n, \x1b, \u{202e}) for whatever is no visible character, for what is no UTF-8, and
// for what is not ASCII unless `utf8`. Cut where it is long.
std::string ShowKey(std::string_view key, bool utf8 = false);

}  // namespace filterbench::explain

#endif  // FILTERBENCH_HARNESS_EXPLAIN_SHOW_KEY_H_
