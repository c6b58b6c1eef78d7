#ifndef FILTERBENCH_HARNESS_RECORD_SUMMARY_H_
#define FILTERBENCH_HARNESS_RECORD_SUMMARY_H_

// From samples to one entry per point (results/README.md, results/schema/summary.json).

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "harness/record/sample.h"
#include "harness/statistics.h"

namespace filterbench {

// The times of one point: process -> build -> pass, in the order of their numbers. A sample that
// does not name its process is one of its own.
NestedValues NestTimes(std::span<const Sample* const> samples);

// summary.json. `manifest` is a valid one; of it `run`, `machine`, the spec's name and the asked
// width of intervals (spec.measure.width, if any) are taken.
// Points come in the order of their first samples.
//
// A point has the worst status of its samples, with the reason of the first sample that has it; its
// time is that of its good samples, and only if all are good.
nlohmann::json Summarise(const nlohmann::json& manifest, std::span<const Sample> samples);

// summary.csv: the entries flat, one column per leaf ("params.bits_per_key", "ns_per_op.median").
// The header is the union over all points; what a point has not is empty. Numbers are as in the
// JSON. Lines end with a line feed, text is quoted where it must be (RFC 4180).
std::string SummaryCsv(const nlohmann::json& summary);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_RECORD_SUMMARY_H_
