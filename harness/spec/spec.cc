#include "harness/spec/spec.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "filters/nearest_name.h"

namespace filterbench {
namespace {

using nlohmann::json;

// Mode workload is what the field `workload` chooses; it is no name for a spec's modes.
constexpr size_t kModesToName = std::size(kModeNames) - 1;
static_assert(kModeNames[kModesToName] == "workload");

constexpr double kMaxFill = 100;
constexpr uint64_t kMaxThreads = 65536;

// Names of a sweep's `pages`: to leave the choice to the tables, then those of kPagesNames.
constexpr std::string_view kPagesChoices[] = {"default", kPagesNames[0], kPagesNames[1],
                                              kPagesNames[2]};
static_assert(std::size(kPagesNames) == 3);

// Reads one object of a spec field by field and keeps the first error. Fields that are left over
// are unknown: Finish reports them with the nearest valid name.
class ObjectReader {
 public:
  ObjectReader(const LocatedJson& source, std::string pointer)
      : source_(source), pointer_(std::move(pointer)) {
    const json::json_pointer at(pointer_);
    object_ = source.root().contains(at) ? &source.root().at(at) : nullptr;
    if (object_ != nullptr && !object_->is_object()) {
      Refuse("", "must be an object");
      object_ = nullptr;
    }
  }

  const json* Find(const char* name) {
    known_.emplace_back(name);
    if (object_ == nullptr) return nullptr;
    const auto found = object_->find(name);
    return found == object_->end() ? nullptr : &*found;
  }

  void String(const char* name, std::string& value) {
    const json* found = Find(name);
    if (found == nullptr) return;
    if (!found->is_string()) return Refuse(name, "must be a string");
    value = found->get<std::string>();
  }

  void Whole(const char* name, uint64_t low, uint64_t high, uint64_t& value) {
    const json* found = Find(name);
    if (found == nullptr) return;
    const std::optional<uint64_t> whole = AsWhole(*found, low, high);
    if (!whole) {
      return Refuse(name, fmt::format("must be a whole number in {}..{}, is {}", low, high,
                                      found->dump()));
    }
    value = *whole;
  }

  void Number(const char* name, double low, double high, double& value) {
    const json* found = Find(name);
    if (found == nullptr) return;
    if (!found->is_number() || !(found->get<double>() >= low && found->get<double>() <= high)) {
      return Refuse(name, fmt::format("must be a number in {}..{}, is {}", low, high,
                                      found->dump()));
    }
    value = found->get<double>();
  }

  // A list (or one element without brackets), each element by `read(element, pointer)`, which
  // returns nothing where it refused.
  template <class T, class Read>
  void List(const char* name, std::vector<T>& values, Read read) {
    const json* found = Find(name);
    if (found == nullptr) return;
    values.clear();
    if (!found->is_array()) {
      if (auto value = read(*found, Sub(name))) values.push_back(std::move(*value));
      return;
    }
    if (found->empty()) return Refuse(name, "must not be empty");
    for (size_t i = 0; i < found->size(); ++i) {
      auto value = read((*found)[i], fmt::format("{}/{}", Sub(name), i));
      if (!value) return;
      if (std::find(values.begin(), values.end(), *value) != values.end()) {
        return RefuseAt(fmt::format("{}/{}", Sub(name), i), "stands twice in the list");
      }
      values.push_back(std::move(*value));
    }
  }

  static std::optional<uint64_t> AsWhole(const json& value, uint64_t low, uint64_t high) {
    if (!value.is_number() || value < 0) return std::nullopt;
    uint64_t whole;
    if (value.is_number_integer()) {
      whole = value.get<uint64_t>();
    } else {
      // Beyond 2^53 a number with a fraction or an exponent need not be the one that was written.
      const double number = value.get<double>();
      if (number > 0x1p53 || number != std::floor(number)) return std::nullopt;
      whole = static_cast<uint64_t>(number);
    }
    if (whole < low || whole > high) return std::nullopt;
    return whole;
  }

  std::string Sub(std::string_view name) const {
    return name.empty() ? pointer_ : fmt::format("{}/{}", pointer_, name);
  }
  void Refuse(std::string_view name, std::string_view problem) { RefuseAt(Sub(name), problem); }
  void RefuseAt(std::string_view pointer, std::string_view problem) {
    if (!error_) error_ = source_.At(pointer, problem);
  }

