#include "filters/nearest_name.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace filterbench {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> distance(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) distance[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) distance[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      distance[i][j] = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1,
                                 distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
      }
    }
  }
  return distance[a.size()][b.size()];
}

}  // namespace

std::string UnknownName(std::string_view what, std::string_view given,
                        std::span<const std::string> names) {
  const std::string_view shown = given.substr(0, 80);
  const std::string* nearest = nullptr;
  size_t nearest_distance = std::max<size_t>(2, shown.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(shown, name);
    if (distance < nearest_distance) {
      nearest = &name;
      nearest_distance = distance;
    }
  }
  if (nearest != nullptr) {
    return fmt::format("unknown {} '{}' (did you mean '{}'?)", what, shown, *nearest);
  }
  return fmt::format("unknown {} '{}' (valid: {})", what, shown, fmt::join(names, ", "));
}

}  // namespace filterbench
