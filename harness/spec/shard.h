#ifndef FILTERBENCH_HARNESS_SPEC_SHARD_H_
#define FILTERBENCH_HARNESS_SPEC_SHARD_H_

// One part of a sweep that several runs share among them.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "filters/result.h"

namespace filterbench {

struct Shard {
  uint64_t index = 0;  // below count
  uint64_t count = 1;
  bool operator==(const Shard&) const = default;
};

// "2/3", as people count: the second of three, whose index is 1.
Result<Shard> ParseShard(std::string_view text);
std::string ShardText(const Shard& shard);

// {"index": 1, "count": 3}, as in manifest.json.
nlohmann::json ShardToJson(const Shard& shard);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_SPEC_SHARD_H_
