#include "harness/record/json_schema.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "filters/nearest_name.h"

namespace filterbench {
namespace {

using nlohmann::json;

// What kind of value a keyword needs in a schema.
enum class Argument {
  kAny,
  kText,
  kNumber,
  kCount,
  kTypes,    // name of a type, or an array of them
  kStrings,  // array of strings
  kValues,   // array of anything
  kSchema,
  kSchemas,      // array of schemas
  kSchemasByKey  // object of schemas
};

const std::map<std::string, Argument, std::less<>> kKeywords = {
    {"$schema", Argument::kText},
    {"$id", Argument::kText},
    {"$ref", Argument::kText},
    {"$comment", Argument::kText},
    {"title", Argument::kText},
    {"description", Argument::kText},
    {"$defs", Argument::kSchemasByKey},
    {"type", Argument::kTypes},
    {"const", Argument::kAny},
    {"enum", Argument::kValues},
    {"minimum", Argument::kNumber},
    {"exclusiveMinimum", Argument::kNumber},
    {"maximum", Argument::kNumber},
    {"minLength", Argument::kCount},
    {"pattern", Argument::kText},
    {"properties", Argument::kSchemasByKey},
    {"required", Argument::kStrings},
    {"additionalProperties", Argument::kSchema},
    {"items", Argument::kSchema},
    {"minItems", Argument::kCount},
    {"maxItems", Argument::kCount},
    {"allOf", Argument::kSchemas},
    {"if", Argument::kSchema},
    {"then", Argument::kSchema},
    {"else", Argument::kSchema},
};

bool IsStrings(const json& value) {
  return value.is_array() &&
         std::all_of(value.begin(), value.end(), [](const json& v) { return v.is_string(); });
}

bool IsType(const std::string& type, const json& value) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.is_boolean();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  // 1.0 is an integer (JSON Schema core, section 4.2.3).
  return value.is_number_integer() ||
         (value.is_number_float() && std::floor(value.get<double>()) == value.get<double>());
}

const std::string kTypeNames[] = {"null",   "boolean", "object", "array",
                                  "string", "number",  "integer"};

bool IsTypes(const json& value) {
  const auto is_type = [](const json& v) {
    return v.is_string() && std::count(std::begin(kTypeNames), std::end(kTypeNames), v) == 1;
  };
  return is_type(value) ||
         (value.is_array() && std::all_of(value.begin(), value.end(), is_type));
}

// Well-formed UTF-8 (Unicode 15, table 3-7).
bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[i + k]); };
    const unsigned char lead = byte(0);
    const size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k) {
      unsigned char low = 0x80;
      unsigned char high = 0xbf;
      if (k == 1 && lead == 0xe0) low = 0xa0;
      if (k == 1 && lead == 0xed) high = 0x9f;
      if (k == 1 && lead == 0xf0) low = 0x90;
      if (k == 1 && lead == 0xf4) high = 0x8f;
      if (byte(k) < low || byte(k) > high) return false;
    }
    i += length;
  }
  return true;
}

std::string Shorten(const json& value) {
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string Child(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}
std::string Child(const std::string& path, size_t index) {
  return fmt::format("{}[{}]", path, index);
}

Error At(const std::string& path, const std::string& problem) {
  return Error{(path.empty() ? "the document" : path) + ": " + problem};
}

// What no schema may allow, found everywhere, also where a schema has nothing to say.
std::optional<Error> FindUnwritable(const json& value, const std::string& path) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return At(path, "is NaN or infinite; an unknown value is null");
  }
  if (value.is_string() && !IsUtf8(value.get_ref<const std::string&>())) {
    return At(path, fmt::format("is not UTF-8: {}", Shorten(value)));
  }
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) {
      if (!IsUtf8(key)) return At(path, "has a key that is not UTF-8: " + Shorten(key));
      if (auto error = FindUnwritable(child, Child(path, key))) return error;
    }
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      if (auto error = FindUnwritable(value[i], Child(path, i))) return error;
    }
  }
  return std::nullopt;
}

}  // namespace

// One schema document at work.
class JsonSchemaSet::Checker {
 public:
  Checker(const JsonSchemaSet& set, const json& root) : set_(set), root_(root) {}

  std::optional<Error> Check(const json& schema, const json& value, const std::string& path) const {
    if (schema.is_boolean()) {
      if (schema.get<bool>()) return std::nullopt;
      return At(path, "is not allowed");
    }
    for (const auto check : {&Checker::CheckType, &Checker::CheckReference, &Checker::CheckNumber,
                             &Checker::CheckString, &Checker::CheckObject, &Checker::CheckArray,
                             &Checker::CheckCombinations}) {
      if (auto error = (this->*check)(schema, value, path)) return error;
    }
    return std::nullopt;
  }