  std::optional<Error> Finish() {
    if (object_ != nullptr && !error_) {
      for (const auto& [name, value] : object_->items()) {
        if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
          RefuseAt(Sub(name), UnknownName("field", name, known_));
          break;
        }
      }
    }
    return error_;
  }

 private:
  const LocatedJson& source_;
  std::string pointer_;
  const json* object_ = nullptr;
  std::vector<std::string> known_;
  std::optional<Error> error_;
};

// Reads an enumerator by its name.
template <class E>
auto NameReader(ObjectReader& reader, std::string_view what,
                std::span<const std::string_view> names) {
  return [&reader, what, names](const json& value,
                                const std::string& pointer) -> std::optional<E> {
    const std::vector<std::string> valid(names.begin(), names.end());
    if (!value.is_string()) {
      reader.RefuseAt(pointer, fmt::format("must be one of {}", fmt::join(valid, ", ")));
      return std::nullopt;
    }
    const auto& name = value.get_ref<const std::string&>();
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return static_cast<E>(i);
    }
    reader.RefuseAt(pointer, UnknownName(what, name, valid));
    return std::nullopt;
  };
}

std::optional<Error> ReadMeasure(const LocatedJson& source, MeasureSpec& measure) {
  ObjectReader reader(source, "/measure");
  reader.Whole("seed", 0, kMaxSeed, measure.seed);
  reader.Whole("processes", 1, 1000, measure.processes);
  measure.max_processes = std::max(measure.max_processes, measure.processes);
  reader.Whole("max_processes", 1, 1000, measure.max_processes);
  if (measure.max_processes < measure.processes) {
    reader.Refuse("max_processes", fmt::format("must be at least processes, which is {}",
                                               measure.processes));
  }
  reader.Whole("rounds", 1, 1000, measure.rounds);
  if (const json* width = reader.Find("width"); width != nullptr && width->is_null()) {
    measure.width = std::nullopt;
  } else {
    double asked = *measure.width;
    reader.Number("width", 1e-4, 1, asked);
    measure.width = asked;
  }
  reader.Whole("passes", 1, 10000, measure.passes);
  reader.Number("pass_seconds", 0, 3600, measure.pass_seconds);
  reader.Whole("stream_lookups", 0, uint64_t{1} << 32, measure.stream_lookups);
  if (measure.stream_lookups != 0 && measure.stream_lookups < 4096) {
    reader.Refuse("stream_lookups", "must be 0 or at least 4096: a shorter stream is learned by "
                                    "the branch predictor");
  }
  reader.Whole("fpr_queries", 1000, uint64_t{1} << 40, measure.fpr_queries);
  reader.Number("point_seconds", 0.1, 1e6, measure.point_seconds);
  return reader.Finish();
}

std::optional<Error> ReadFilterEntry(const LocatedJson& source, const std::string& pointer,
                                     FilterEntry& entry) {
  ObjectReader reader(source, pointer);
  reader.String("filter", entry.filter);
  reader.String("preset", entry.preset);
  const json* params = reader.Find("params");
  entry.params = params != nullptr ? *params : json::object();
  entry.pointer = pointer + (entry.preset.empty() ? "/filter" : "/preset");
  entry.params_pointer = params != nullptr ? pointer + "/params" : entry.pointer;
  if (entry.filter.empty() == entry.preset.empty()) {
    reader.Refuse("", "must name either a filter or a preset");
  } else if (params != nullptr && !entry.preset.empty()) {
    reader.Refuse("params", "a preset has its own parameters; name the filter to choose others");
  }
  return reader.Finish();
}

// A value that stands twice in the list of a parameter or knob.
void RefuseRepeats(ObjectReader& reader, const json& lists, const std::string& pointer) {
  if (!lists.is_object()) return;
  for (const auto& [name, values] : lists.items()) {
    if (!values.is_array()) continue;
    for (size_t i = 1; i < values.size(); ++i) {
      if (std::find(values.begin(), values.begin() + static_cast<ptrdiff_t>(i), values[i]) !=
          values.begin() + static_cast<ptrdiff_t>(i)) {
        reader.RefuseAt(fmt::format("{}/{}/{}", pointer, name, i), "stands twice in the list");
      }
    }
  }
}

