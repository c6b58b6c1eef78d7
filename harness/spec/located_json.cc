#include "harness/spec/located_json.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace filterbench {
namespace {

using nlohmann::json;

// Reads characters and counts the lines that went by. The parser copies its iterator, so the count
// lives with the owner.
class LineCountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  LineCountingIterator(const char* at, size_t* line) : at_(at), line_(line) {}
  reference operator*() const { return *at_; }
  LineCountingIterator& operator++() {
    if (*at_ == '\n') ++*line_;
    ++at_;
    return *this;
  }
  LineCountingIterator operator++(int) {
    LineCountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const LineCountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const LineCountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  size_t* line_;
};

// Notes the line of every value by its JSON pointer, and the first name that stands twice.
class LineRecorder : public json::json_sax_t {
 public:
  LineRecorder(const size_t* line, std::map<std::string, size_t, std::less<>>* line_of)
      : line_(line), line_of_(line_of) {}

  const std::string& duplicate() const { return duplicate_; }

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool start_object(std::size_t) override {
    Note();
    open_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    Level& level = open_.back();
    if (!level.names.insert(name).second && duplicate_.empty()) {
      level.token = name;
      duplicate_ = Pointer();
      line_of_->insert_or_assign(duplicate_, *line_);
    }
    level.token = name;
    Note();
    return true;
  }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override {
    Note();
    open_.emplace_back().is_array = true;
    return true;
  }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Level {
    bool is_array = false;
    size_t index = 0;
    std::string token;
    std::set<std::string> names;
  };

  std::string Pointer() const {
    std::string pointer;
    for (const Level& level : open_) {
      pointer += '/';
      pointer += level.is_array ? std::to_string(level.index) : level.token;
    }
    return pointer;
  }
  void Note() { line_of_->emplace(Pointer(), *line_); }
  void Advance() {
    if (!open_.empty() && open_.back().is_array) ++open_.back().index;
  }
  bool Value() {
    Note();
    Advance();
    return true;
  }
  bool Close() {
    open_.pop_back();
    Advance();
    return true;
  }

  const size_t* line_;
  std::map<std::string, size_t, std::less<>>* line_of_;
  std::vector<Level> open_;
  std::string duplicate_;
};

// "/sweeps/0/keys" as people write it: "sweeps[0].keys".
std::string FieldName(std::string_view pointer) {
  std::string name;
  size_t at = 1;
  while (at < pointer.size()) {
    const size_t end = std::min(pointer.find('/', at), pointer.size());
    const std::string_view token = pointer.substr(at, end - at);
    if (!token.empty() && token.find_first_not_of("0123456789") == std::string_view::npos) {
      name += fmt::format("[{}]", token);
    } else {
      if (!name.empty()) name += '.';
      name += token;
    }
    at = end + 1;
  }
  return name;
}

}  // namespace

Result<LocatedJson> LocatedJson::Parse(std::string_view text, std::string name) {
  LocatedJson located;
  located.name_ = std::move(name);
  // The parser recurses: what is nested deeper than any spec is refused before it sees it. Brackets
  // in strings and comments count too, which only makes the limit a little stricter.
  constexpr int kMaxDepth = 64;
  int depth = 0;
  size_t at_line = 1;
  for (const char c : text) {
    if (c == '\n') ++at_line;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxDepth) {
      return Error{fmt::format("{}:{}: nested deeper than {} levels", located.name_, at_line,
                               kMaxDepth)};
    }
  }
  // The parser takes a NUL for the end and would not see what follows.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(nul), '\n');
    return Error{fmt::format("{}:{}: not JSON: holds a NUL", located.name_, line)};
  }
  try {
    located.root_ = json::parse(text, nullptr, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: ...": the line goes first.
    const std::string_view what = error.what();
    const size_t line =
        1 + std::count(text.begin(), text.begin() + std::min(error.byte, text.size()), '\n');
    const size_t colon = what.find(": ");
    return Error{fmt::format("{}:{}: not JSON: {}", located.name_, line,
                             colon == what.npos ? what : what.substr(colon + 2))};
  } catch (const json::exception& error) {  // a number that no double holds
    return Error{fmt::format("{}:1: {}", located.name_, error.what())};
  }
  size_t line = 1;
  LineRecorder recorder(&line, &located.line_of_);
  json::sax_parse(LineCountingIterator(text.data(), &line),
                  LineCountingIterator(text.data() + text.size(), &line), &recorder,
                  json::input_format_t::json, /*strict=*/true, /*ignore_comments=*/true);
  if (!recorder.duplicate().empty()) {
    return located.At(recorder.duplicate(), "stands twice");
  }
  return located;
}

Result<LocatedJson> LocatedJson::ReadFile(const std::string& path) {
  constexpr uintmax_t kMaxBytes = uintmax_t{1} << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Error{fmt::format("{}: {}", path, error ? error.message() : "is not a regular file")};
  }
  const uintmax_t bytes = std::filesystem::file_size(path, error);
  if (bytes > kMaxBytes) {
    return Error{fmt::format("{}: has {} bytes, limit {}", path, bytes, kMaxBytes)};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{fmt::format("{}: {}", path, std::strerror(errno))};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return Parse(text, path);
}

Error LocatedJson::At(std::string_view pointer, std::string_view problem) const {
  const std::string field = FieldName(pointer);
  // A field that is missing is reported at the line of what should hold it.
  auto line = line_of_.find(pointer);
  while (line == line_of_.end() && !pointer.empty()) {
    pointer = pointer.substr(0, pointer.rfind('/'));
    line = line_of_.find(pointer);
  }
  return Error{fmt::format("{}:{}: {}{}{}", name_, line == line_of_.end() ? 1 : line->second, field,
                           field.empty() ? "" : ": ", problem)};
}

}  // namespace filterbench
