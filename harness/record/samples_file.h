#ifndef FILTERBENCH_HARNESS_RECORD_SAMPLES_FILE_H_
#define FILTERBENCH_HARNESS_RECORD_SAMPLES_FILE_H_

#include <cstdint>
#include <filesystem>
#include <vector>

#include "filters/result.h"
#include "harness/record/sample.h"

namespace filterbench {

struct SamplesFile {
  std::vector<Sample> samples;
  // Bytes after the last line feed: a line that a kill cut off, no sample.
  uint64_t torn_bytes = 0;
};

// samples.jsonl of a run. Needs no lock and may be called while the run goes on. Damage anywhere
// but in the last line is an error that names file, line and field.
Result<SamplesFile> ReadSamples(const std::filesystem::path& run_directory);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_SAMPLES_FILE_H_
