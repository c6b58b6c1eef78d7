#include "harness/registry/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "filters/hash.h"
#include "filters/nearest_name.h"
#include "filters/plugin/abi.h"
#include "harness/process/isolated.h"
#include "harness/registry/hashed_pieces.h"
#include "harness/registry/plugin_table.h"
#include "harness/utf8.h"

namespace filterbench {
namespace {

using nlohmann::json;
using Functions = filterbench_plugin_filter;

// Targets of a plug-in: its own loops, and its reference one key at a time.
constexpr std::string_view kOwnLoops = "external";
constexpr std::string_view kReference = "scalar";

Result<std::vector<Functions>> ReadTable(const std::string& file);

class PluginFilter final : public BuiltFilter {
 public:
  PluginFilter(const Functions* functions, void* filter, uint64_t keys)
      : functions_(functions), filter_(filter) {
    report_.distinct_keys = keys;
    if (functions->peak_build_bytes != nullptr) {
      report_.peak_bytes = functions->peak_build_bytes(filter);
    }
  }
  PluginFilter(const PluginFilter&) = delete;
  PluginFilter& operator=(const PluginFilter&) = delete;
  ~PluginFilter() override { functions_->destroy(filter_); }

  uint64_t SizeInBytes() const override { return functions_->size_in_bytes(filter_); }
  uint64_t AllocatedBytes() const override { return SizeInBytes(); }
  std::span<const std::byte> Table() const override {
    if (functions_->table == nullptr) return {};
    size_t bytes = 0;
    const void* table = functions_->table(filter_, &bytes);
    return {static_cast<const std::byte*>(table), bytes};
  }
  const BuildReport& Report() const override { return report_; }
  Details GetDetails() const override { return {}; }
  std::optional<FprEstimate> ExpectedFpr() const override {
    if (functions_->expected_fpr == nullptr) return std::nullopt;
    return FprEstimate{.mean = functions_->expected_fpr(filter_), .instance_sd = 0};
  }
  std::vector<std::byte> Serialize() const override {
    throw std::logic_error("a plug-in has no serialized form");
  }

  uint64_t Count(const KeyStream& stream, Mode mode, std::string_view target) const override {
    if (stream.hashing == Hashing::kPrehashed) return CountHashes(stream.words, mode, target);
    return SumOverHashedPieces(stream, [&](std::span<const uint64_t> hashes) {
      return CountHashes(hashes, mode, target);
    });
  }

  void Bits(std::span<const uint64_t> words, std::string_view target,
            uint64_t* bits) const override {
    if (target == kOwnLoops && functions_->bits_batched != nullptr) {
      return functions_->bits_batched(filter_, words.data(), words.size(), bits);
    }
    for (size_t i = 0; i < words.size(); i += 64) {
      const size_t in_word = std::min<size_t>(64, words.size() - i);
      uint64_t word = 0;
      for (size_t j = 0; j < in_word; ++j) word |= Answer(words[i + j]) << j;
      bits[i / 64] = word;
    }
  }

  std::unique_ptr<TargetLookups> On(std::string_view target) const override {
    return std::make_unique<Lookups>(*this, target);
  }

  uint64_t InsertUntilFull(std::span<const uint64_t> hashes) override {
    uint64_t accepted = 0;
    for (const uint64_t hash : hashes) {
      if (functions_->insert(filter_, hash) == 0) break;
      ++accepted;
    }
    report_.distinct_keys += accepted;
    return accepted;
  }
  bool Erase(uint64_t hash) override { return functions_->erase(filter_, hash) != 0; }
  void InsertAll(std::span<const uint64_t>, unsigned) override {
    throw std::logic_error("a plug-in is not filled in pieces");
  }

 private:
  class Lookups final : public TargetLookups {
   public:
    Lookups(const PluginFilter& filter, std::string_view target)
        : filter_(filter), target_(target) {}
    bool MayContain(uint64_t hash) const override { return filter_.Answer(hash) != 0; }
    void Bits(std::span<const uint64_t> hashes, uint64_t* bits) const override {
      filter_.Bits(hashes, target_, bits);
    }

   private:
    const PluginFilter& filter_;
    const std::string target_;
  };

  uint64_t Answer(uint64_t hash) const {
    return functions_->may_contain(filter_, hash) != 0 ? 1 : 0;
  }