 private:
  std::optional<Error> CheckType(const json& schema, const json& value,
                                 const std::string& path) const {
    if (const auto type = schema.find("type"); type != schema.end()) {
      const std::vector<std::string> types =
          type->is_string() ? std::vector{type->get<std::string>()}
                            : type->get<std::vector<std::string>>();
      if (std::none_of(types.begin(), types.end(),
                       [&](const std::string& t) { return IsType(t, value); })) {
        return At(path, fmt::format("must be of type {}, is {}", fmt::join(types, " or "),
                                    Shorten(value)));
      }
    }
    if (const auto only = schema.find("const"); only != schema.end() && value != *only) {
      return At(path, fmt::format("must be {}, is {}", only->dump(), Shorten(value)));
    }
    if (const auto allowed = schema.find("enum");
        allowed != schema.end() && std::find(allowed->begin(), allowed->end(), value) ==
                                       allowed->end()) {
      return At(path, fmt::format("must be one of {}, is {}", allowed->dump(), Shorten(value)));
    }
    return std::nullopt;
  }

  std::optional<Error> CheckReference(const json& schema, const json& value,
                                      const std::string& path) const {
    const auto ref = schema.find("$ref");
    if (ref == schema.end()) return std::nullopt;
    const auto& name = ref->get_ref<const std::string&>();
    const json& target = *set_.Resolve(root_, name);
    return Checker(set_, name.starts_with('#') ? root_ : target).Check(target, value, path);
  }

  std::optional<Error> CheckNumber(const json& schema, const json& value,
                                   const std::string& path) const {
    if (!value.is_number()) return std::nullopt;
    if (const auto low = schema.find("minimum"); low != schema.end() && value < *low) {
      return At(path, fmt::format("must be at least {}, is {}", low->dump(), value.dump()));
    }
    if (const auto low = schema.find("exclusiveMinimum"); low != schema.end() && value <= *low) {
      return At(path, fmt::format("must be above {}, is {}", low->dump(), value.dump()));
    }
    if (const auto high = schema.find("maximum"); high != schema.end() && value > *high) {
      return At(path, fmt::format("must be at most {}, is {}", high->dump(), value.dump()));
    }
    return std::nullopt;
  }

  std::optional<Error> CheckString(const json& schema, const json& value,
                                   const std::string& path) const {
    if (!value.is_string()) return std::nullopt;
    const auto& text = value.get_ref<const std::string&>();
    if (const auto length = schema.find("minLength"); length != schema.end()) {
      const auto is_start = [](unsigned char c) { return (c & 0xc0) != 0x80; };
      if (static_cast<uint64_t>(std::count_if(text.begin(), text.end(), is_start)) <
          length->get<uint64_t>()) {
        return At(path, text.empty() ? std::string("must not be empty")
                                     : fmt::format("must have at least {} characters, is {}",
                                                   length->get<uint64_t>(), Shorten(value)));
      }
    }
    if (const auto pattern = schema.find("pattern"); pattern != schema.end()) {
      const auto& source = pattern->get_ref<const std::string&>();
      if (!std::regex_search(text, set_.patterns_.find(source)->second)) {
        return At(path, fmt::format("must match {}, is {}", source, Shorten(value)));
      }
    }
    return std::nullopt;
  }

  std::optional<Error> CheckObject(const json& schema, const json& value,
                                   const std::string& path) const {
    if (!value.is_object()) return std::nullopt;
    const json none = json::object();
    const auto found = schema.find("properties");
    const json& properties = found == schema.end() ? none : *found;
    if (const auto required = schema.find("required"); required != schema.end()) {
      for (const json& name : *required) {
        const auto& key = name.get_ref<const std::string&>();
        if (!value.contains(key)) return At(Child(path, key), "is missing");
      }
    }
    const auto additional = schema.find("additionalProperties");
    for (const auto& [key, child] : value.items()) {
      if (const auto property = properties.find(key); property != properties.end()) {
        if (auto error = Check(*property, child, Child(path, key))) return error;
      } else if (additional != schema.end() && *additional == false) {
        std::vector<std::string> valid;
        for (const auto& [name, unused] : properties.items()) valid.push_back(name);
        return At(path, UnknownName("field", key, valid));
      } else if (additional != schema.end()) {
        if (auto error = Check(*additional, child, Child(path, key))) return error;
      }
    }
    return std::nullopt;
  }

