#include "harness/commands/explain.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "filters/result.h"
#include "harness/explain/draw.h"
#include "harness/explain/examples.h"
#include "harness/explain/probes.h"
#include "harness/explain/scene.h"
#include "harness/explain/show_key.h"

namespace filterbench {
namespace {

using nlohmann::json;

struct ExplainOptions {
  std::optional<std::string> example;
  std::optional<std::string> bits;
  std::optional<std::string> k;
  std::optional<std::string> hash;
  std::vector<std::string> add;
  std::vector<std::string> ask;
  std::vector<std::string> remove;
  std::vector<std::string> positions;
  std::optional<std::string> width;
  bool as_json = false;

  bool names_no_scene() const {
    return !example && !bits && !k && !hash && add.empty() && ask.empty() && remove.empty() &&
           positions.empty();
  }
};

// A whole number and nothing else.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stop != end) return std::nullopt;
  return value;
}

Result<uint64_t> ReadNumber(std::string_view option, const std::optional<std::string>& text,
                            uint64_t otherwise, uint64_t low, uint64_t high) {
  if (!text) return otherwise;
  const std::optional<uint64_t> value = ParseNumber(*text);
  if (value && *value >= low && *value <= high) return *value;
  return Error{fmt::format("{} {}: must be a whole number of {}..{}", option,
                           explain::ShowKey(*text), low, high)};
}

Error NoneOf(std::string_view option, std::string_view name,
             const std::vector<std::string_view>& names) {
  return Error{fmt::format("{} {}: must be one of {}", option, explain::ShowKey(name),
                           fmt::join(names, ", "))};
}

Result<explain::Hashing> ReadHashing(const std::string& name) {
  std::vector<std::string_view> names;
  for (const std::string_view known : explain::kHashingNames) {
    const auto hashing = static_cast<explain::Hashing>(names.size());
    if (hashing == explain::Hashing::kByHand) continue;
    if (known == name) return hashing;
    names.push_back(known);
  }
  return NoneOf("--hash", name, names);
}

// KEY=a,b,c; the key may hold further equals signs.
std::optional<Error> ReadPositions(const std::string& text, explain::PositionsByHand& by_hand) {
  const auto refuse = [&](std::string_view why) {
    return Error{fmt::format("--positions {}: {}: must be KEY=a,b,c with a whole number per probe",
                             explain::ShowKey(text), why)};
  };
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos) return refuse("has no =");
  std::vector<uint64_t> positions;
  std::string_view rest = std::string_view(text).substr(equals + 1);
  while (true) {
    const size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, comma);
    const std::optional<uint64_t> position = ParseNumber(item);
    if (!position) {
      return refuse(explain::ShowKey(item) + " is no position");
    }
    positions.push_back(*position);
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  const std::string key = text.substr(0, equals);
  if (!by_hand.emplace(key, std::move(positions)).second) {
    return Error{fmt::format("--positions: those of {} are given twice",
                             explain::ShowKey(key))};
  }
  return std::nullopt;
}