  uint64_t CountHashes(std::span<const uint64_t> hashes, Mode mode, std::string_view target) const {
    using CountFunction = uint64_t (*)(const void*, const uint64_t*, size_t);
    CountFunction count = nullptr;
    if (target == kOwnLoops) {
      if (mode == Mode::kLookupBatched) count = functions_->count_batched;
      if (mode == Mode::kLookupSingle) count = functions_->count_single;
      if (mode == Mode::kLatency) count = functions_->chain;
    }
    if (count != nullptr) return count(filter_, hashes.data(), hashes.size());
    uint64_t sum = 0;
    if (mode != Mode::kLatency) {
      for (const uint64_t hash : hashes) sum += Answer(hash);
      return sum;
    }
    uint64_t zero = 0;
    asm volatile("" : "+r"(zero));
    uint64_t answer = 0;
    for (const uint64_t hash : hashes) {
      answer = Answer(hash ^ (answer & zero));
      sum += answer;
    }
    return sum;
  }

  const Functions* functions_;
  void* filter_;
  BuildReport report_;
};

class PluginType final : public FilterType {
 public:
  PluginType(std::string file, size_t index, PluginFilterDescription description)
      : file_(std::move(file)), index_(index), description_(std::move(description)) {
    info_ = {.name = description_.name,
             .summary = description_.summary,
             .source = description_.source,
             .fpr_formula = description_.fpr_formula,
             .hash_bits = description_.hash_bits};
  }

  const FilterInfo& info() const override { return info_; }
  std::vector<KnobInfo> knobs() const override {
    std::vector<KnobInfo> list;
    for (const PluginKnob& knob : description_.knobs) {
      list.push_back({knob.name, Value(knob, knob.initial), Value(knob, knob.low),
                      Value(knob, knob.high), {}, knob.meaning});
    }
    return list;
  }
  std::vector<std::string_view> targets() const override { return {kOwnLoops, kReference}; }
  bool batched_by_reference(std::string_view target) const override {
    return target == kReference || !description_.batched;
  }
  bool hashes_keys() const override { return false; }
  bool can_insert() const override { return description_.inserts; }
  bool can_erase() const override { return description_.erases; }
  bool can_stream() const override { return false; }
  bool is_external() const override { return true; }
  std::optional<double> TheoryFpr(double) const override { return std::nullopt; }

  Result<json> CompleteParams(const json& params) const override {
    if (!params.is_object()) return Error{fmt::format("must be an object, is {}", params.dump())};
    json complete = json::object();
    std::vector<std::string> names;
    for (const PluginKnob& knob : description_.knobs) {
      names.push_back(knob.name);
      complete[knob.name] = Value(knob, knob.initial);
    }
    for (const auto& [name, value] : params.items()) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) return Error{UnknownName("parameter", name, names)};
      const PluginKnob& knob =
          description_.knobs[static_cast<size_t>(found - names.begin())];
      const double number = value.is_number() ? value.get<double>() : NAN;
      if (!(number >= knob.low && number <= knob.high) ||
          (knob.whole && number != std::floor(number))) {
        return Error{fmt::format("{}: must be {} in {}..{}, is {}", name,
                                 knob.whole ? "a whole number" : "a number", knob.low,
                                 knob.high, value.dump())};
      }
      complete[name] = Value(knob, number);
    }
    return complete;
  }

  std::string Contradiction(const json&) const override { return {}; }

  Result<std::unique_ptr<BuiltFilter>> Build(const KeyStream& keys, const json& params,
                                             uint64_t seed) const override {
    const auto build = [&](const Functions& functions, const double* values, char* reason) {
      return functions.build(keys.words.data(), keys.words.size(), values, seed, reason);
    };
    return Made(keys.words.size(), build, params);
  }
  Result<std::unique_ptr<BuiltFilter>> Create(uint64_t keys, const json& params,
                                              uint64_t seed) const override {
    const auto create = [&](const Functions& functions, const double* values, char* reason) {
      return functions.create(keys, values, seed, reason);
    };
    return Made(0, create, params);
  }
  Result<std::unique_ptr<BuiltFilter>> Deserialize(std::span<const std::byte>) const override {
    return Error{"a plug-in has no serialized form"};
  }

