#include "harness/record/samples_file.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "harness/record/document.h"
#include "harness/record/file.h"

namespace filterbench {

Result<SamplesFile> ReadSamples(const std::filesystem::path& run_directory) {
  const std::filesystem::path path = run_directory / "samples.jsonl";
  const Result<std::string> content = ReadWholeFile(path);
  if (!content) return Error{content.error()};
  SamplesFile file;
  std::string_view rest = *content;
  for (uint64_t line = 1;; ++line) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    const auto place = [&] { return fmt::format("{}:{}: ", path.string(), line); };
    const Result<nlohmann::json> document = ParseStrictJson(rest.substr(0, end));
    if (!document) return Error{place() + document.error()};
    Result<Sample> sample = SampleFromJson(*document);
    if (!sample) return Error{place() + sample.error()};
    file.samples.push_back(std::move(*sample));
    rest.remove_prefix(end + 1);
  }
  file.torn_bytes = rest.size();
  return file;
}

}  // namespace filterbench