// The example or an empty filter, changed by the other options.
Result<explain::Request> ReadRequest(const ExplainOptions& options) {
  explain::Request request;
  if (options.example) {
    const explain::Example* example = explain::FindExample(*options.example);
    if (example == nullptr) {
      return NoneOf("--example", *options.example, explain::ExampleNames());
    }
    request = example->request;
  }
  explain::Shape& shape = request.shape;
  const Result<uint64_t> bits = ReadNumber("--m", options.bits, shape.bits, 1, explain::kMaxBits);
  if (!bits) return Error{bits.error()};
  const Result<uint64_t> k = ReadNumber("--k", options.k, shape.k, 1, explain::kMaxProbes);
  if (!k) return Error{k.error()};
  shape.bits = *bits;
  shape.k = static_cast<uint32_t>(*k);
  if (options.hash) {
    const Result<explain::Hashing> hashing = ReadHashing(*options.hash);
    if (!hashing) return Error{hashing.error()};
    if (!options.positions.empty()) {
      return Error{"--hash and --positions: either a hash function gives the positions or you do"};
    }
    shape.hashing = *hashing;
    request.by_hand.clear();
  }
  if (!options.positions.empty()) {
    shape.hashing = explain::Hashing::kByHand;
    explain::PositionsByHand given;
    for (const std::string& text : options.positions) {
      if (auto error = ReadPositions(text, given)) return *error;
    }
    given.merge(request.by_hand);
    request.by_hand = std::move(given);
  }
  const auto append = [](std::vector<std::string>& keys, const std::vector<std::string>& more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  append(request.add, options.add);
  append(request.remove, options.remove);
  append(request.ask, options.ask);
  return request;
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Of the terminal, as far as it is known; what is too narrow or too wide is brought to the limit.
size_t TerminalWidth() {
  constexpr size_t kUnknownWidth = 80;
  size_t width = kUnknownWidth;
  winsize size{};
  if (const auto columns = ParseNumber(Variable("COLUMNS")); columns && *columns > 0) {
    width = *columns;
  } else if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  }
  return std::clamp(width, explain::kMinWidth, explain::kMaxWidth);
}

// Whether the user's locale, which this program does not set, writes UTF-8.
bool IsUtf8Locale() {
  const locale_t user = newlocale(LC_CTYPE_MASK, "", nullptr);
  if (user == nullptr) return false;
  const bool is_utf8 = std::string_view(nl_langinfo_l(CODESET, user)) == "UTF-8";
  freelocale(user);
  return is_utf8;
}

bool IsColourWanted() {
  return isatty(STDOUT_FILENO) != 0 && Variable("NO_COLOR").empty() && Variable("TERM") != "dumb";
}

int Explain(const ExplainOptions& options) {
  const Result<uint64_t> width = ReadNumber("--width", options.width, TerminalWidth(),
                                            explain::kMinWidth, explain::kMaxWidth);
  if (!width) return Complain("explain: " + width.error(), kExitUsage);
  std::vector<explain::Request> requests;
  if (options.names_no_scene()) {
    for (const explain::Example& example : explain::Examples()) {
      if (example.in_tour) requests.push_back(example.request);
    }
  } else {
    Result<explain::Request> request = ReadRequest(options);
    if (!request) return Complain("explain: " + request.error(), kExitUsage);
    requests.push_back(std::move(*request));
  }

  const explain::Look look{.width = *width, .colour = IsColourWanted(), .utf8 = IsUtf8Locale()};
  std::string text;
  json scenes = json::array();
  for (const explain::Request& request : requests) {
    const Result<explain::Scene> scene = explain::Explain(request);
    if (!scene) return Complain("explain: " + scene.error(), kExitUsage);
    if (options.as_json) {
      scenes.push_back(SceneToJson(*scene));
    } else {
      text += (text.empty() ? "" : "\n\n") + Draw(*scene, look);
    }
  }
  fmt::print("{}", options.as_json ? json{{"scenes", scenes}}.dump(2) + "\n" : text);
  return kExitOk;
}

}  // namespace

void AddExplain(CommandLine& line) {
  const auto options = std::make_shared<ExplainOptions>();
  CLI::App* explain = line.app.add_subcommand(
      "explain", "Show a small Bloom filter bit by bit: why it says no or maybe, and when it lies");
  // As they were given: CLI11 would take a key in brackets for a list and an empty one for none.
  const auto add_text = [&](const char* name, std::optional<std::string>& value,
                            const char* type, const std::string& help) {
    explain
        ->add_option(name, CLI::callback_t([&value](const CLI::results_t& given) {
                       value = given.back();
                       return true;
                     }),
                     help)
        ->type_name(type);
  };
  const auto add_keys = [&](const char* name, std::vector<std::string>& keys, const char* type,
                            const std::string& help) {
    explain
        ->add_option(name, CLI::callback_t([&keys](const CLI::results_t& given) {
                       keys = given;
                       return true;
                     }),
                     help + "; may be given again")
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  add_text("--m", options->bits, "BITS",
           fmt::format("Bits of the filter, 1..{}; 64 by itself", explain::kMaxBits));
  add_text("--k", options->k, "PROBES",
           fmt::format("Bits per key, 1..{}; 3 by itself", explain::kMaxProbes));
  add_text("--hash", options->hash, "NAME",
           "xxh3 (as classic_bloom, by itself), km (as km_bloom) or md5 (windows of one digest)");
  add_keys("--add", options->add, "KEY", "Add this key");
  add_keys("--remove", options->remove, "KEY", "Then clear the bits of this key");
  add_keys("--ask", options->ask, "KEY", "Then ask for this key");
  add_keys("--positions", options->positions, "KEY=a,b,c",
           "The bits of a key, by hand in place of a hash function");
  add_text("--example", options->example, "NAME",
           fmt::format("Begin with an example, to which the other options add: {}; without any "
                       "option, a tour of them",
                       fmt::join(explain::ExampleNames(), ", ")));
  add_text("--width", options->width, "COLUMNS",
           fmt::format("Columns to draw in, {}..{}; those of the terminal by itself, 80 without",
                       explain::kMinWidth, explain::kMaxWidth));
  explain->add_flag("--json", options->as_json, "The same facts as JSON");
  explain->callback([&line, options] { line.exit_code = Explain(*options); });
}

}  // namespace filterbench
