#include "harness/spec/shard.h"

#include <charconv>
#include <optional>
#include <system_error>

#include <fmt/format.h>

namespace filterbench {
namespace {

// Digits only: no sign, no blank.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc() || stopped != end) return std::nullopt;
  return number;
}

}  // namespace

Result<Shard> ParseShard(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash != text.npos) {
    const auto position = ParseNumber(text.substr(0, slash));
    const auto count = ParseNumber(text.substr(slash + 1));
    if (position && count && *position >= 1 && *position <= *count) {
      return Shard{.index = *position - 1, .count = *count};
    }
  }
  return Error{fmt::format("shard '{}': must be I/N, two whole numbers with I from 1 to N", text)};
}

std::string ShardText(const Shard& shard) {
  return fmt::format("{}/{}", shard.index + 1, shard.count);
}

nlohmann::json ShardToJson(const Shard& shard) {
  return {{"index", shard.index}, {"count", shard.count}};
}

}  // namespace filterbench
