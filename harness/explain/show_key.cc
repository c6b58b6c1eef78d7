#include "harness/explain/show_key.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace filterbench::explain {
namespace {

constexpr size_t kLongestKey = 40;  // in bytes, as shown

// Whether a terminal shows it as itself: no control character (C0, C1), nothing that is invisible,
// turns the direction of writing, joins the character before or is for private use.
bool IsVisible(uint32_t c) {
  constexpr std::pair<uint32_t, uint32_t> kHidden[] = {
      {0x00, 0x1f},     {0x7f, 0xa0},     {0xad, 0xad},     {0x300, 0x36f},    {0x61c, 0x61c},
      {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x2000, 0x200f},  {0x2028, 0x202f},
      {0x205f, 0x206f}, {0x20d0, 0x20ff}, {0x3000, 0x3000}, {0x3164, 0x3164},  {0xe000, 0xf8ff},
      {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xffff},  {0xe0000, 0x10ffff},
  };
  return std::none_of(std::begin(kHidden), std::end(kHidden),
                      [c](const auto& range) { return c >= range.first && c <= range.second; });
}

std::string Escape(uint32_t c) {
  switch (c) {
    case '\n': return "\\n";
    case '\t': return "\\t";
    case '\r': return "\\r";
    case '"': return "\\\"";
    case '\\': return "\\\\";
    default: return c < 0x80 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{{{:x}}}", c);
  }
}

}  // namespace

std::optional<CodePoint> Decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return CodePoint{lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return std::nullopt;
  uint32_t value = lead & (0x7f >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return std::nullopt;
    value = value << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < kLeast[bytes] || value > 0x10ffff || is_surrogate) return std::nullopt;
  return CodePoint{value, bytes};
}

std::string ShowKey(std::string_view key, bool utf8) {
  bool is_word = !key.empty();
  std::string text;
  const size_t bytes = key.size();
  while (!key.empty()) {
    const auto c = Decode(key);
    const bool shown_as_is = c && (c->value < 0x80 || utf8) && IsVisible(c->value);
    std::string shown;
    if (!c) {
      shown = fmt::format("\\x{:02x}", static_cast<unsigned char>(key[0]));
    } else if (!shown_as_is || c->value == '"' || c->value == '\\') {
      shown = Escape(c->value);
    } else {
      shown = key.substr(0, c->bytes);
    }
    is_word = is_word && shown_as_is &&
              (c->value >= 0x80 || std::isalnum(static_cast<int>(c->value)) != 0 ||
               c->value == '_' || c->value == '-' || c->value == '.' || c->value == '/');
    if (text.size() + shown.size() > kLongestKey) {
      return fmt::format("\"{}\"... ({} bytes)", text, bytes);
    }
    text += shown;
    key.remove_prefix(c ? c->bytes : 1);
  }
  return is_word ? text : '"' + text + '"';
}

}  // namespace filterbench::explain
