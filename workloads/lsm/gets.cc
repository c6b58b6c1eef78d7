#include "workloads/lsm/gets.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "workloads/key_bytes.h"
#include "workloads/lookups.h"
#include "workloads/workload.h"

namespace filterbench::lsm {

Result<std::vector<Lookup>> DrawGets(const GetStream& stream) {
  const uint64_t present = stream.present.empty() ? stream.keys : stream.present.size();
  const uint64_t operations = LookupsWithoutRepeats(stream.operations, stream.negative_share,
                                                    present, stream.absent);
  const LookupIndices drawn = MakeLookups(present, present + stream.absent, operations,
                                          stream.negative_share, stream.seed);
  if (drawn.negatives != static_cast<uint64_t>(std::llround(static_cast<double>(operations) *
                                                            stream.negative_share))) {
    return Error{fmt::format("{}negative_share: the key set has no absent keys", kNotHere)};
  }
  std::vector<Lookup> lookups;
  lookups.reserve(operations);
  for (const uint64_t index : drawn.indices) {
    const bool is_present = index < present;
    const uint64_t key = !is_present              ? stream.keys + (index - present)
                         : stream.present.empty() ? index
                                                  : stream.present[index];
    lookups.push_back({stream.key_of(key), is_present});
  }
  return lookups;
}

uint64_t CountPresent(std::span<const Lookup> lookups) {
  return static_cast<uint64_t>(
      std::ranges::count_if(lookups, [](const Lookup& lookup) { return lookup.present; }));
}

std::optional<Error> CheckAnswer(const Lookup& lookup, bool found, std::string_view value,
                                 uint64_t value_bytes) {
  if (found != lookup.present) {
    return Error{fmt::format("{}a key that was {} was {}", kWrongAnswer,
                             lookup.present ? "put" : "never put",
                             found ? "found" : "not found")};
  }
  if (found && value != ValueOf(lookup.key, value_bytes)) {
    return Error{fmt::format("{}a get returned another value than was put", kWrongAnswer)};
  }
  return std::nullopt;
}

}  // namespace filterbench::lsm
