#include "harness/commands/plan.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness/commands/sweep.h"
#include "harness/plan/plan.h"
#include "harness/registry/erased_filter.h"
#include "harness/run/manifest.h"
#include "harness/spec/shard.h"
#include "harness/spec/spec.h"

namespace filterbench {
namespace {

using nlohmann::json;

json SkippedToJson(const std::vector<SkippedPoint>& points) {
  json list = json::array();
  for (const SkippedPoint& skipped : points) {
    list.push_back({{"point", PointToJson(skipped.point)}, {"reason", skipped.reason}});
  }
  return list;
}

// One line per reason, with how many points it concerns.
void PrintSkipped(const char* what, const std::vector<SkippedPoint>& points) {
  std::map<std::string, uint64_t> count_of;
  for (const SkippedPoint& skipped : points) {
    ++count_of[fmt::format("{}, {} keys: {}", skipped.point.filter, skipped.point.keys,
                           skipped.reason)];
  }
  for (const auto& [reason, count] : count_of) {
    fmt::print("{}: {} points of {}\n", what, count, reason);
  }
}

int PrintPlan(const SweepOptions& options, bool as_json) {
  const Result<Ready> ready = Prepare(options);
  if (!ready) return Complain(ready.error(), kExitUsage);
  const Plan& plan = ready->plan;
  if (as_json) {
    fmt::print("{}\n", json{{"spec", ResolvedSpec(ready->spec, plan)},
                            {"skipped", SkippedToJson(plan.skipped)},
                            {"meaningless", SkippedToJson(plan.meaningless)},
                            {"filters", plan.cases.size()},
                            {"memory_bytes", plan.memory_bytes()},
                            {"least_seconds", plan.least_seconds()},
                            {"most_seconds", plan.most_seconds()}}
                           .dump(2));
    return kExitOk;
  }
  for (const Case& work : plan.cases) {
    const std::string fill = work.fill ? fmt::format(" filled {} times", *work.fill) : "";
    const std::string pages =
        work.pages ? fmt::format(" on {} pages", kPagesNames[static_cast<size_t>(*work.pages)])
                   : "";
    fmt::print("{} {} keys{}{} {}: {} points, {} MiB, {} a round\n", work.type->info().name,
               work.keys, fill, pages, work.params.dump(), work.points.size(),
               work.memory_bytes >> 20, Duration(work.seconds));
  }
  PrintSkipped("skipped", plan.skipped);
  PrintSkipped("left out, means nothing", plan.meaningless);
  const MeasureSpec& measure = plan.measure;
  fmt::print("{}{} points on {} filters, {} skipped; {} builds in each of {} processes{}\n",
             plan.shard ? fmt::format("shard {}: ", ShardText(*plan.shard)) : "", plan.points(),
             plan.cases.size(), plan.skipped.size(), measure.rounds,
             measure.processes,
             measure.width ? fmt::format(", up to {} until the interval of a point is {} % wide",
                                         measure.max_processes, *measure.width * 100)
                           : "");
  fmt::print("needs {} MiB and {}\n", plan.memory_bytes() >> 20, TimeText(plan));
  return kExitOk;
}

}  // namespace

void AddPlan(CommandLine& line) {
  struct Arguments {
    SweepArguments sweep;
    bool as_json = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* plan =
      line.app.add_subcommand("plan", "Show what a sweep would measure, and its cost");
  arguments->sweep.AddTo(plan);
  plan->add_flag("--json", arguments->as_json, "As JSON");
  plan->callback([&line, arguments] {
    line.exit_code = arguments->sweep.With(
        [&](const SweepOptions& sweep) { return PrintPlan(sweep, arguments->as_json); });
  });
}

}  // namespace filterbench