// The field `workload`; the fields that mean nothing beside it are refused.
void ReadWorkload(ObjectReader& reader, SweepSpec& sweep) {
  const json* found = reader.Find("workload");
  if (found == nullptr) return;
  WorkloadEntry& entry = sweep.workload.emplace();
  entry.pointer = reader.Sub("workload");
  entry.knobs = json::object();
  const json name = found->is_object() ? found->value("name", json()) : *found;
  if (!name.is_string()) {
    return reader.Refuse("workload", "must be the name of a workload, or an object with a `name` "
                                     "and its knobs");
  }
  entry.name = name.get<std::string>();
  if (found->is_object()) {
    entry.knobs = *found;
    entry.knobs.erase("name");
    RefuseRepeats(reader, entry.knobs, entry.pointer);
  }
  for (const char* field : {"modes", "hashings", "fills", "pages", "threads"}) {
    if (reader.Find(field) != nullptr) {
      return reader.Refuse(field, "means nothing beside a workload, which has its own ways");
    }
  }
}

std::optional<Error> ReadSweep(const LocatedJson& source, const std::string& pointer,
                               SweepSpec& sweep) {
  ObjectReader reader(source, pointer);
  sweep.pointer = pointer;
  sweep.keys = {1'000'000};
  sweep.key_sets = {KeySetSpec{}};
  sweep.modes = {Mode::kLookupBatched};
  sweep.negative_shares = {1.0};
  sweep.hashings = {Hashing::kPrehashed};
  sweep.targets = {"best"};
  sweep.pages = {std::nullopt};
  sweep.threads = {1};

  const json* filters = reader.Find("filters");
  if (filters == nullptr || !(filters->is_object() || filters->is_array()) || filters->empty()) {
    reader.Refuse("filters", "must be an object from filter names to parameters, or a list of "
                             "filters and presets");
  } else if (filters->is_object()) {
    for (const auto& [name, params] : filters->items()) {
      sweep.filters.push_back({.filter = name,
                               .params = params,
                               .preset = "",
                               .pointer = fmt::format("{}/filters/{}", pointer, name),
                               .params_pointer = fmt::format("{}/filters/{}", pointer, name)});
    }
  } else {
    for (size_t i = 0; i < filters->size(); ++i) {
      if (const auto error = ReadFilterEntry(source, fmt::format("{}/filters/{}", pointer, i),
                                             sweep.filters.emplace_back())) {
        return error;
      }
    }
  }
  for (const FilterEntry& entry : sweep.filters) {
    RefuseRepeats(reader, entry.params, entry.params_pointer);
  }
  reader.List("keys", sweep.keys,
              [&](const json& value, const std::string& at) -> std::optional<uint64_t> {
                const auto whole = ObjectReader::AsWhole(value, 0, uint64_t{1} << 45);
                if (!whole) reader.RefuseAt(at, "must be a whole number in 0..2^45");
                return whole;
              });
  reader.List("key_sets", sweep.key_sets,
              [&](const json& value, const std::string& at) -> std::optional<KeySetSpec> {
                Result<KeySetSpec> key_set = KeySetFromJson(value);
                if (key_set) return *key_set;
                reader.RefuseAt(at, key_set.error());
                return std::nullopt;
              });
  ReadWorkload(reader, sweep);
  sweep.has_negative_shares = reader.Find("negative_shares") != nullptr;
  reader.List("modes", sweep.modes,
              NameReader<Mode>(reader, "mode", std::span(kModeNames).first(kModesToName)));
  reader.List(
      "fills", sweep.fills, [&](const json& value, const std::string& at) -> std::optional<double> {
        if (value.is_number() && value.get<double>() > 0 && value.get<double>() <= kMaxFill) {
          return value.get<double>();
        }
        reader.RefuseAt(at, fmt::format("must be a number above 0 and up to {}", kMaxFill));
        return std::nullopt;
      });
  reader.List("negative_shares", sweep.negative_shares,
              [&](const json& value, const std::string& at) -> std::optional<double> {
                if (value.is_number() && value.get<double>() >= 0 && value.get<double>() <= 1) {
                  return value.get<double>();
                }
                reader.RefuseAt(at, "must be a number in 0..1");
                return std::nullopt;
              });
  reader.List("hashings", sweep.hashings, NameReader<Hashing>(reader, "hashing", kHashingNames));
  reader.List("targets", sweep.targets,
              [&](const json& value, const std::string& at) -> std::optional<std::string> {
                if (value.is_string()) return value.get<std::string>();
                reader.RefuseAt(at, "must be a string");
                return std::nullopt;
              });
  const auto pages_choice = NameReader<size_t>(reader, "kind of pages", kPagesChoices);
  reader.List("pages", sweep.pages,
              [&](const json& value,
                  const std::string& at) -> std::optional<std::optional<Pages>> {
                const std::optional<size_t> choice = pages_choice(value, at);
                if (!choice) return std::nullopt;
                if (*choice == 0) return std::optional<Pages>();
                return static_cast<Pages>(*choice - 1);
              });
  reader.List("threads", sweep.threads,
              [&](const json& value, const std::string& at) -> std::optional<uint64_t> {
                const auto whole = ObjectReader::AsWhole(value, 1, kMaxThreads);
                if (!whole) {
                  reader.RefuseAt(at, fmt::format("must be a whole number in 1..{}", kMaxThreads));
                }
                return whole;
              });
  return reader.Finish();
}

}  // namespace

