#include "harness/spec/point.h"

#include <algorithm>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "filters/hash.h"
#include "filters/nearest_name.h"

namespace filterbench {
namespace {

// Index of a name, or the error that names the field.
Result<size_t> IndexOf(std::string_view field, const nlohmann::json& json,
                       std::span<const std::string_view> names) {
  if (!json.is_string()) return Error{fmt::format("{}: must be a string", field)};
  const auto& name = json.get_ref<const std::string&>();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
  }
  const std::vector<std::string> valid(names.begin(), names.end());
  return Error{UnknownName(field, name, valid)};
}

}  // namespace

nlohmann::json KeySetToJson(const KeySetSpec& key_set) {
  nlohmann::json json = {{"kind", kKeyKindNames[static_cast<size_t>(key_set.kind)]}};
  if (key_set.kind == KeyKind::kBytes) json["length_bytes"] = key_set.length_bytes;
  if (key_set.kind == KeyKind::kFile) {
    json["path"] = key_set.path;
    json["digest"] = key_set.digest;
  }
  return json;
}

Result<KeySetSpec> KeySetFromJson(const nlohmann::json& json) {
  if (!json.is_object()) return Error{"key_set: must be an object"};
  KeySetSpec key_set;
  const Result<size_t> kind =
      IndexOf("key_set.kind", json.value("kind", nlohmann::json()), kKeyKindNames);
  if (!kind) return Error{kind.error()};
  key_set.kind = static_cast<KeyKind>(*kind);
  std::vector<std::string> valid = {"kind"};
  if (key_set.kind == KeyKind::kBytes) valid.push_back("length_bytes");
  if (key_set.kind == KeyKind::kFile) valid.insert(valid.end(), {"path", "digest"});
  for (const auto& [key, value] : json.items()) {
    if (std::find(valid.begin(), valid.end(), key) == valid.end()) {
      return Error{"key_set: " + UnknownName("field", key, valid)};
    }
  }
  if (key_set.kind == KeyKind::kBytes) {
    const auto length = json.find("length_bytes");
    if (length == json.end() || !length->is_number_unsigned() || *length < 8 || *length > 4096) {
      return Error{"key_set.length_bytes: must be a whole number in 8..4096"};
    }
    key_set.length_bytes = length->get<uint32_t>();
  }
  if (key_set.kind == KeyKind::kFile) {
    const auto path = json.find("path");
    if (path == json.end() || !path->is_string()) {
      return Error{"key_set.path: must be the path of a file with one key a line"};
    }
    key_set.path = path->get<std::string>();
    if (key_set.path.empty() || key_set.path.find('\0') != std::string::npos) {
      return Error{"key_set.path: must be the path of a file with one key a line"};
    }
    if (const auto digest = json.find("digest"); digest != json.end()) {
      if (!digest->is_string()) return Error{"key_set.digest: must be a string"};
      key_set.digest = digest->get<std::string>();
    }
  }
  return key_set;
}

nlohmann::json PointToJson(const Point& point) {
  nlohmann::json json = {
      {"filter", point.filter},
      {"params", point.params},
      {"keys", point.keys},
      {"key_set", KeySetToJson(point.key_set)},
      {"mode", kModeNames[static_cast<size_t>(point.mode)]},
      {"negative_share", point.negative_share ? nlohmann::json(*point.negative_share) : nullptr},
      {"hashing", kHashingNames[static_cast<size_t>(point.hashing)]},
      {"target", point.target}};
  // Left out where they are nothing, as in records older than the fields: the identity is the same.
  if (point.fill) json["fill"] = *point.fill;
  if (point.preset) json["preset"] = *point.preset;
  if (point.pages) json["pages"] = kPagesNames[static_cast<size_t>(*point.pages)];
  if (point.threads) json["threads"] = *point.threads;
  if (point.workload) json["workload"] = *point.workload;
  return json;
}

Result<Point> PointFromJson(const nlohmann::json& json) {
  if (!json.is_object()) return Error{"point: must be an object"};
  for (const char* field : {"filter", "params", "keys", "key_set", "mode", "negative_share",
                            "hashing", "target"}) {
    if (!json.contains(field)) return Error{fmt::format("point.{}: is missing", field)};
  }
  Point point;
  if (!json["filter"].is_string()) return Error{"point.filter: must be a string"};
  if (!json["target"].is_string()) return Error{"point.target: must be a string"};
  if (!json["params"].is_object()) return Error{"point.params: must be an object"};
  if (!json["keys"].is_number_unsigned()) return Error{"point.keys: must be a whole number"};
  point.filter = json["filter"].get<std::string>();
  if (const auto preset = json.find("preset"); preset != json.end() && !preset->is_null()) {
    if (!preset->is_string()) return Error{"point.preset: must be a string or null"};
    point.preset = preset->get<std::string>();
  }
  point.params = json["params"];
  point.keys = json["keys"].get<uint64_t>();
  point.target = json["target"].get<std::string>();
  Result<KeySetSpec> key_set = KeySetFromJson(json["key_set"]);
  if (!key_set) return Error{"point." + key_set.error()};
  point.key_set = std::move(*key_set);
  const Result<size_t> mode = IndexOf("point.mode", json["mode"], kModeNames);
  if (!mode) return Error{mode.error()};
  point.mode = static_cast<Mode>(*mode);
  const Result<size_t> hashing = IndexOf("point.hashing", json["hashing"], kHashingNames);
  if (!hashing) return Error{hashing.error()};
  point.hashing = static_cast<Hashing>(*hashing);
  if (json["negative_share"].is_number()) {
    point.negative_share = json["negative_share"].get<double>();
  } else if (!json["negative_share"].is_null()) {
    return Error{"point.negative_share: must be a number or null"};
  }
  if (const auto fill = json.find("fill"); fill != json.end()) {
    if (!fill->is_number()) return Error{"point.fill: must be a number"};
    point.fill = fill->get<double>();
  } else if (IsFilling(point.mode)) {
    return Error{fmt::format("point.fill: is missing in mode {}",
                             kModeNames[static_cast<size_t>(point.mode)])};
  }
  if (const auto pages = json.find("pages"); pages != json.end()) {
    const Result<size_t> index = IndexOf("point.pages", *pages, kPagesNames);
    if (!index) return Error{index.error()};
    point.pages = static_cast<Pages>(*index);
  }
  if (const auto threads = json.find("threads"); threads != json.end()) {
    if (!threads->is_number_unsigned() || *threads < 2) {
      return Error{"point.threads: must be a whole number, 2 or more"};
    }
    if (!MayHaveThreads(point.mode)) {
      return Error{fmt::format("point.threads: mode {} has one thread",
                               kModeNames[static_cast<size_t>(point.mode)])};
    }
    point.threads = threads->get<uint64_t>();
  }
  const auto workload = json.find("workload");
  if ((workload != json.end()) != (point.mode == Mode::kWorkload)) {
    return Error{"point.workload: must be there if and only if the mode is workload"};
  }
  if (workload != json.end()) {
    if (!workload->is_object() || !workload->value("name", nlohmann::json()).is_string()) {
      return Error{"point.workload: must be an object with a name"};
    }
    point.workload = *workload;
  }
  return point;
}

std::string PointId(const Point& point) {
  const std::string canonical = PointToJson(point).dump();  // nlohmann sorts keys
  return fmt::format("{:016x}", HashBytes(canonical, 0));
}

}  // namespace filterbench