 private:
  static json Value(const PluginKnob& knob, double value) {
    // A whole number is written as one.
    return knob.whole ? json(static_cast<int64_t>(value)) : json(value);
  }

  // The library, loaded into this process when it is needed first.
  Result<const Functions*> Load() const {
    if (!functions_) {
      const Result<std::vector<Functions>> table = ReadTable(file_);
      if (!table) return Error{table.error()};
      if (index_ >= table->size() || (*table)[index_].name != description_.name) {
        return Error{"the plug-in has other filters than when it was opened"};
      }
      functions_ = (*table)[index_];
    }
    return &*functions_;
  }

  template <class Make>
  Result<std::unique_ptr<BuiltFilter>> Made(uint64_t keys, const Make& make,
                                            const json& params) const {
    const Result<json> complete = CompleteParams(params);
    if (!complete) return Error{complete.error()};
    const Result<const Functions*> functions = Load();
    if (!functions) return Error{functions.error()};
    std::vector<double> values;
    for (const PluginKnob& knob : description_.knobs) {
      values.push_back((*complete)[knob.name].get<double>());
    }
    char reason[FILTERBENCH_REASON_BYTES] = "";
    void* filter = make(**functions, values.data(), reason);
    if (filter == nullptr) {
      reason[FILTERBENCH_REASON_BYTES - 1] = '\0';
      return Error{reason[0] != '\0' ? ToValidUtf8(reason)
                                     : std::string("not built, and the plug-in gives no reason")};
    }
    std::unique_ptr<BuiltFilter> built = std::make_unique<PluginFilter>(*functions, filter, keys);
    if (const auto expected = built->ExpectedFpr();
        expected && !(expected->mean >= 0 && expected->mean <= 1)) {
      return Error{fmt::format("expected_fpr: must be in 0..1, is {}", expected->mean)};
    }
    return built;
  }

  std::string file_;
  size_t index_;
  PluginFilterDescription description_;
  FilterInfo info_;
  mutable std::optional<Functions> functions_;
};

// Opens the library and reads its table; all filters of it, or the first thing that is wrong.
Result<std::vector<Functions>> ReadTable(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{fmt::format("cannot be loaded: {}", dlerror())};
  using Entry = const filterbench_plugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "filterbench_plugin_entry"));
  if (entry == nullptr) {
    return Error{"is no plug-in: it has no function filterbench_plugin_entry"};
  }
  return CheckPluginTable(entry());
}

}  // namespace

std::vector<std::unique_ptr<FilterType>> PluginTypes(
    const std::string& file, const std::vector<PluginFilterDescription>& filters) {
  std::vector<std::unique_ptr<FilterType>> types;
  for (const PluginFilterDescription& filter : filters) {
    types.push_back(std::make_unique<PluginType>(file, types.size(), filter));
  }
  return types;
}

Result<Plugin> OpenPlugin(const std::string& path) {
  const auto refuse = [&](const std::string& what) { return Error{path + ": " + what}; };
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) return refuse("cannot be opened: " + error.message());
  if (!std::filesystem::is_regular_file(file, error)) return refuse("is not a file");
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream),
                                std::istreambuf_iterator<char>()};
  if (!stream) return refuse("cannot be read");

  // Loading runs code of the library already.
  constexpr double kLoadSeconds = 30;
  json answer;
  const IsolatedResult read = RunIsolated(
      {.silence_limit_seconds = kLoadSeconds},
      [&](const SendMessage& send) {
        const auto filters = ReadTable(file.string());
        json list = json::array();
        if (filters) {
          for (const Functions& filter : *filters) {
            list.push_back(PluginFilterToJson(DescribePluginFilter(filter)));
          }
        }
        send((filters ? list : json(filters.error()))
                 .dump(-1, ' ', false, json::error_handler_t::replace));
      },
      [&](std::string_view message) { answer = json::parse(message, nullptr, false); });
  if (read.end != IsolatedEnd::kDone) return refuse("while it was loaded it " + read.reason);
  if (answer.is_string()) return refuse(answer.get<std::string>());
  const auto descriptions = PluginFiltersFromJson(answer);
  if (!descriptions) return refuse("while it was loaded " + descriptions.error());

  return Plugin{.path = path,
                .digest = fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size())),
                .types = PluginTypes(file.string(), *descriptions)};
}

}  // namespace filterbench
