#ifndef FILTERBENCH_HARNESS_RECORD_DOCUMENT_H_
#define FILTERBENCH_HARNESS_RECORD_DOCUMENT_H_

// One JSON document of a record: text that may be trusted no further than it was checked.

#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "filters/result.h"

namespace filterbench {

// JSON as RFC 8259 has it, and no more: also refused are NaN, infinities (1e999 too), a key that
// occurs twice in an object, text that is not UTF-8, and more than 64 levels. Errors of syntax give
// line and column. The same in every locale.
Result<nlohmann::json> ParseStrictJson(std::string_view text);

// Nothing if `document` obeys results/schema/<schema>.json (manifest, point, sample, summary,
// theory), which is compiled in, and says of each fact about the machine that it does not know why
// (a null in `health`, `environment` or `provenance` has a `<field>_reason` or a `reason` beside
// it). Else an error that starts with the field.
std::optional<Error> ValidateDocument(std::string_view schema, const nlohmann::json& document);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_DOCUMENT_H_
