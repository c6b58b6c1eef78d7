#include "harness/explain/draw.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "harness/explain/show_key.h"

namespace filterbench::explain {
namespace {

constexpr size_t kWidestProse = 100;  // columns that are still easy to read
constexpr size_t kMaxListed = 12;     // numbers or names in one sentence
constexpr uint64_t kMaxDrawnBits = 4096;
constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr char kManyKeys = '#';  // of those after the letters
constexpr char kShared = '*';
constexpr char kUnset = '.';

constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kRed = "\033[31m";
constexpr std::string_view kGreen = "\033[32m";
constexpr std::string_view kPlain = "\033[0m";

// Of a change of colour at the front of `text`.
size_t EscapeBytes(std::string_view text) { return text.substr(0, text.find('m')).size() + 1; }

// Columns that a text takes without its colours; characters from U+1100 on count as wide ones,
// which some are.
size_t Columns(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    if (text[0] == '\033') {
      text.remove_prefix(EscapeBytes(text));
      continue;
    }
    const CodePoint c = Decode(text).value_or(CodePoint{'?', 1});
    columns += c.value >= 0x1100 ? 2 : 1;
    text.remove_prefix(c.bytes);
  }
  return columns;
}

std::string Percent(double share) { return fmt::format("{:.3g} %", share * 100); }

std::string PlainCount(uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// "2, 14 and 27".
std::string List(const std::vector<std::string>& items) {
  std::string text;
  const size_t shown = std::min(items.size(), kMaxListed);
  const size_t rest = items.size() - shown;
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  if (rest > 0) text += fmt::format(" and {} more", rest);
  return text;
}

std::string List(std::span<const uint64_t> numbers) {
  std::vector<std::string> items;
  for (const uint64_t number : numbers) items.push_back(fmt::format("{}", number));
  return List(items);
}

std::string Bits(std::span<const uint64_t> positions) {
  return fmt::format("{} {}", positions.size() == 1 ? "bit" : "bits", List(positions));
}

class Drawing {
 public:
  Drawing(const Scene& scene, const Look& look)
      : scene_(scene),
        look_(look),
        prose_width_(std::min(look.width, kWidestProse)) {
    NameKeys();
    ChooseRow();
  }

  std::string Draw() {
    const Request& request = scene_.request;
    if (!request.title.empty()) {
      Prose(Paint(request.title, kBold));
      text_ += std::string(std::min(Columns(request.title), look_.width), '-') + "\n";
    }
    if (!request.lead.empty()) Prose(request.lead);
    Prose(fmt::format("m = {} bits, k = {}; hash: {}", scene_.bits.size(),
                      PlainCount(request.shape.k, "probe", "probes"), HashingText()));
    // A filter that only saturates is drawn by its fill.
    if (scene_.saturation.empty() || !scene_.added.empty() || !scene_.asked.empty()) {
      DrawAdded();
      DrawTable(scene_.bits_before_removal);
      DrawRemoved();
      for (const AskedKey& key : scene_.asked) DrawAsked(key);
      DrawRates();
    }
    DrawSaturation();
    return std::move(text_);
  }

 private:
  std::string Paint(std::string_view text, std::string_view style) const {
    if (!look_.colour) return std::string(text);
    return fmt::format("{}{}{}", style, text, kPlain);
  }

  std::string Key(std::string_view key) const { return ShowKey(key, look_.utf8); }

  std::vector<std::string> Keys(const std::vector<std::string>& keys) const {
    std::vector<std::string> shown;
    for (const std::string& key : keys) shown.push_back(Key(key));
    return shown;
  }

  std::string_view HashingText() const {
    switch (scene_.request.shape.hashing) {
      case Hashing::kXxh3: return "xxh3, k independent hash functions (as classic_bloom)";
      case Hashing::kKm: return "km, double hashing from one XXH3 hash (as km_bloom)";
      case Hashing::kMd5: return "md5, one digest cut into 4-byte little-endian windows, mod m";
      case Hashing::kByHand: return "none, positions are given by hand";
    }
    return "";
  }

  // Lines of at most the width of prose, broken at blanks, and anywhere in words that are longer.
  // Lines after the first are indented by `hang`.
  void Prose(std::string_view prose, size_t indent = 0, size_t hang = 0) {
    std::string line(indent, ' ');
    bool has_word = false;
    const auto end_line = [&] {
      text_ += line + "\n";
      line.assign(hang, ' ');
      has_word = false;
    };
    while (!prose.empty()) {
      size_t end = std::min(prose.find(' '), prose.size());
      // A number and its unit stay together.
      if (prose.substr(end).starts_with(" %")) {
        end = std::min(prose.find(' ', end + 1), prose.size());
      }
      std::string_view word = prose.substr(0, end);
      prose.remove_prefix(std::min(end + 1, prose.size()));
      if (has_word && Columns(line) + 1 + Columns(word) > prose_width_) end_line();
      if (has_word) line += ' ';
      while (Columns(line) + Columns(word) > prose_width_) {
        size_t cut = 0;
        while (Columns(line) + Columns(word.substr(0, cut + Step(word, cut))) <= prose_width_) {
          cut += Step(word, cut);
        }
        line += word.substr(0, cut);
        word.remove_prefix(cut);
        end_line();
      }
      line += word;
      has_word = true;
    }
    text_ += line + "\n";
  }

  // Bytes that must not be parted.
  static size_t Step(std::string_view word, size_t at) {
    if (word[at] == '\033') return EscapeBytes(word.substr(at));
    return Decode(word.substr(at)).value_or(CodePoint{'?', 1}).bytes;
  }

  // Every added key gets a letter; keys after the last letter share one.
  void NameKeys() {
    size_t names = 0;
    for (const AddedKey& key : scene_.added) {
      letters_.push_back(key.again ? kManyKeys : Letter(names));
      names += key.again ? 0 : 1;
    }
  }
  static char Letter(size_t name) { return name < kLetters.size() ? kLetters[name] : kManyKeys; }

  // The most bits that fit into a line, in groups of eight.
  void ChooseRow() {
    index_width_ = fmt::format("{}", scene_.bits.size() - 1).size();
    for (row_bits_ = 64; row_bits_ > 8; row_bits_ /= 2) {
      if (index_width_ + 2 + row_bits_ + row_bits_ / 8 - 1 <= look_.width) break;
    }
  }

  char Symbol(const std::vector<bool>& bits, uint64_t position) const {
    if (!bits[position]) return kUnset;
    const std::vector<uint64_t>& setters = scene_.setters[position];
    return setters.size() == 1 ? letters_[setters.front()] : kShared;
  }

  // One line of the array that begins with `first`; `symbol` gives the character of a position.
  template <class SymbolOf>
  void Row(std::string_view label, uint64_t first, const SymbolOf& symbol) {
    text_ += fmt::format("{:>{}}  ", label, index_width_);
    const uint64_t end = std::min<uint64_t>(first + row_bits_, scene_.bits.size());
    std::string line;
    for (uint64_t i = first; i < end; ++i) {
      if (i > first && i % 8 == 0) line += ' ';
      line += symbol(i);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text_ += line + "\n";
  }

  std::string BitSymbol(const std::vector<bool>& bits, uint64_t position) const {
    const char symbol = Symbol(bits, position);
    const std::string text(1, symbol);
    return symbol == kUnset ? text : Paint(text, kBold);
  }

  // Where each row begins stands on its left; the first line tells the others.
  void Heading() {
    text_ += std::string(index_width_ + 2, ' ');
    std::string line;
    for (uint64_t i = 0; i < row_bits_ && i < scene_.bits.size(); i += 8) {
      line += fmt::format("+{:<8}", i);
    }
    while (line.back() == ' ') line.pop_back();
    text_ += line + "\n";
  }

  void DrawAdded() {
    if (scene_.added.empty()) {
      Prose("No key is added.");
      return;
    }
    text_ += "\n";
    constexpr size_t kMaxKeys = 64;
    for (size_t i = 0; i < std::min(scene_.added.size(), kMaxKeys); ++i) {
      const AddedKey& key = scene_.added[i];
      std::string line;
      if (key.again) {
        line = fmt::format("  {} is added again: its bits are set already", Key(key.key));
      } else {
        line = fmt::format("{} {} sets {}{}", letters_[i], Key(key.key), Windows(key.key),
                           Bits(key.positions));
        if (key.newly_set.size() < key.positions.size()) {
          line += key.newly_set.empty() ? "; all were set already"
                                        : fmt::format("; new: {}", List(key.newly_set));
        }
      }
      Prose(line, 0, 4);
    }
    if (scene_.added.size() > kMaxKeys) {
      Prose(fmt::format("and {} more", scene_.added.size() - kMaxKeys), 2, 4);
    }
  }

  // The digest as it is cut; empty for other hash functions.
  std::string Windows(const std::string& key) const {
    if (scene_.request.shape.hashing != Hashing::kMd5) return "";
    const std::string hex = Md5Hex(key);
    std::string text = "by MD5";
    for (size_t i = 0; i < hex.size(); i += 8) text += " " + hex.substr(i, 8);
    return text + " ";
  }

  void DrawTable(const std::vector<bool>& bits) {
    text_ += "\n";
    if (bits.size() > kMaxDrawnBits) {
      DrawDensity(bits);
      return;
    }
    Heading();
    for (uint64_t first = 0; first < bits.size(); first += row_bits_) DrawRow(bits, first);
    DrawShared(bits);
  }

  void DrawRow(const std::vector<bool>& bits, uint64_t first) {
    Row(fmt::format("{}", first), first, [&](uint64_t i) { return BitSymbol(bits, i); });
  }

  // Where one character per bit is too much: each row tells how many of its bits are set.
  void DrawDensity(const std::vector<bool>& table) {
    const uint64_t bits = table.size();
    constexpr uint64_t kRows = 32;
    const uint64_t row = (bits + kRows - 1) / kRows;
    Prose(fmt::format("{} bits are too many to draw: set bits of each {}.", bits, row));
    const size_t count_width = fmt::format("{}", row).size();
    const size_t used = index_width_ + count_width + 4;
    const size_t bar = std::min<size_t>(50, look_.width > used ? look_.width - used : 0);
    for (uint64_t first = 0; first < bits; first += row) {
      const uint64_t end = std::min(bits, first + row);
      const auto count = static_cast<uint64_t>(
          std::count(table.begin() + first, table.begin() + end, true));
      const auto length = static_cast<size_t>(bar * count / (end - first));
      text_ += fmt::format("{:>{}}  {:>{}}", first, index_width_, count, count_width);
      if (length > 0) text_ += "  " + std::string(length, '#');
      text_ += "\n";
    }
  }

  void DrawShared(const std::vector<bool>& bits) {
    std::string shared;
    size_t count = 0;
    for (uint64_t i = 0; i < bits.size(); ++i) {
      if (!bits[i] || scene_.setters[i].size() < 2) continue;
      if (++count > kMaxListed) continue;
      std::vector<std::string> keys;
      for (const uint64_t setter : scene_.setters[i]) keys.push_back(scene_.added[setter].key);
      shared += fmt::format("{}bit {} by {}", count > 1 ? "; " : "", i, List(Keys(keys)));
    }
    if (count == 0) return;
    if (count > kMaxListed) shared += fmt::format("; and {} bits more", count - kMaxListed);
    Prose(fmt::format("{} set by several keys: {}", kShared, shared), 0, 4);
  }

  void DrawRemoved() {
    for (const RemovedKey& key : scene_.removed) {
      text_ += "\n";
      std::string line = fmt::format("Removing {} clears {}{}.", Key(key.key),
                                     key.cleared.empty() ? "no bit" : Bits(key.cleared),
                                     key.was_added ? "" : ", though it was never added");
      if (key.broken.empty()) line += " No other key loses a bit this time.";
      Prose(line);
      for (const BrokenKey& broken : key.broken) {
        Prose(fmt::format("{} {} needs {} too and now answers no: a false negative.",
                          Paint("BROKEN:", kRed), Key(broken.key), Bits(broken.missing)),
              2, 4);
      }
    }
    if (scene_.removed.empty()) return;
    DrawTable(scene_.bits);
    text_ += "\n";
    Prose("A bit does not know how many keys set it: a plain Bloom filter cannot delete. Counters "
          "in place of bits can (counting_bloom).");
  }

  void DrawAsked(const AskedKey& key) {
    text_ += "\n";
    std::vector<uint64_t> positions;
    for (const AskedPosition& probe : key.probes) positions.push_back(probe.position);
    const std::string answer = key.maybe() ? "maybe" : "no";
    Prose(fmt::format("{} asks {}{}: {}", Key(key.key), Windows(key.key), Bits(positions),
                      Paint(answer, key.maybe() ? kGreen : kRed)),
          0, 4);
    if (scene_.bits.size() <= kMaxDrawnBits) DrawProbes(key);
    Prose(Why(key), 2, 2);
  }

  // The rows that hold the asked bits, with a mark below each.
  void DrawProbes(const AskedKey& key) {
    std::map<uint64_t, bool> set_at;
    for (const AskedPosition& probe : key.probes) set_at[probe.position] = probe.set;
    std::set<uint64_t> rows;
    for (const auto& [position, set] : set_at) rows.insert(position / row_bits_ * row_bits_);
    for (const uint64_t first : rows) {
      DrawRow(scene_.bits, first);
      Row("", first, [&](uint64_t i) -> std::string {
        const auto probe = set_at.find(i);
        if (probe == set_at.end()) return " ";
        return probe->second ? Paint("^", kGreen) : Paint("0", kRed);
      });
    }
  }

  std::string Why(const AskedKey& key) const {
    if (!key.maybe()) {
      std::string why = fmt::format("No, since {} {} not set", Bits(key.unset),
                                    key.unset.size() == 1 ? "is" : "are");
      if (key.verdict == Verdict::kFalseNegative) {
        return why + fmt::format(": but {} was added. A false negative, which deleting caused.",
                                 Key(key.key));
      }
      const std::string_view them = key.unset.size() == 1 ? "it" : "them";
      return why + (WasRemoved(key.key)
                        ? fmt::format(": removing {} cleared {}.", Key(key.key), them)
                        : fmt::format(": a key that was added would have set {}.", them));
    }
    std::string why = "Maybe, since all its bits are set:";
    std::set<uint64_t> told;
    std::vector<std::string> parts;
    for (const AskedPosition& probe : key.probes) {
      if (!told.insert(probe.position).second) continue;
      parts.push_back(fmt::format("{} by {}", probe.position, List(Keys(probe.keys))));
    }
    why += " " + List(parts) + ".";
    return why + (key.verdict == Verdict::kTruePositive
                      ? " It was added: a true positive."
                      : fmt::format(" But {} {}: a false positive.", Key(key.key),
                                    WasRemoved(key.key) ? "was removed" : "was never added"));
  }

  bool WasRemoved(const std::string& key) const {
    return std::any_of(scene_.removed.begin(), scene_.removed.end(),
                       [&](const RemovedKey& removed) {
                         return removed.key == key && removed.was_added;
                       });
  }

  static std::string MeasuredText(const MeasuredFpr& measured) {
    return fmt::format("{} ({:.0f} % interval {} to {}; {} of {} absent keys)",
                       Percent(measured.rate), measured.interval.confidence * 100,
                       Percent(measured.interval.low), Percent(measured.interval.high),
                       measured.false_positives, measured.absent_keys);
  }

  void DrawRates() {
    text_ += "\n";
    Prose(fmt::format("Fill: {} of {} bits set, {}, by {}", scene_.set_bits, scene_.bits.size(),
                      Percent(scene_.fill()), PlainCount(scene_.distinct_keys, "key", "keys")),
          0, 4);
    Prose(scene_.expected_fpr
              ? fmt::format("Expected FPR: {} on average over such filters{} (standard deviation "
                            "{})",
                            Percent(scene_.expected_fpr->mean),
                            scene_.request.shape.hashing == Hashing::kByHand
                                ? " with random positions"
                                : "",
                            Percent(scene_.expected_fpr->instance_sd))
              : "Expected FPR: unknown: " + scene_.expected_fpr.error(),
          0, 4);
    Prose(scene_.measured_fpr ? "Measured FPR: " + MeasuredText(*scene_.measured_fpr)
                              : "Measured FPR: unknown: " + scene_.measured_fpr.error(),
          0, 4);
  }

  void DrawSaturation() {
    if (scene_.saturation.empty()) return;
    text_ += "\n";
    Prose(fmt::format("Saturation: more and more keys in the same {} bits; FPR measured with {} "
                      "absent keys each.",
                      scene_.bits.size(), scene_.saturation.front().measured.absent_keys));
    const auto row = [&](std::string_view keys, std::string_view fill, std::string_view expected,
                         std::string_view measured, std::string_view interval) {
      std::string line = fmt::format("{:>7} {:>7} {:>10} {:>10}", keys, fill, expected, measured);
      constexpr size_t kWithInterval = 60;
      if (look_.width >= kWithInterval) line += fmt::format("  {}", interval);
      return line;
    };
    if (look_.width < 40) {
      for (const SaturationRow& point : scene_.saturation) {
        Prose(fmt::format("{}: fill {}, FPR {}", PlainCount(point.keys, "key", "keys"),
                          Percent(Fill(point)), Percent(point.measured.rate)),
              0, 4);
      }
    } else {
      text_ += row("keys", "fill", "expected", "measured", "interval") + "\n";
      for (const SaturationRow& point : scene_.saturation) {
        const Interval& interval = point.measured.interval;
        text_ += row(fmt::format("{}", point.keys), Percent(Fill(point)),
                     point.expected ? Percent(point.expected->mean) : "unknown",
                     Percent(point.measured.rate),
                     fmt::format("{:.3g} to {}", interval.low * 100, Percent(interval.high))) +
                 "\n";
      }
    }
    Prose("A Bloom filter never refuses a key. It fills up, and in the end says maybe to all.");
  }

  double Fill(const SaturationRow& row) const {
    return static_cast<double>(row.set_bits) / static_cast<double>(scene_.bits.size());
  }

  const Scene& scene_;
  const Look& look_;
  size_t prose_width_;
  size_t index_width_ = 0;
  uint64_t row_bits_ = 0;
  std::string letters_;  // of scene_.added
  std::string text_;
};

}  // namespace

std::string Draw(const Scene& scene, const Look& look) { return Drawing(scene, look).Draw(); }

}  // namespace filterbench::explain
