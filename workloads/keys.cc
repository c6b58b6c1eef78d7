#include "workloads/keys.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unordered_set>

#include <fmt/format.h>

namespace filterbench {
namespace {

constexpr size_t kMaxKeyBytes = 64 << 10;
constexpr uint64_t kGeneratedKeys = uint64_t{1} << 63;

// A bijection of the index for each seed.
uint64_t MixedId(uint64_t index, uint64_t seed) {
  return Mix64(index ^ Mix64(seed + kGoldenGamma));
}

// Fills `out` with a string that is a bijection of `id` in its first 8 bytes, as letters and digits
// would not be: byte strings of a store (hashes, encoded numbers) use all byte values.
void FillBytes(uint64_t id, char* out, size_t length) {
  uint64_t word = id;
  for (size_t at = 0; at < length; at += sizeof(word)) {
    std::memcpy(out + at, &word, std::min(sizeof(word), length - at));
    word = Mix64(word + kGoldenGamma);
  }
}

Result<std::string> ReadFile(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Error{fmt::format("{}: {}", path, error ? error.message() : "is not a regular file")};
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{fmt::format("{}: {}", path, std::strerror(errno))};
  try {
    std::string content{std::istreambuf_iterator<char>(file), {}};
    if (!file.bad()) return content;
  } catch (const std::ios_base::failure&) {  // how the library reports a read(2) that fails
  }
  return Error{fmt::format("{}: cannot be read", path)};
}

// Lines without their end (LF or CRLF); the end of the last line may be missing.
template <class Use>
void ForEachLine(std::string_view text, Use&& use) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    use(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

Result<KeySet> KeySet::Open(const KeySetSpec& spec, uint64_t seed) {
  KeySet set(spec, seed);
  if (spec.kind == KeyKind::kBytes && (spec.length_bytes < 8 || spec.length_bytes > 4096)) {
    return Error{fmt::format("length_bytes: must be in 8..4096, is {}", spec.length_bytes)};
  }
  if (spec.kind != KeyKind::kFile) return set;

  Result<std::string> content = ReadFile(spec.path);
  if (!content) return Error{content.error()};
  set.spec_.digest = fmt::format("{:016x}", HashBytes(*content, 0));
  if (!spec.digest.empty() && spec.digest != set.spec_.digest) {
    return Error{fmt::format("{}: has the digest {}, {} was expected", spec.path, set.spec_.digest,
                             spec.digest)};
  }
  std::vector<std::string_view> lines;
  std::unordered_set<std::string_view> seen;
  size_t number = 0;
  size_t too_long = 0;
  ForEachLine(*content, [&](std::string_view line) {
    ++number;
    if (line.size() > kMaxKeyBytes && too_long == 0) too_long = number;
    if (!line.empty() && seen.insert(line).second) lines.push_back(line);
  });
  if (too_long != 0) {
    return Error{fmt::format("{}:{}: a key of more than {} bytes", spec.path, too_long,
                             kMaxKeyBytes)};
  }
  if (lines.empty()) return Error{fmt::format("{}: has no keys (one key a line)", spec.path)};
  // Fisher and Yates's shuffle with a generator of our own: the same order with every library.
  for (size_t i = lines.size(); i > 1; --i) {
    std::swap(lines[i - 1], lines[FastRange64(Mix64(seed + i * kGoldenGamma), i)]);
  }
  ByteKeyArena arena;
  for (const std::string_view line : lines) arena.Append(line);
  set.lines_ = std::make_shared<const ByteKeyArena>(std::move(arena));
  return set;
}

uint64_t KeySet::size() const { return lines_ ? lines_->keys().size : kGeneratedKeys; }

uint64_t KeySet::U64(uint64_t index) const {
  // Sequential ids start where the seed says, far from the end of the range.
  if (spec_.kind == KeyKind::kSequential) return (Mix64(seed_) >> 2) + index;
  return MixedId(index, seed_);
}

void KeySet::AppendBytes(uint64_t index, ByteKeyArena& arena) const {
  if (lines_) {
    arena.Append(lines_->keys()[index]);
    return;
  }
  char buffer[4096];
  FillBytes(MixedId(index, seed_), buffer, spec_.length_bytes);
  arena.Append({buffer, spec_.length_bytes});
}

uint64_t KeySet::Hash(uint64_t index, uint64_t hash_seed) const {
  if (!is_bytes()) return HashU64(U64(index), hash_seed);
  if (lines_) return HashBytes(lines_->keys()[index], hash_seed);
  char buffer[4096];
  FillBytes(MixedId(index, seed_), buffer, spec_.length_bytes);
  return HashBytes({buffer, spec_.length_bytes}, hash_seed);
}

}  // namespace filterbench
