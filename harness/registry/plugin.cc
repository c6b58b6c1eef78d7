#include "harness/registry/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "filters/hash.h"
#include "filters/nearest_name.h"
#include "filters/plugin/abi.h"
#include "harness/process/isolated.h"

namespace filterbench {
namespace {

using nlohmann::json;
using Functions = filterbench_plugin_filter;

// Targets of a plug-in: its own loops, and its reference one key at a time.
constexpr std::string_view kOwnLoops = "external";
constexpr std::string_view kReference = "scalar";

std::string Text(const char* text) { return text == nullptr ? "" : text; }

struct Description {
  std::string name, summary, source, fpr_formula;
  FilterInfo info() const {
    return {.name = name, .summary = summary, .source = source, .fpr_formula = fpr_formula};
  }
};

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
    const double expected = functions_->expected_fpr(filter_);
    if (!(expected >= 0 && expected <= 1)) return std::nullopt;
    return FprEstimate{.mean = expected, .instance_sd = 0};
  }
  std::vector<std::byte> Serialize() const override {
    throw std::logic_error("a plug-in has no serialized form");
  }

  uint64_t Count(const KeyStream& stream, Mode mode, std::string_view target) const override {
    if (stream.hashing == Hashing::kPrehashed) return CountHashes(stream.words, mode, target);
    // A sub-batch of hashes in L1, then the plug-in's loop.
    constexpr size_t kSubBatch = 1024;
    std::array<uint64_t, kSubBatch> hashes;
    uint64_t count = 0;
    for (size_t i = 0; i < stream.size(); i += kSubBatch) {
      const size_t in_batch = std::min(kSubBatch, stream.size() - i);
      for (size_t j = 0; j < in_batch; ++j) {
        hashes[j] = stream.hashing == Hashing::kXxh3U64
                        ? HashU64(stream.words[i + j], stream.hash_seed)
                        : HashBytes(stream.bytes[i + j], stream.hash_seed);
      }
      count += CountHashes(std::span(hashes).first(in_batch), mode, target);
    }
    return count;
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
  explicit PluginType(const Functions& functions)
      : functions_(functions),
        description_{Text(functions.name), Text(functions.summary), Text(functions.source),
                     Text(functions.fpr_formula)} {
    if (description_.source.empty()) description_.source = "not stated";
    if (description_.fpr_formula.empty()) description_.fpr_formula = "not stated";
    info_ = description_.info();
    info_.hash_bits = functions.hash_bits;
  }

  const FilterInfo& info() const override { return info_; }
  std::vector<KnobInfo> knobs() const override {
    std::vector<KnobInfo> list;
    for (const filterbench_knob& knob : Knobs()) {
      list.push_back({knob.name, Value(knob, knob.initial), Value(knob, knob.low),
                      Value(knob, knob.high), {}, Text(knob.meaning)});
    }
    return list;
  }
  std::vector<std::string_view> targets() const override { return {kOwnLoops, kReference}; }
  bool batched_by_reference(std::string_view target) const override {
    return target == kReference || functions_.count_batched == nullptr;
  }
  bool hashes_keys() const override { return false; }
  bool can_insert() const override {
    return functions_.create != nullptr && functions_.insert != nullptr;
  }
  bool can_erase() const override { return can_insert() && functions_.erase != nullptr; }
  bool can_stream() const override { return false; }
  bool is_external() const override { return true; }
  std::optional<double> TheoryFpr(double) const override { return std::nullopt; }

  Result<json> CompleteParams(const json& params) const override {
    if (!params.is_object()) return Error{fmt::format("must be an object, is {}", params.dump())};
    json complete = json::object();
    std::vector<std::string> names;
    for (const filterbench_knob& knob : Knobs()) {
      names.emplace_back(knob.name);
      complete[knob.name] = Value(knob, knob.initial);
    }
    for (const auto& [name, value] : params.items()) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end()) return Error{UnknownName("parameter", name, names)};
      const filterbench_knob& knob = Knobs()[static_cast<size_t>(found - names.begin())];
      const double number = value.is_number() ? value.get<double>() : NAN;
      if (!(number >= knob.low && number <= knob.high) ||
          (knob.whole != 0 && number != std::floor(number))) {
        return Error{fmt::format("{}: must be {} in {}..{}, is {}", name,
                                 knob.whole != 0 ? "a whole number" : "a number", knob.low,
                                 knob.high, value.dump())};
      }
      complete[name] = Value(knob, number);
    }
    return complete;
  }

  std::string Contradiction(const json&) const override { return {}; }

  Result<std::unique_ptr<BuiltFilter>> Build(const KeyStream& keys, const json& params,
                                             uint64_t seed) const override {
    return Made(keys.words.size(), [&](const double* values, char* reason) {
      return functions_.build(keys.words.data(), keys.words.size(), values, seed, reason);
    }, params);
  }
  Result<std::unique_ptr<BuiltFilter>> Create(uint64_t keys, const json& params,
                                              uint64_t seed) const override {
    return Made(0, [&](const double* values, char* reason) {
      return functions_.create(keys, values, seed, reason);
    }, params);
  }

 private:
  std::span<const filterbench_knob> Knobs() const {
    return {functions_.knobs, functions_.knob_count};
  }
  static json Value(const filterbench_knob& knob, double value) {
    // A whole number is written as one.
    return knob.whole != 0 ? json(static_cast<int64_t>(value)) : json(value);
  }

  template <class Make>
  Result<std::unique_ptr<BuiltFilter>> Made(uint64_t keys, const Make& make,
                                            const json& params) const {
    const Result<json> complete = CompleteParams(params);
    if (!complete) return Error{complete.error()};
    std::vector<double> values;
    for (const filterbench_knob& knob : Knobs()) {
      values.push_back((*complete)[knob.name].get<double>());
    }
    char reason[FILTERBENCH_REASON_BYTES] = "";
    void* filter = make(values.data(), reason);
    if (filter == nullptr) {
      reason[FILTERBENCH_REASON_BYTES - 1] = '\0';
      return Error{reason[0] != '\0' ? std::string(reason)
                                     : std::string("not built, and the plug-in gives no reason")};
    }
    return std::unique_ptr<BuiltFilter>(
        std::make_unique<PluginFilter>(&functions_, filter, keys));
  }

  Functions functions_;
  Description description_;
  FilterInfo info_;
};

