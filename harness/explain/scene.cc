#include "harness/explain/scene.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "harness/explain/show_key.h"
#include "harness/utf8.h"

namespace filterbench::explain {
namespace {

using nlohmann::json;

// As many as give a rate of 1 % an interval of 0.06 % to either side.
constexpr uint64_t kAbsentKeys = 100'000;

// A filter and nothing else.
class Bits {
 public:
  explicit Bits(uint64_t bits) : bits_(bits) {}

  // Returns the positions that were not set before, each once.
  std::vector<uint64_t> Set(std::span<const uint64_t> positions) {
    return Change(positions, true);
  }
  std::vector<uint64_t> Clear(std::span<const uint64_t> positions) {
    return Change(positions, false);
  }
  std::vector<uint64_t> Unset(std::span<const uint64_t> positions) const {
    std::vector<uint64_t> unset;
    for (const uint64_t position : positions) {
      const bool is_known = std::find(unset.begin(), unset.end(), position) != unset.end();
      if (!bits_[position] && !is_known) unset.push_back(position);
    }
    return unset;
  }
  bool MayContain(std::span<const uint64_t> positions) const {
    return std::all_of(positions.begin(), positions.end(),
                       [this](uint64_t position) { return bits_[position]; });
  }
  uint64_t count() const { return count_; }
  const std::vector<bool>& bits() const { return bits_; }

 private:
  std::vector<uint64_t> Change(std::span<const uint64_t> positions, bool value) {
    std::vector<uint64_t> changed;
    for (const uint64_t position : positions) {
      if (bits_[position] == value) continue;
      bits_[position] = value;
      changed.push_back(position);
    }
    count_ += value ? changed.size() : -changed.size();
    return changed;
  }

