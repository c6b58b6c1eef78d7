#include "harness/record/json_schema.h"

#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filterbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

std::string ParseProblem(json schema) {
  schema["$id"] = "urn:x";
  const auto set = JsonSchemaSet::Parse({{"x", schema}});
  return set ? "" : set.error();
}

// Empty if valid.
std::string Violation(json schema, const json& document) {
  schema["$id"] = "urn:x";
  const auto set = JsonSchemaSet::Parse({{"x", schema}});
  if (!set) return "broken schema: " + set.error();
  const auto error = set->Validate("x", document);
  return error ? error->message : "";
}

TEST(JsonSchema, RefusesKeywordsThatItDoesNotCheck) {
  EXPECT_EQ(ParseProblem({{"type", "object"}}), "");
  EXPECT_EQ(ParseProblem({{"multipleOf", 2}}), "x#/multipleOf: is a keyword that is not supported");
  EXPECT_THAT(ParseProblem(json::parse(R"({"properties": {"a": {"items": {"format": "x"}}}})")),
              StartsWith("x#/properties/a/items/format:"));
  EXPECT_THAT(ParseProblem(json::parse(R"({"allOf": [true, {"format": "date"}]})")),
              StartsWith("x#/allOf/1/format:"));
  EXPECT_THAT(ParseProblem(json::parse(R"({"$defs": {"a": {"not": true}}})")),
              StartsWith("x#/$defs/a/not:"));
}

TEST(JsonSchema, RefusesArgumentsThatMeanNothing) {
  for (const char* schema :
       {R"({"type": "float"})", R"({"type": ["null", 3]})", R"({"minimum": "0"})",
        R"({"required": "a"})", R"({"required": [1]})", R"({"minItems": -1})",
        R"({"enum": 3})", R"({"allOf": []})", R"({"properties": []})", R"({"items": 3})",
        R"({"pattern": "("})", R"({"$ref": "#/$defs/absent"})", R"({"$ref": "urn:absent"})"}) {
    EXPECT_NE(ParseProblem(json::parse(schema)), "") << schema;
  }
  EXPECT_FALSE(JsonSchemaSet::Parse({{"x", json::object()}}));  // no $id
}

TEST(JsonSchema, EachKeywordAcceptsAndRefuses) {
  struct Row {
    const char* schema;
    const char* valid;
    const char* invalid;
  };
  for (const Row& row : {
           Row{R"({"type": "integer"})", "1.0", "1.5"},
           Row{R"({"type": "integer"})", "18446744073709551615", "true"},
           Row{R"({"type": "number"})", "-1e300", "\"1\""},
           Row{R"({"type": ["null", "string"]})", "null", "0"},
           Row{R"({"type": "boolean"})", "false", "0"},
           Row{R"({"const": "a"})", "\"a\"", "\"b\""},
           Row{R"({"enum": ["a", null]})", "null", "\"c\""},
           Row{R"({"minimum": 0})", "0", "-1"},
           Row{R"({"minimum": 0})", "18446744073709551615", "-0.001"},
           Row{R"({"exclusiveMinimum": 0})", "1e-300", "0.0"},
           Row{R"({"maximum": 1})", "1.0", "2"},
           Row{R"({"minimum": 3})", "\"no number\"", "2"},
           Row{R"({"minLength": 2})", "\"\u00e4\u00f6\"", "\"\u00e4\""},
           Row{R"({"pattern": "^[0-9a-f]{4}$"})", "\"01af\"", "\"01afx\""},
           Row{R"({"pattern": "b"})", "\"abc\"", "\"ac\""},
           Row{R"({"properties": {"a": {"type": "null"}}})", R"({"b": 1})", R"({"a": 1})"},
           Row{R"({"required": ["a"]})", R"({"a": null})", R"({"b": 1})"},
           Row{R"({"additionalProperties": false, "properties": {"a": true}})", R"({"a": 1})",
               R"({"b": 1})"},
           Row{R"({"additionalProperties": {"type": "null"}})", R"({"a": null})", R"({"a": 1})"},
           Row{R"({"items": {"type": "null"}})", "[null]", "[null, 1]"},
           Row{R"({"minItems": 1})", "[0]", "[]"},
           Row{R"({"maxItems": 1})", "[0]", "[0, 0]"},
           Row{R"({"allOf": [{"minimum": 1}, {"maximum": 2}]})", "1.5", "3"},
           Row{R"({"if": {"minimum": 5}, "then": {"maximum": 6}, "else": {"maximum": 1}})", "6",
               "7"},
           Row{R"({"if": {"minimum": 5}, "then": {"maximum": 6}, "else": {"maximum": 1}})", "1",
               "2"},
           Row{R"({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}})", "null", "1"},
           Row{R"({"$ref": "#/$defs/a", "maximum": 2, "$defs": {"a": {"minimum": 1}}})", "2", "3"},
           Row{R"({"properties": {"a": false}})", "{}", R"({"a": 1})"},
       }) {
    EXPECT_EQ(Violation(json::parse(row.schema), json::parse(row.valid)), "") << row.schema;
    EXPECT_NE(Violation(json::parse(row.schema), json::parse(row.invalid)), "") << row.schema;
  }
}

TEST(JsonSchema, FollowsReferencesToOtherSchemas) {
  const auto set = JsonSchemaSet::Parse(
      {{"a", json::parse(R"({"$id": "urn:a", "properties": {"b": {"$ref": "urn:b"}}})")},
       {"b", json::parse(R"({"$id": "urn:b", "$ref": "#/$defs/c",
                             "$defs": {"c": {"type": "null"}}})")}});
  ASSERT_TRUE(set) << set.error();
  EXPECT_FALSE(set->Validate("a", json::parse(R"({"b": null})")));
  const auto error = set->Validate("a", json::parse(R"({"b": 1})"));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "b: must be of type null, is 1");
  EXPECT_TRUE(set->Validate("c", json()));
}

TEST(JsonSchema, NamesTheField) {
  const json schema = json::parse(
      R"({"properties": {"a": {"items": {"required": ["bits_per_key"],
          "properties": {"bits_per_key": {"type": "number"}}, "additionalProperties": false}}}})");
  EXPECT_EQ(Violation(schema, json::parse(R"({"a": [{"bits_per_key": 1}, {}]})")),
            "a[1].bits_per_key: is missing");
  EXPECT_THAT(Violation(schema, json::parse(R"({"a": [{"bits_per_key": 1, "bits_pr_key": 2}]})")),
              HasSubstr("did you mean 'bits_per_key'"));
}

TEST(JsonSchema, NothingAllowsWhatJsonCannotHold) {
  const double inf = std::numeric_limits<double>::infinity();
  for (double bad : {inf, -inf, inf - inf}) {
    EXPECT_THAT(Violation(json::object(), {{"a", {{"b", {1, bad}}}}}),
                StartsWith("a.b[1]: is NaN"));
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xed\xa0\x80", "\xe2\x82", "\xf5\x80\x80\x80"}) {
    EXPECT_THAT(Violation(json::object(), {{"a", bad}}), StartsWith("a: is not UTF-8")) << bad;
  }
  EXPECT_EQ(Violation(json::object(), {{"a", "\u00e4 \u20ac \U0001f600"}}), "");
}

}  // namespace
}  // namespace filterbench