bool IsSnakeCase(std::string_view name) {
  return !name.empty() && name.size() <= 36 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// What is wrong with the description of a filter; empty if nothing.
std::string WhatIsWrong(const Functions& filter) {
  if (!IsSnakeCase(Text(filter.name))) {
    return "name: must be 1 to 36 characters out of a-z, 0-9 and _";
  }
  if (Text(filter.summary).empty()) return "summary: is missing";
  if (filter.hash_bits < 1 || filter.hash_bits > 64) {
    return fmt::format("hash_bits: must be in 1..64, is {}", filter.hash_bits);
  }
  const std::pair<const char*, bool> needed[] = {
      {"build", filter.build != nullptr},
      {"destroy", filter.destroy != nullptr},
      {"may_contain", filter.may_contain != nullptr},
      {"size_in_bytes", filter.size_in_bytes != nullptr}};
  for (const auto& [name, there] : needed) {
    if (!there) return fmt::format("{}: is missing", name);
  }
  if ((filter.create == nullptr) != (filter.insert == nullptr)) {
    return "create, insert: one is there without the other";
  }
  if (filter.erase != nullptr && filter.insert == nullptr) return "erase: needs insert";
  constexpr size_t kMaxKnobs = 64;
  if (filter.knob_count > kMaxKnobs) {
    return fmt::format("knob_count: must be at most {}, is {}", kMaxKnobs, filter.knob_count);
  }
  if (filter.knob_count != 0 && filter.knobs == nullptr) return "knobs: is NULL";
  std::set<std::string> names;
  for (size_t i = 0; i < filter.knob_count; ++i) {
    const filterbench_knob& knob = filter.knobs[i];
    const std::string at = fmt::format("knobs[{}]", i);
    if (!IsSnakeCase(Text(knob.name))) return at + ".name: must be lower_snake_case";
    if (!names.insert(knob.name).second) return at + ".name: stands twice: " + knob.name;
    if (knob.meaning == nullptr || *knob.meaning == '\0') return at + ".meaning: is missing";
    if (!(knob.low <= knob.initial && knob.initial <= knob.high) || !std::isfinite(knob.low) ||
        !std::isfinite(knob.high)) {
      return at + ": needs low <= initial <= high, all finite";
    }
  }
  return {};
}

// Opens the library and reads its table; all filters of it, or the first thing that is wrong.
Result<std::vector<Functions>> ReadTable(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{fmt::format("cannot be loaded: {}", dlerror())};
  using Entry = const filterbench_plugin* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, "filterbench_plugin_entry"));
  if (entry == nullptr) {
    return Error{"is no plug-in: it has no function filterbench_plugin_entry"};
  }
  const filterbench_plugin* plugin = entry();
  if (plugin == nullptr) return Error{"filterbench_plugin_entry returned NULL"};
  if (plugin->abi != FILTERBENCH_PLUGIN_ABI) {
    return Error{fmt::format("abi: is {}, this program speaks {}", plugin->abi,
                             FILTERBENCH_PLUGIN_ABI)};
  }
  constexpr size_t kLeastBytes = offsetof(Functions, count_batched);
  if (plugin->filter_bytes < kLeastBytes) {
    return Error{fmt::format("filter_bytes: is {}, at least {} are needed", plugin->filter_bytes,
                             kLeastBytes)};
  }
  if (plugin->filter_count == 0 || plugin->filters == nullptr) return Error{"has no filters"};
  std::vector<Functions> filters;
  for (size_t i = 0; i < plugin->filter_count; ++i) {
    if (plugin->filters[i] == nullptr) return Error{fmt::format("filters[{}]: is NULL", i)};
    // Fields that the plug-in was compiled without are NULL.
    Functions& filter = filters.emplace_back();
    std::memcpy(&filter, plugin->filters[i],
                std::min<size_t>(plugin->filter_bytes, sizeof(Functions)));
    if (const std::string wrong = WhatIsWrong(filter); !wrong.empty()) {
      return Error{fmt::format("filters[{}].{}", i, wrong)};
    }
  }
  return filters;
}

}  // namespace

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
  std::string problem;
  const IsolatedResult tried = RunIsolated(
      {.silence_limit_seconds = kLoadSeconds},
      [&](const SendMessage& send) {
        const auto filters = ReadTable(file.string());
        send(filters ? std::string() : filters.error());
      },
      [&](std::string_view message) { problem = message; });
  if (tried.end != IsolatedEnd::kDone) return refuse("while it was loaded it " + tried.reason);
  if (!problem.empty()) return refuse(problem);

  const Result<std::vector<Functions>> filters = ReadTable(file.string());
  if (!filters) return refuse(filters.error());
  Plugin plugin{.path = path,
                .digest = fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size())),
                .types = {}};
  for (const Functions& filter : *filters) {
    plugin.types.push_back(std::make_unique<PluginType>(filter));
  }
  return plugin;
}

}  // namespace filterbench
