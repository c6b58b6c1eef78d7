#include "harness/run/manifest.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "filters/simd/targets.h"

namespace filterbench {

using nlohmann::json;

json ResolvedSpec(const Spec& spec, const Plan& plan) {
  json points = json::array();
  for (const Point& point : plan.sweep_points) points.push_back(PointToJson(point));
  json plugins = json::array();
  for (const LoadedPlugin& plugin : LoadedPlugins()) {
    plugins.push_back(
        {{"path", plugin.path}, {"xxh3", plugin.digest}, {"filters", plugin.filters}});
  }
  json resolved = {{"name", spec.name},
                   {"description", spec.description},
                   {"source", spec.source.root()},
                   {"measure", MeasureToJson(plan.measure)},
                   {"plugins", plugins},
                   {"points", points}};
  if (!spec.only_filters.empty()) resolved["only_filters"] = spec.only_filters;
  if (!spec.without_filters.empty()) resolved["without_filters"] = spec.without_filters;
  return resolved;
}

std::string SpecHash(const json& resolved_spec) {
  return fmt::format("{:016x}", HashBytes(resolved_spec.dump(), 0));
}

json MakeManifest(const Spec& spec, const Plan& plan, const json& environment,
                  const json& provenance, const RunDirectory& directory,
                  const std::string& time_utc) {
  const json resolved = ResolvedSpec(spec, plan);
  std::vector<std::string> compiled;
  for (const int64_t target : CompiledTargets()) compiled.emplace_back(TargetName(target));
  compiled.emplace_back("scalar");
  json manifest = {{"schema", "filterbench/manifest/1"},
          {"run", directory.name()},
          {"machine", directory.machine()},
          {"time_utc", time_utc},
          {"spec", resolved},
          {"spec_hash", SpecHash(resolved)},
          {"seed", spec.measure.seed},
          {"provenance", provenance},
          {"targets",
           {{"compiled", compiled},
            {"supported", SupportedTargetNames()},
            {"best", SupportedTargetNames().front()}}},
          {"environment", environment}};
  if (plan.shard) manifest["shard"] = ShardToJson(*plan.shard);
  return manifest;
}

}  // namespace filterbench
