#ifndef FILTERBENCH_HARNESS_EXPLAIN_SCENE_H_
#define FILTERBENCH_HARNESS_EXPLAIN_SCENE_H_

// What happens in a small Bloom filter, bit by bit: keys are added, some are removed by clearing
// their bits (which a Bloom filter cannot do, and this shows why), then keys are asked for. Facts
// only; harness/explain/draw.h shows them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/fpr.h"
#include "filters/result.h"
#include "harness/explain/probes.h"
#include "harness/statistics.h"

namespace filterbench::explain {

// What to show. Every key is any string of bytes.
struct Request {
  std::string title;
  std::string lead;  // a paragraph on what there is to see
  Shape shape;
  PositionsByHand by_hand;  // only for Hashing::kByHand
  std::vector<std::string> add;
  std::vector<std::string> remove;
  std::vector<std::string> ask;
  bool saturate = false;  // fill a filter of this shape beyond what it is good for
};

struct AddedKey {
  std::string key;
  std::vector<uint64_t> positions;  // in the order of the probes
  std::vector<uint64_t> newly_set;  // those that nobody had set
  bool again = false;               // the same key was added before
};

// A key that answers no though it was added and not removed.
struct BrokenKey {
  std::string key;
  std::vector<uint64_t> missing;  // the bits that it lacks
};

struct RemovedKey {
  std::string key;
  std::vector<uint64_t> positions;
  std::vector<uint64_t> cleared;  // those that were set until then
  bool was_added = false;
  std::vector<BrokenKey> broken;  // by this removal
};

enum class Verdict { kTrueNegative, kTruePositive, kFalsePositive, kFalseNegative };
inline constexpr std::array<std::string_view, 4> kVerdictNames = {
    "true negative", "true positive", "false positive", "false negative"};

struct AskedPosition {
  uint64_t position = 0;
  bool set = false;
  std::vector<std::string> keys;  // that were added and have it, in the order of adding
};

struct AskedKey {
  std::string key;
  std::vector<AskedPosition> probes;
  std::vector<uint64_t> unset;  // the reasons for a no
  Verdict verdict = Verdict::kTrueNegative;

  bool maybe() const { return unset.empty(); }
};

struct MeasuredFpr {
  uint64_t absent_keys = 0;
  uint64_t false_positives = 0;
  double rate = 0;
  Interval interval;  // BinomialInterval
};

struct SaturationRow {
  uint64_t keys = 0;
  uint64_t set_bits = 0;
  Result<FprEstimate> expected = Error{};
  MeasuredFpr measured;
};

struct Scene {
  Request request;
  std::vector<AddedKey> added;
  std::vector<RemovedKey> removed;
  std::vector<AskedKey> asked;
  uint64_t distinct_keys = 0;  // added and not removed
  std::vector<bool> bits_before_removal;
  std::vector<bool> bits;
  uint64_t set_bits = 0;  // distinct ones
  // Of each bit, which keys set it, cleared or not: indices of `added`, no key twice.
  std::vector<std::vector<uint64_t>> setters;
  Result<FprEstimate> expected_fpr = Error{};
  Result<MeasuredFpr> measured_fpr = Error{};
  std::vector<SaturationRow> saturation;

  double fill() const {
    return static_cast<double>(set_bits) / static_cast<double>(bits.size());
  }
};

// Deterministic. An error where the request makes no sense.
Result<Scene> Explain(const Request& request);

nlohmann::json SceneToJson(const Scene& scene);

}  // namespace filterbench::explain

#endif  // FILTERBENCH_HARNESS_EXPLAIN_SCENE_H_
