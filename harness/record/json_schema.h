#ifndef FILTERBENCH_HARNESS_RECORD_JSON_SCHEMA_H_
#define FILTERBENCH_HARNESS_RECORD_JSON_SCHEMA_H_

// A validator of the part of JSON Schema (draft 2020-12) that results/schema/*.json uses.
//
// Known keywords: type, const, enum, minimum, maximum, exclusiveMinimum, pattern, minLength,
// properties, required, additionalProperties, propertyNames, items, minItems, maxItems, uniqueItems,
// allOf, anyOf, if, then, else, not, $ref into $defs of the same schema; and for readers $schema,
// $id, $defs, $comment, title, description. Any other keyword makes the schema itself invalid: what is not
// checked must not look as if it were.

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "filters/result.h"

namespace filterbench {

class JsonSchema {
 public:
  // The error names the place in the schema.
  static Result<JsonSchema> Parse(nlohmann::json schema);

  // Nothing if valid, else the first violation, starting with the field: "fpr.low: must be ...".
  // NaN and infinities violate every schema.
  std::optional<Error> Validate(const nlohmann::json& document) const;

 private:
  explicit JsonSchema(nlohmann::json schema) : schema_(std::move(schema)) {}

  nlohmann::json schema_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_JSON_SCHEMA_H_