  std::optional<Error> CheckArray(const json& schema, const json& value,
                                  const std::string& path) const {
    if (!value.is_array()) return std::nullopt;
    if (const auto least = schema.find("minItems");
        least != schema.end() && value.size() < least->get<uint64_t>()) {
      return At(path, fmt::format("must have at least {} values, has {}", least->get<uint64_t>(),
                                  value.size()));
    }
    if (const auto most = schema.find("maxItems");
        most != schema.end() && value.size() > most->get<uint64_t>()) {
      return At(path, fmt::format("must have at most {} values, has {}", most->get<uint64_t>(),
                                  value.size()));
    }
    if (const auto items = schema.find("items"); items != schema.end()) {
      for (size_t i = 0; i < value.size(); ++i) {
        if (auto error = Check(*items, value[i], Child(path, i))) return error;
      }
    }
    return std::nullopt;
  }

  std::optional<Error> CheckCombinations(const json& schema, const json& value,
                                         const std::string& path) const {
    if (const auto all = schema.find("allOf"); all != schema.end()) {
      for (const json& part : *all) {
        if (auto error = Check(part, value, path)) return error;
      }
    }
    if (const auto condition = schema.find("if"); condition != schema.end()) {
      const auto branch = schema.find(Check(*condition, value, path) ? "else" : "then");
      if (branch != schema.end()) return Check(*branch, value, path);
    }
    return std::nullopt;
  }

  const JsonSchemaSet& set_;
  const json& root_;
};

Result<JsonSchemaSet> JsonSchemaSet::Parse(std::map<std::string, json> schemas) {
  JsonSchemaSet set;
  for (auto& [name, schema] : schemas) set.schemas_.emplace(name, std::move(schema));
  for (const auto& [name, schema] : set.schemas_) {
    const std::string place = name + "#";
    if (!schema.is_object() || !schema.contains("$id")) return Error{place + ": has no $id"};
    if (auto error = set.ParseSchema(schema, schema, place)) return *error;
  }
  return set;
}

const json* JsonSchemaSet::Resolve(const json& root, const std::string& ref) const {
  constexpr std::string_view kLocal = "#/$defs/";
  if (ref.starts_with(kLocal)) {
    const auto definitions = root.find("$defs");
    if (definitions == root.end()) return nullptr;
    const auto definition = definitions->find(ref.substr(kLocal.size()));
    return definition == definitions->end() ? nullptr : &*definition;
  }
  for (const auto& [name, schema] : schemas_) {
    if (schema.value("$id", json()) == ref) return &schema;
  }
  return nullptr;
}

std::optional<Error> JsonSchemaSet::ParseSchema(const json& root, const json& schema,
                                                const std::string& place) {
  if (schema.is_boolean()) return std::nullopt;
  if (!schema.is_object()) return Error{place + ": must be an object or a truth value"};
  for (const auto& [keyword, value] : schema.items()) {
    const std::string here = place + "/" + keyword;
    const auto known = kKeywords.find(keyword);
    if (known == kKeywords.end()) return Error{here + ": is a keyword that is not supported"};
    bool fits = true;
    switch (known->second) {
      case Argument::kAny: break;
      case Argument::kText: fits = value.is_string(); break;
      case Argument::kNumber: fits = value.is_number(); break;
      case Argument::kCount: fits = value.is_number_unsigned(); break;
      case Argument::kTypes: fits = IsTypes(value); break;
      case Argument::kStrings: fits = IsStrings(value); break;
      case Argument::kValues: fits = value.is_array(); break;
      case Argument::kSchema:
        if (auto error = ParseSchema(root, value, here)) return error;
        break;
      case Argument::kSchemas:
        fits = value.is_array() && !value.empty();
        for (size_t i = 0; fits && i < value.size(); ++i) {
          if (auto error = ParseSchema(root, value[i], fmt::format("{}/{}", here, i))) return error;
        }
        break;
      case Argument::kSchemasByKey:
        fits = value.is_object();
        if (!fits) break;
        for (const auto& [key, part] : value.items()) {
          if (auto error = ParseSchema(root, part, here + "/" + key)) return error;
        }
        break;
    }
    if (!fits) return Error{fmt::format("{}: cannot be {}", here, Shorten(value))};
    if (keyword == "$ref" && Resolve(root, value.get<std::string>()) == nullptr) {
      return Error{fmt::format("{}: there is no schema {}", here, value.dump())};
    }
    if (keyword == "pattern") {
      const auto& source = value.get_ref<const std::string&>();
      try {
        patterns_.emplace(source, std::regex(source));
      } catch (const std::regex_error& error) {
        return Error{fmt::format("{}: {}", here, error.what())};
      }
    }
  }
  return std::nullopt;
}

std::optional<Error> JsonSchemaSet::Validate(std::string_view name, const json& document) const {
  const auto schema = schemas_.find(name);
  if (schema == schemas_.end()) return Error{fmt::format("there is no schema '{}'", name)};
  if (auto error = FindUnwritable(document, "")) return error;
  return Checker(*this, schema->second).Check(schema->second, document, "");
}

}  // namespace filterbench
