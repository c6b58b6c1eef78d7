#include "harness/record/document.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "harness/record/json_schema.h"
#include "harness/record/schemas.h"

namespace filterbench {
namespace {

using nlohmann::json;

Result<JsonSchemaSet> ParseEmbeddedSchemas() {
  std::map<std::string, json> schemas;
  for (const EmbeddedSchema& embedded : kEmbeddedSchemas) {
    Result<json> schema = ParseStrictJson(embedded.text);
    if (!schema) return Error{fmt::format("schema {}: {}", embedded.name, schema.error())};
    schemas.emplace(embedded.name, std::move(*schema));
  }
  return JsonSchemaSet::Parse(std::move(schemas));
}

std::optional<Error> FindNullWithoutReason(const json& value, const std::string& path) {
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      if (auto error = FindNullWithoutReason(value[i], fmt::format("{}[{}]", path, i))) {
        return error;
      }
    }
  }
  if (!value.is_object()) return std::nullopt;
  const auto has_text = [&](const std::string& field) {
    const auto found = value.find(field);
    return found != value.end() && found->is_string() && *found != "";
  };
  for (const auto& [field, member] : value.items()) {
    const std::string member_path = path + "." + field;
    if (member.is_null() && !has_text(field + "_reason") && !has_text("reason")) {
      return Error{fmt::format("{}: is null without a {}_reason", member_path, field)};
    }
    if (auto error = FindNullWithoutReason(member, member_path)) return error;
  }
  return std::nullopt;
}

}  // namespace

Result<json> ParseStrictJson(std::string_view text) {
  constexpr int kMaxDepth = 64;
  std::string problem;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const json::parser_callback_t callback = [&](int depth, json::parse_event_t event, json& parsed) {
    using Event = json::parse_event_t;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second &&
        problem.empty()) {
      problem = fmt::format("the key {} occurs twice in an object", parsed.dump());
    }
    if (depth > kMaxDepth && problem.empty()) {
      problem = fmt::format("is nested more than {} levels deep", kMaxDepth);
    }
    return true;
  };
  // The parser takes a NUL for the end and would not see what follows.
  if (text.find('\0') != text.npos) return Error{"is not JSON: holds a NUL"};
  try {
    json document = json::parse(text, callback);
    if (!problem.empty()) return Error{problem};
    return document;
  } catch (const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: ..."
    const std::string_view what = error.what();
    const size_t bracket = what.find("] ");
    return Error{"is not JSON: " +
                 std::string(bracket == what.npos ? what : what.substr(bracket + 2))};
  }
}

std::optional<Error> ValidateDocument(std::string_view schema, const json& document) {
  static const Result<JsonSchemaSet> schemas = ParseEmbeddedSchemas();
  if (!schemas) return Error{schemas.error()};
  if (auto error = schemas->Validate(schema, document)) return error;
  for (const char* field : {"health", "environment", "provenance"}) {
    const auto facts = document.find(field);
    if (facts == document.end()) continue;
    if (auto error = FindNullWithoutReason(*facts, field)) return error;
  }
  return std::nullopt;
}

}  // namespace filterbench
