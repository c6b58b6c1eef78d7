// Tables of plug-ins that say anything of themselves: refused with a reason, or filter types that
// can be listed and asked for parameters. Nothing is loaded or built.

#include "harness/registry/plugin.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/fuzzer.h"
#include "filters/plugin/abi.h"
#include "harness/registry/plugin_table.h"

namespace filterbench {
namespace {

using nlohmann::json;

// A table, in memory of just its size.
class AnyTable {
 public:
  explicit AnyTable(FuzzInput& input) {
    const uint8_t odd = input.Number<uint8_t>();  // what may be wrong with the outermost struct
    table_.abi = odd == 1 ? input.Number<uint32_t>() : FILTERBENCH_PLUGIN_ABI;
    table_.filter_bytes =
        odd == 2 ? input.Number<uint16_t>() : sizeof(filterbench_plugin_filter);
    const size_t count = input.InRange(0, 3);
    for (size_t i = 0; i < count; ++i) {
      pointers_.push_back(input.Number<uint8_t>() == 1 ? nullptr : AddFilter(input));
    }
    table_.filters = pointers_.empty() ? nullptr : pointers_.data();
    table_.filter_count = odd == 3 ? (size_t{1} << 32) + input.Number<uint32_t>() : count;
  }
  const filterbench_plugin* get() const { return &table_; }

 private:
  const filterbench_plugin_filter* AddFilter(FuzzInput& input) {
    filterbench_plugin_filter filter = {};
    filter.name = AddText(input);
    filter.summary = AddText(input);
    filter.source = AddText(input);
    filter.fpr_formula = AddText(input);
    filter.hash_bits = static_cast<int8_t>(input.Number<uint8_t>());
    const uint8_t there = input.Number<uint8_t>();
    const size_t knobs = input.InRange(0, 66);
    filter.knob_count = there == 255 ? SIZE_MAX - knobs : knobs;
    auto& list = knobs_.emplace_back();
    for (size_t i = 0; i < knobs && !input.empty(); ++i) {
      filterbench_knob& knob = list.emplace_back();
      knob.name = AddText(input);
      knob.meaning = AddText(input);
      for (double* bound : {&knob.low, &knob.high, &knob.initial}) {
        *bound = input.Number<uint8_t>() % 2 == 0
                     ? static_cast<double>(input.Number<uint8_t>())
                     : std::bit_cast<double>(input.Number<uint64_t>());
      }
      knob.whole = input.Number<uint8_t>();
    }
    if (filter.knob_count <= 66) filter.knob_count = list.size();
    list.shrink_to_fit();
    filter.knobs = list.empty() ? nullptr : list.data();
    // Functions are there or not; none is called.
    const uint16_t functions = input.Number<uint16_t>();
    void (*somewhere)() = [] {};
    const auto set = [&](auto& function, int bit) {
      if (functions >> bit & 1) return;
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(somewhere);
    };
    set(filter.build, 0);
    set(filter.destroy, 1);
    set(filter.may_contain, 2);
    set(filter.size_in_bytes, 3);
    set(filter.count_batched, 4);
    set(filter.create, 5);
    set(filter.insert, 6);
    set(filter.erase, 7);
    set(filter.expected_fpr, 8);

    const size_t bytes = std::min<size_t>(table_.filter_bytes, sizeof(filter));
    auto& memory = memory_.emplace_back(new std::byte[bytes]);
    std::memcpy(memory.get(), &filter, bytes);
    return reinterpret_cast<const filterbench_plugin_filter*>(memory.get());
  }

  // Null, or text up to a zero.
  const char* AddText(FuzzInput& input) {
    const uint8_t length = input.Number<uint8_t>();
    if (length == 255) return nullptr;
    const size_t repeats = length >= 250 ? 100 : 1;  // longer than a line may be
    std::string& text = texts_.emplace_back();
    const std::string once(FuzzText(input.Bytes(length % 64)));
    for (size_t i = 0; i < repeats; ++i) text += once;
    text.shrink_to_fit();
    return text.c_str();
  }

  filterbench_plugin table_ = {};
  std::vector<const filterbench_plugin_filter*> pointers_;
  std::list<std::unique_ptr<std::byte[]>> memory_;
  std::list<std::vector<filterbench_knob>> knobs_;
  std::list<std::string> texts_;
};

// What is accepted goes through a pipe and back, and is a type that can be listed.
void UseFilters(const std::vector<PluginFilterDescription>& filters, const json& params) {
  json list = json::array();
  for (const PluginFilterDescription& filter : filters) list.push_back(PluginFilterToJson(filter));
  const auto read = PluginFiltersFromJson(json::parse(list.dump()));
  FuzzRequire(read && *read == filters, "does not come back from the pipe");
  for (const auto& type : PluginTypes("/nowhere", filters)) {
    FuzzRequire(!type->info().name.empty() && !type->info().summary.empty(), "info");
    const Result<json> defaults = type->CompleteParams(json::object());
    FuzzRequire(defaults.has_value(), "refuses its own defaults");
    const Result<json> again = type->CompleteParams(*defaults);
    FuzzRequire(again && *again == *defaults, "its defaults are others the second time");
    for (const KnobInfo& knob : type->knobs()) {
      FuzzRequire(!knob.low.dump().empty() && knob.low <= knob.default_value &&
                      knob.default_value <= knob.high,
                  "bounds of a knob");
      const Result<json> one = type->CompleteParams({{knob.name, params}});
      FuzzRequire(one || one.error().starts_with(knob.name), "the error names no knob");
    }
    (void)type->CompleteParams(params);
    (void)type->targets();
  }
}

}  // namespace
}  // namespace filterbench

FILTERBENCH_FUZZER(Plugin) {
  FuzzInput rest(input);
  const bool as_json = rest.Number<uint8_t>() % 2 == 1;
  if (as_json) {
    const json document = json::parse(FuzzText(rest.rest()), nullptr, false);
    const auto filters = PluginFiltersFromJson(document);
    if (filters) {
      UseFilters(*filters, document.back());
    } else {
      FuzzRequire(!filters.error().empty(), "no reason");
    }
    return;
  }
  const AnyTable table(rest);
  const auto filters = CheckPluginTable(table.get());
  if (!filters) {
    FuzzRequire(!filters.error().empty(), "no reason");
    return;
  }
  std::vector<PluginFilterDescription> descriptions;
  for (const auto& filter : *filters) descriptions.push_back(DescribePluginFilter(filter));
  const json params = json::parse(FuzzText(rest.rest()), nullptr, false);
  UseFilters(descriptions, params.is_discarded() ? json(0.5) : params);
}
