#include "harness/machine/table_pages.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace filterbench {
namespace {

using Bytes = Fact<uint64_t>;

constexpr std::string_view kSmaps = "/proc/self/smaps";

// One entry of smaps. Nothing: the line is not there.
struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::optional<uint64_t> page_bytes;
  std::optional<uint64_t> transparent_bytes;
  std::optional<uint64_t> reserved_bytes;
  std::optional<bool> is_marked_transparent;  // by madvise
  std::optional<bool> is_reserved;
};

// "7f00-7f10 rw-p ...": the head of an entry.
std::optional<Mapping> ParseHead(std::string_view line) {
  const std::string_view range = line.substr(0, line.find(' '));
  const size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> begin = ParseInteger(range.substr(0, dash), 16);
  const std::optional<int64_t> end = ParseInteger(range.substr(dash + 1), 16);
  if (!begin || !end || *begin < 0 || *end < *begin) return std::nullopt;
  Mapping mapping;
  mapping.begin = static_cast<uint64_t>(*begin);
  mapping.end = static_cast<uint64_t>(*end);
  return mapping;
}

void ParseField(std::string_view line, Mapping& mapping) {
  const std::vector<std::string_view> words = SplitAtBlanks(line);
  if (words.size() < 2) return;
  if (words[0] == "VmFlags:") {
    mapping.is_marked_transparent = std::ranges::count(words, "hg") != 0;
    mapping.is_reserved = std::ranges::count(words, "ht") != 0;
    return;
  }
  const std::optional<int64_t> kib = ParseInteger(words[1]);
  if (!kib || *kib < 0 || words.size() != 3 || words[2] != "kB") return;
  const uint64_t bytes = static_cast<uint64_t>(*kib) * 1024;
  const auto add = [&](std::optional<uint64_t>& sum) { sum = sum.value_or(0) + bytes; };
  if (words[0] == "KernelPageSize:" && bytes != 0) mapping.page_bytes = bytes;
  if (words[0] == "AnonHugePages:") add(mapping.transparent_bytes);
  if (words[0] == "Private_Hugetlb:" || words[0] == "Shared_Hugetlb:") add(mapping.reserved_bytes);
}

// The entries that hold [begin, end), ascending.
std::vector<Mapping> MappingsOf(std::string_view smaps, uint64_t begin, uint64_t end) {
  std::vector<Mapping> mappings;
  bool is_of_table = false;
  for (const std::string_view line : SplitLines(smaps)) {
    if (const std::optional<Mapping> head = ParseHead(line)) {
      is_of_table = head->begin < end && begin < head->end;
      if (is_of_table) mappings.push_back(*head);
    } else if (is_of_table) {
      ParseField(line, mappings.back());
    }
  }
  return mappings;
}

// Bytes of a transparent huge page.
uint64_t TransparentPageBytes(const SystemFiles& files) {
  constexpr int64_t kOnX86 = int64_t{2} << 20;
  const Fact<int64_t> bytes =
      files.ReadInteger("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
  return static_cast<uint64_t>(bytes.known() && bytes.value() > 0 ? bytes.value() : kOnX86);
}

// How much of [mapping.begin, mapping.end) is the table's, its ends rounded outwards to pages.
uint64_t Share(const Mapping& mapping, uint64_t begin, uint64_t end, uint64_t page_bytes) {
  const uint64_t first = std::max(mapping.begin, begin / page_bytes * page_bytes);
  const uint64_t last = std::min(mapping.end, (end + page_bytes - 1) / page_bytes * page_bytes);
  return last - first;
}

}  // namespace

PagesOfTable ReadPagesOfTable(std::span<const std::byte> table, const SystemFiles& files) {
  if (table.empty()) {
    return {Bytes::Unknown("the filter has no table"), Bytes::Known(0), Bytes::Known(0)};
  }
  const auto all_unknown = [](const std::string& reason) {
    return PagesOfTable{Bytes::Unknown(reason), Bytes::Unknown(reason), Bytes::Unknown(reason)};
  };
  const Fact<std::string> smaps = files.Read(kSmaps);
  if (!smaps.known()) return all_unknown(smaps.reason());
  const auto begin = reinterpret_cast<uint64_t>(table.data());
  const uint64_t end = begin + table.size();
  const std::vector<Mapping> mappings = MappingsOf(smaps.value(), begin, end);
  uint64_t listed_until = begin;
  for (const Mapping& mapping : mappings) {
    if (mapping.begin <= listed_until) listed_until = mapping.end;
  }
  if (listed_until < end) return all_unknown(fmt::format("{} does not list the table", kSmaps));

  PagesOfTable pages{Bytes::Known(mappings.front().page_bytes.value_or(0)), Bytes::Known(0),
                     Bytes::Known(0)};
  const auto lacks = [](const char* field) {
    return Bytes::Unknown(fmt::format("{} has no {}", kSmaps, field));
  };
  const uint64_t transparent_page_bytes = TransparentPageBytes(files);
  for (const Mapping& mapping : mappings) {
    if (!mapping.page_bytes) {
      pages.page_bytes = lacks("KernelPageSize");
    } else if (pages.page_bytes.known() && pages.page_bytes.value() != *mapping.page_bytes) {
      pages.page_bytes = Bytes::Unknown("the table lies on pages of several sizes");
    }
    const uint64_t share = Share(mapping, begin, end,
                                 mapping.is_reserved.value_or(false) && mapping.page_bytes
                                     ? *mapping.page_bytes
                                     : transparent_page_bytes);
    if (!mapping.is_reserved) {
      pages.huge_page_bytes_asked = lacks("VmFlags");
    } else if (pages.huge_page_bytes_asked.known() &&
               (*mapping.is_reserved || *mapping.is_marked_transparent)) {
      pages.huge_page_bytes_asked = Bytes::Known(pages.huge_page_bytes_asked.value() + share);
    }
    if (!pages.huge_page_bytes.known()) continue;
    if (!mapping.transparent_bytes) {
      pages.huge_page_bytes = lacks("AnonHugePages");
      continue;
    }
    // The huge pages of a mapping may be the table's or lie beside it.
    const uint64_t huge = *mapping.transparent_bytes + mapping.reserved_bytes.value_or(0);
    const uint64_t beside = mapping.end - mapping.begin - share;
    const uint64_t least = huge > beside ? huge - beside : 0;
    const uint64_t most = std::min(huge, share);
    pages.huge_page_bytes =
        least == most
            ? Bytes::Known(pages.huge_page_bytes.value() + most)
            : Bytes::Unknown(fmt::format("the table shares a mapping of {} bytes, of which {} lie "
                                         "on huge pages, with other memory",
                                         mapping.end - mapping.begin, huge));
  }
  return pages;
}

}  // namespace filterbench
