#include "harness/commands/sweep.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "harness/machine/cpu_affinity.h"
#include "harness/machine/environment.h"
#include "harness/machine/system_files.h"
#include "harness/plan/select.h"
#include "harness/registry/erased_filter.h"
#include "harness/spec/spec.h"

namespace filterbench {
namespace {

using nlohmann::json;

uint64_t AvailableMemoryBytes(const json& environment) {
  const json& available = environment.at("memory").at("available_bytes");
  // A tenth stays for the system.
  return available.is_number() ? available.get<uint64_t>() / 10 * 9 : UINT64_MAX;
}

}  // namespace

void SweepArguments::AddTo(CLI::App* command) {
  command->add_option("spec", options_.spec,
                      "Name of a spec (smoke, quick, families, ...) or path of a file")
      ->required();
  command->add_option("--filter", options_.only_filters,
                      "Only this filter or preset of the spec, and the baselines; may be a pattern "
                      "(\"*_bloom\") and given again")
      ->allow_extra_args(false);
  command->add_option("--exclude", options_.without_filters, "All but this one, baselines included")
      ->allow_extra_args(false);
  command->add_option("--set", options_.changes.settings,
                      "name=value: a field of measure (passes=7), a list of every sweep "
                      "(keys=1e4,1e6), or a parameter (cuckoo.fingerprint_bits=8,12)")
      ->allow_extra_args(false);
  command->add_option("--seed", options_.changes.seed, "Of keys, builds, lookups and the order")
      ->check([](const std::string& text) -> std::string {
        // Before it is read, which would make the greatest number of one that is too large.
        uint64_t seed;
        const char* const end = text.data() + text.size();
        const auto [stop, problem] = std::from_chars(text.data(), end, seed);
        if (problem == std::errc{} && stop == end && seed <= kMaxSeed) return {};
        return fmt::format("must be a whole number in 0..{}, is '{}'", kMaxSeed, text);
      });
  command->add_option_function<std::string>(
             "--shard",
             [this](const std::string& text) {
               const Result<Shard> shard = ParseShard(text);
               if (!shard) throw CLI::ValidationError("--shard", shard.error());
               options_.shard = *shard;
             },
             "Only the I-th of N parts of the sweep; `merge` puts the parts together")
      ->type_name("I/N");
  CLI::Option* quick_flag = command->add_flag(
      "--quick", quick_, "A first look: two processes, a build in each, short passes");
  command->add_flag("--rigorous", rigorous_,
                    "At least four processes, up to twenty until intervals are 1 % wide")
      ->excludes(quick_flag);
  plugins_.AddTo(command);
}

int SweepArguments::With(const std::function<int(const SweepOptions&)>& use) const {
  SweepOptions options = options_;
  options.changes.care = quick_      ? Care::kQuick
                         : rigorous_ ? Care::kRigorous
                                     : Care::kAsSpecified;
  return plugins_.With([&] { return use(options); });
}

Result<Ready> Prepare(const SweepOptions& options,
                      std::optional<uint64_t> memory_limit_bytes) {
  Result<Spec> spec = ReadSpec(options.spec, options.changes);
  if (!spec) return Error{spec.error()};
  if (const auto error =
          SelectFilters(options.only_filters, options.without_filters, *spec)) {
    return *error;
  }
  for (size_t i = 0; i < spec->plugins.size(); ++i) {
    if (const auto error = LoadPlugin(spec->plugins[i])) {
      return spec->source.At(fmt::format("/plugins/{}", i), error->message);
    }
  }
  json environment = ReadEnvironment();
  const uint64_t limit = memory_limit_bytes.value_or(AvailableMemoryBytes(environment));
  Result<Plan> plan = MakePlan(*spec, limit,
                               ThreadCpus(AllowedCpus(), environment, SystemFiles("/")),
                               options.shard);
  if (!plan) return Error{plan.error()};
  EstimateTime(*plan);
  return Ready{std::move(*spec), std::move(*plan), std::move(environment), limit};
}

std::string Duration(double seconds) {
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string TimeText(const Plan& plan) {
  const std::string least = Duration(plan.least_seconds());
  const std::string most = Duration(plan.most_seconds());
  if (least == most) return fmt::format("about {}", least);
  return fmt::format("about {}, up to {} if points need more processes", least, most);
}

}  // namespace filterbench
