#ifndef FILTERBENCH_WORKLOADS_LSM_GETS_H_
#define FILTERBENCH_WORKLOADS_LSM_GETS_H_

// The gets that stores and engines are asked, and what their answers must be: the same for all.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filters/result.h"

namespace filterbench::lsm {

struct Lookup {
  std::string key;
  bool present = false;  // it was put
};

struct GetStream {
  uint64_t keys = 0;                  // that were put: those with an index below
  std::span<const uint64_t> present;  // indices of those that are asked; empty for all
  uint64_t absent = 0;                // how many keys there are from index `keys` on
  uint64_t operations = 0;            // at most: no key is asked twice (LookupsWithoutRepeats)
  double negative_share = 0;
  uint64_t seed = 0;
  std::function<std::string(uint64_t index)> key_of;
};

// The error begins with kNotHere.
Result<std::vector<Lookup>> DrawGets(const GetStream& stream);

uint64_t CountPresent(std::span<const Lookup> lookups);

// What is wrong with an answer; nothing if it is right. Values are ValueOf(key, value_bytes).
std::optional<Error> CheckAnswer(const Lookup& lookup, bool found, std::string_view value,
                                 uint64_t value_bytes);

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_GETS_H_
