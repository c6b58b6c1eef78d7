#ifndef FILTERBENCH_HARNESS_RECORD_JSON_SCHEMA_H_
#define FILTERBENCH_HARNESS_RECORD_JSON_SCHEMA_H_

// A validator of the part of JSON Schema (draft 2020-12) that results/schema/*.json uses.
//
// Known keywords: type, const, enum, minimum, exclusiveMinimum, maximum, minLength, pattern,
// properties, required, additionalProperties, items, minItems, maxItems, allOf, if, then, else,
// $ref (to "#/$defs/<name>" or to the $id of another schema of the set); and without effect
// $schema, $id, $defs, $comment, title, description. Any other keyword makes the schema itself
// invalid: what is not checked must not look as if it were.

#include <map>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "filters/result.h"

namespace filterbench {

// Schemas that may refer to each other.
class JsonSchemaSet {
 public:
  // By name; each needs an $id. The error names the schema and the place in it.
  static Result<JsonSchemaSet> Parse(std::map<std::string, nlohmann::json> schemas);

  // Nothing if the document obeys the schema of that name, else the first violation, starting with
  // the field: "fpr.low: must be ...". NaN, infinities and strings that are not UTF-8 violate every
  // schema.
  std::optional<Error> Validate(std::string_view name, const nlohmann::json& document) const;

 private:
  class Checker;

  JsonSchemaSet() = default;
  // The schema that a $ref in `root` means; null if there is none.
  const nlohmann::json* Resolve(const nlohmann::json& root, const std::string& ref) const;
  std::optional<Error> ParseSchema(const nlohmann::json& root, const nlohmann::json& schema,
                                   const std::string& place);

  std::map<std::string, nlohmann::json, std::less<>> schemas_;
  std::map<std::string, std::regex, std::less<>> patterns_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_JSON_SCHEMA_H_
