#ifndef FILTERBENCH_HARNESS_RECORD_VALIDATE_H_
#define FILTERBENCH_HARNESS_RECORD_VALIDATE_H_

// Checks records against results/schema/*.json, which are compiled in.

#include <filesystem>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "filters/result.h"

namespace filterbench {

// JSON as RFC 8259 has it, and no more: also refused are NaN, infinities (1e999 too), a key that
// occurs twice in an object, and text that is not UTF-8. The error gives line and column.
Result<nlohmann::json> ParseStrictJson(std::string_view text);

// Nothing if `document` obeys the schema of that name (manifest, sample, summary, theory), else an
// error that starts with the field.
std::optional<Error> ValidateDocument(std::string_view schema, const nlohmann::json& document);

// Reads back every file of a run directory, COMPLETE excepted, and checks the files against their
// schemas and against each other. The error names file, line and field.
std::optional<Error> ValidateRun(const std::filesystem::path& run_directory);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_VALIDATE_H_
