// Documents of a record from anywhere: what is refused has a reason, what is accepted is written as
// it was read.

#include "harness/record/document.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "filters/fuzzer.h"
#include "harness/record/sample.h"
#include "harness/record/summary.h"
#include "harness/record/validate.h"
#include "harness/spec/point.h"

namespace filterbench {
namespace {

using nlohmann::json;

void TrySample(const json& document) {
  const Result<Sample> sample = SampleFromJson(document);
  if (!sample) {
    FuzzRequire(!sample.error().empty(), "refused without a reason");
    return;
  }
  const json written = SampleToJson(*sample);
  if (const auto error = ValidateDocument("sample", written)) {
    FuzzRequire(false, "is written against the schema: " + error->message);
  }
  const Result<Sample> again = SampleFromJson(json::parse(written.dump()));
  FuzzRequire(again.has_value(), "what is written cannot be read");
  FuzzRequire(*again == *sample, "is another sample after it was written and read");
}

}  // namespace
}  // namespace filterbench

FILTERBENCH_FUZZER(Document) {
  const Result<json> parsed = ParseStrictJson(FuzzText(input));
  if (!parsed) {
    FuzzRequire(!parsed.error().empty(), "refused without a reason");
    return;
  }
  json document = *parsed;
  FuzzRequire(*ParseStrictJson(document.dump()) == document, "JSON that does not come back");
  for (const char* schema : {"manifest", "point", "summary", "theory", "workload"}) {
    const auto error = ValidateDocument(schema, document);
    FuzzRequire(!error || !error->message.empty(), "refused without a reason");
    if (error) continue;
    if (schema == std::string_view("manifest")) (void)WhyIncomplete(document, {});
    if (schema == std::string_view("summary")) {
      FuzzRequire(SummaryCsv(document).ends_with('\n'), "a line without an end");
    }
    if (schema == std::string_view("point")) (void)PointFromJson(document);
  }
  if (ValidateDocument("sample", document)) return;
  TrySample(document);
  // The identity of a point is a hash of it, which nobody meets by chance.
  if (const Result<Point> point = PointFromJson(document["point"])) {
    document["point_id"] = PointId(*point);
    TrySample(document);
  }
}