  std::vector<bool> bits_;
  uint64_t count_ = 0;
};

// Asks kAbsentKeys keys that are not `present`.
MeasuredFpr Measure(const Bits& bits, const Probes& probes,
                    const std::set<std::string, std::less<>>& present) {
  MeasuredFpr measured;
  std::vector<uint64_t> positions;
  for (uint64_t i = 0; measured.absent_keys < kAbsentKeys; ++i) {
    const std::string key = fmt::format("absent {}", i);
    if (present.contains(key)) continue;
    ++measured.absent_keys;
    probes.Of(key, positions);
    measured.false_positives += bits.MayContain(positions) ? 1 : 0;
  }
  measured.rate = static_cast<double>(measured.false_positives) / measured.absent_keys;
  measured.interval = BinomialInterval(measured.false_positives, measured.absent_keys);
  return measured;
}

// Keys "key 0", "key 1", ... up to eight times as many as set half of the bits.
std::vector<SaturationRow> Saturate(const Probes& probes) {
  Bits bits(probes.shape().bits);
  const auto add = [&](uint64_t i) { bits.Set(probes.Of(fmt::format("key {}", i))); };
  uint64_t half_full = 0;
  while (2 * bits.count() < probes.shape().bits) add(half_full++);

  std::set<uint64_t> stops = {0};
  for (const uint64_t quarters : {1, 2, 4, 8, 16, 32}) stops.insert(half_full * quarters / 4);
  bits = Bits(probes.shape().bits);
  std::vector<SaturationRow> rows;
  uint64_t keys = 0;
  for (const uint64_t stop : stops) {
    while (keys < stop) add(keys++);
    rows.push_back({keys, bits.count(), probes.ExpectedFpr(keys), Measure(bits, probes, {})});
  }
  return rows;
}

// Every key that was added and not removed, and now answers no.
std::vector<BrokenKey> FindBroken(const Bits& bits, const std::vector<AddedKey>& added,
                                  const std::set<std::string, std::less<>>& present) {
  std::vector<BrokenKey> broken;
  for (const AddedKey& key : added) {
    if (key.again || !present.contains(key.key)) continue;
    if (auto missing = bits.Unset(key.positions); !missing.empty()) {
      broken.push_back({key.key, std::move(missing)});
    }
  }
  return broken;
}

std::optional<Error> FindUnknown(const Request& request, const Probes& probes) {
  if (probes.hashes()) return std::nullopt;
  std::set<std::string_view> used;
  for (const auto* keys : {&request.add, &request.remove, &request.ask}) {
    for (const std::string& key : *keys) {
      used.insert(key);
      if (!probes.Knows(key)) {
        return Error{fmt::format("{} has no positions: where some are given by hand, all are",
                                 ShowKey(key))};
      }
    }
  }
  for (const auto& [key, positions] : request.by_hand) {
    if (!used.contains(key)) {
      return Error{fmt::format("{} has positions but is not added, removed or asked",
                               ShowKey(key))};
    }
  }
  if (request.saturate) return Error{"saturation needs a hash function, not positions by hand"};
  return std::nullopt;
}

std::vector<std::string> ToJsonTexts(const std::vector<std::string>& keys) {
  std::vector<std::string> texts;
  for (const std::string& key : keys) texts.push_back(ToValidUtf8(key));
  return texts;
}

json ToJson(const Result<FprEstimate>& expected) {
  if (!expected) return {{"rate", nullptr}, {"reason", expected.error()}};
  return {{"rate", expected->mean}, {"instance_sd", expected->instance_sd}};
}

json ToJson(const MeasuredFpr& measured) {
  return {{"rate", measured.rate},
          {"absent_keys", measured.absent_keys},
          {"false_positives", measured.false_positives},
          {"low", measured.interval.low},
          {"high", measured.interval.high},
          {"confidence", measured.interval.confidence}};
}

}  // namespace

Result<Scene> Explain(const Request& request) {
  const Result<Probes> made = Probes::Create(request.shape, request.by_hand);
  if (!made) return Error{made.error()};
  const Probes& probes = *made;
  if (auto error = FindUnknown(request, probes)) return *error;

  Scene scene{.request = request};
  Bits bits(request.shape.bits);
  scene.setters.resize(request.shape.bits);
  std::set<std::string, std::less<>> present;
  for (const std::string& key : request.add) {
    AddedKey added{.key = key, .positions = probes.Of(key), .again = !present.insert(key).second};
    added.newly_set = bits.Set(added.positions);
    for (const uint64_t position : added.positions) {
      std::vector<uint64_t>& setters = scene.setters[position];
      const uint64_t index = scene.added.size();
      if (!added.again && (setters.empty() || setters.back() != index)) setters.push_back(index);
    }
    scene.added.push_back(std::move(added));
  }

  scene.bits_before_removal = bits.bits();
  std::set<std::string> broken_before;
  for (const std::string& key : request.remove) {
    RemovedKey removed{.key = key, .positions = probes.Of(key)};
    removed.was_added = present.erase(key) != 0;
    removed.cleared = bits.Clear(removed.positions);
    for (BrokenKey& broken : FindBroken(bits, scene.added, present)) {
      if (broken_before.insert(broken.key).second) removed.broken.push_back(std::move(broken));
    }
    scene.removed.push_back(std::move(removed));
  }

  for (const std::string& key : request.ask) {
    const std::vector<uint64_t> positions = probes.Of(key);
    AskedKey asked{.key = key, .unset = bits.Unset(positions)};
    for (const uint64_t position : positions) {
      AskedPosition probe{position, bits.bits()[position], {}};
      for (const uint64_t i : scene.setters[position]) probe.keys.push_back(scene.added[i].key);
      asked.probes.push_back(std::move(probe));
    }
    const bool is_present = present.contains(key);
    asked.verdict = asked.maybe() ? is_present ? Verdict::kTruePositive : Verdict::kFalsePositive
                    : is_present  ? Verdict::kFalseNegative
                                  : Verdict::kTrueNegative;
    scene.asked.push_back(std::move(asked));
  }

  scene.distinct_keys = present.size();
  scene.bits = bits.bits();
  scene.set_bits = bits.count();
  scene.expected_fpr =
      scene.removed.empty()
          ? probes.ExpectedFpr(scene.distinct_keys)
          : Error{"bits were cleared: theory is about filters that are only added to"};
  if (probes.hashes()) {
    scene.measured_fpr = Measure(bits, probes, present);
  } else {
    scene.measured_fpr = Error{"positions by hand: no hash function to ask other keys with"};
  }
  if (request.saturate) scene.saturation = Saturate(probes);
  return scene;
}

json SceneToJson(const Scene& scene) {
  const Request& request = scene.request;
  const bool is_md5 = request.shape.hashing == Hashing::kMd5;
  const auto key_to_json = [&](const std::string& key) {
    json entry = {{"key", ToValidUtf8(key)}};
    if (is_md5) entry["md5"] = Md5Hex(key);
    return entry;
  };
  json added = json::array();
  for (const AddedKey& key : scene.added) {
    json entry = key_to_json(key.key);
    entry.update({{"positions", key.positions},
                  {"newly_set", key.newly_set},
                  {"again", key.again}});
    added.push_back(std::move(entry));
  }
  json removed = json::array();
  for (const RemovedKey& key : scene.removed) {
    json broken = json::array();
    for (const BrokenKey& other : key.broken) {
      broken.push_back({{"key", ToValidUtf8(other.key)}, {"missing", other.missing}});
    }
    json entry = key_to_json(key.key);
    entry.update({{"positions", key.positions},
                  {"cleared", key.cleared},
                  {"was_added", key.was_added},
                  {"broken", broken}});
    removed.push_back(std::move(entry));
  }
  json asked = json::array();
  for (const AskedKey& key : scene.asked) {
    json probes = json::array();
    for (const AskedPosition& probe : key.probes) {
      probes.push_back({{"position", probe.position},
                        {"set", probe.set},
                        {"keys", ToJsonTexts(probe.keys)}});
    }
    json entry = key_to_json(key.key);
    entry.update({{"probes", probes},
                  {"answer", key.maybe() ? "maybe" : "no"},
                  {"unset", key.unset},
                  {"verdict", kVerdictNames[static_cast<size_t>(key.verdict)]}});
    asked.push_back(std::move(entry));
  }
  json set_positions = json::array();
  for (uint64_t i = 0; i < scene.bits.size(); ++i) {
    if (scene.bits[i]) set_positions.push_back(i);
  }
  json saturation = json::array();
  for (const SaturationRow& row : scene.saturation) {
    saturation.push_back({{"keys", row.keys},
                          {"set_bits", row.set_bits},
                          {"fill", static_cast<double>(row.set_bits) / scene.bits.size()},
                          {"expected_fpr", ToJson(row.expected)},
                          {"measured_fpr", ToJson(row.measured)}});
  }
  return {{"title", request.title},
          {"m", request.shape.bits},
          {"k", request.shape.k},
          {"hash", kHashingNames[static_cast<size_t>(request.shape.hashing)]},
          {"added", added},
          {"removed", removed},
          {"asked", asked},
          {"distinct_keys", scene.distinct_keys},
          {"set_positions", set_positions},
          {"set_bits", scene.set_bits},
          {"fill", scene.fill()},
          {"expected_fpr", ToJson(scene.expected_fpr)},
          {"measured_fpr", scene.measured_fpr
                               ? ToJson(*scene.measured_fpr)
                               : json{{"rate", nullptr}, {"reason", scene.measured_fpr.error()}}},
          {"saturation", saturation}};
}

}  // namespace filterbench::explain