json MeasureToJson(const MeasureSpec& measure) {
  return {{"seed", measure.seed},
          {"processes", measure.processes},
          {"max_processes", measure.max_processes},
          {"rounds", measure.rounds},
          {"passes", measure.passes},
          {"width", measure.width ? json(*measure.width) : json()},
          {"pass_seconds", measure.pass_seconds},
          {"stream_lookups", measure.stream_lookups},
          {"fpr_queries", measure.fpr_queries},
          {"point_seconds", measure.point_seconds}};
}

Result<MeasureSpec> ParseMeasure(const LocatedJson& source) {
  MeasureSpec measure;
  if (const auto error = ReadMeasure(source, measure)) return *error;
  return measure;
}

Result<Spec> ParseSpec(LocatedJson source, std::string name) {
  Spec spec{.name = std::move(name),
            .description = "",
            .plugins = {},
            .measure = {},
            .sweeps = {},
            .source = std::move(source),
            .only_filters = {},
            .without_filters = {}};
  ObjectReader reader(spec.source, "");
  reader.String("description", spec.description);
  reader.List("plugins", spec.plugins,
              [&](const json& value, const std::string& at) -> std::optional<std::string> {
                if (value.is_string() && !value.get_ref<const std::string&>().empty()) {
                  return value.get<std::string>();
                }
                reader.RefuseAt(at, "must be the path of a shared library");
                return std::nullopt;
              });
  reader.Find("measure");
  const json* sweeps = reader.Find("sweeps");
  if (sweeps == nullptr || !sweeps->is_array() || sweeps->empty()) {
    reader.Refuse("sweeps", "must be a list with at least one sweep");
  }
  if (const auto error = reader.Finish()) return *error;
  if (const auto error = ReadMeasure(spec.source, spec.measure)) return *error;
  for (size_t i = 0; i < sweeps->size(); ++i) {
    spec.sweeps.emplace_back();
    if (const auto error =
            ReadSweep(spec.source, fmt::format("/sweeps/{}", i), spec.sweeps.back())) {
      return *error;
    }
  }
  return spec;
}

Result<Spec> ReadSpec(const std::string& path_or_name, const SpecChanges& changes) {
  namespace fs = std::filesystem;
  std::string path = path_or_name;
  if (path.find('/') == std::string::npos && !path.ends_with(".json")) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(FILTERBENCH_SPECS_DIRECTORY, error)) {
      names.push_back(entry.path().stem().string());
    }
    std::sort(names.begin(), names.end());
    if (std::find(names.begin(), names.end(), path_or_name) == names.end()) {
      return Error{UnknownName("spec", path_or_name, names)};
    }
    path = (fs::path(FILTERBENCH_SPECS_DIRECTORY) / (path_or_name + ".json")).string();
  }
  Result<LocatedJson> source = LocatedJson::ReadFile(path);
  if (!source) return Error{source.error()};
  if (const auto error = Apply(changes, *source)) return *error;
  Result<Spec> spec = ParseSpec(std::move(*source), fs::path(path).stem().string());
  if (!spec && !changes.empty()) return Error{"as changed on the command line: " + spec.error()};
  return spec;
}

}  // namespace filterbench
