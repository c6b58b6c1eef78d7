#include "workloads/lsm/picking.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace filterbench::lsm {
namespace {

double MeanBytes(std::span<const uint64_t> bytes, const std::vector<size_t>& files) {
  double sum = 0;
  for (const size_t i : files) sum += static_cast<double>(bytes[i]);
  return sum / static_cast<double>(files.size());
}

// The oldest stretch of the bucket that is long enough.
std::optional<Stretch> OldestStretch(std::span<const uint64_t> bytes,
                                     const std::vector<size_t>& bucket,
                                     const StoreOptions& options) {
  std::vector<bool> member(bytes.size(), false);
  uint64_t largest = 0;
  for (const size_t i : bucket) {
    member[i] = true;
    largest = std::max(largest, bytes[i]);
  }
  for (size_t end = bytes.size(); end > 0;) {
    if (!member[end - 1]) {
      --end;
      continue;
    }
    size_t begin = end;
    size_t members = 0;
    size_t at = end;
    while (at > 0 && bytes[at - 1] <= largest) {
      --at;
      if (!member[at]) continue;
      ++members;
      begin = at;
    }
    if (members >= options.min_threshold) {
      return Stretch{std::max(begin, end - std::min<size_t>(end, options.max_threshold)), end};
    }
    end = at;
  }
  return std::nullopt;
}

}  // namespace

uint64_t LevelLimitBytes(int level, const StoreOptions& options) {
  uint64_t limit = options.level1_bytes;
  for (int i = 1; i < level; ++i) {
    if (__builtin_mul_overflow(limit, uint64_t{options.size_ratio}, &limit)) {
      return std::numeric_limits<uint64_t>::max();
    }
  }
  return limit;
}

Stretch Overlapping(std::span<const FileExtent> level, std::string_view smallest,
                    std::string_view largest) {
  const auto begin = std::partition_point(
      level.begin(), level.end(), [&](const FileExtent& file) { return file.largest < smallest; });
  const auto end = std::partition_point(
      begin, level.end(), [&](const FileExtent& file) { return file.smallest <= largest; });
  return {static_cast<size_t>(begin - level.begin()), static_cast<size_t>(end - level.begin())};
}

std::optional<LeveledPick> PickLeveled(const std::vector<std::vector<FileExtent>>& levels,
                                       const StoreOptions& options,
                                       std::vector<std::string>& resume_after) {
  if (resume_after.size() < levels.size()) resume_after.resize(levels.size());
  for (size_t i = 0; i < levels.size(); ++i) {
    const std::vector<FileExtent>& level = levels[i];
    LeveledPick pick{.level = static_cast<int>(i)};
    std::string_view smallest;
    std::string_view largest;
    if (i == 0) {
      if (level.size() < options.level0_files) continue;
      pick.upper = {0, level.size()};
      smallest = level.front().smallest;
      largest = level.front().largest;
      for (const FileExtent& file : level) {
        smallest = std::min(smallest, file.smallest);
        largest = std::max(largest, file.largest);
      }
    } else {
      uint64_t bytes = 0;
      for (const FileExtent& file : level) bytes += file.bytes;
      if (bytes <= LevelLimitBytes(pick.level, options)) continue;
      size_t at = 0;
      if (!resume_after[i].empty()) {
        at = static_cast<size_t>(
            std::partition_point(
                level.begin(), level.end(),
                [&](const FileExtent& file) { return file.largest <= resume_after[i]; }) -
            level.begin());
        if (at == level.size()) at = 0;
      }
      pick.upper = {at, at + 1};
      smallest = level[at].smallest;
      largest = level[at].largest;
      resume_after[i] = largest;
    }
    if (i + 1 < levels.size()) pick.lower = Overlapping(levels[i + 1], smallest, largest);
    return pick;
  }
  return std::nullopt;
}

std::vector<std::vector<size_t>> SizeBuckets(std::span<const uint64_t> bytes,
                                             const StoreOptions& options) {
  std::vector<size_t> ascending(bytes.size());
  std::iota(ascending.begin(), ascending.end(), size_t{0});
  std::stable_sort(ascending.begin(), ascending.end(),
                   [&](size_t a, size_t b) { return bytes[a] < bytes[b]; });
  std::vector<std::vector<size_t>> buckets;
  for (const size_t i : ascending) {
    const double size = static_cast<double>(bytes[i]);
    const auto least = static_cast<double>(options.min_file_bytes);
    const auto bucket =
        std::find_if(buckets.begin(), buckets.end(), [&](const std::vector<size_t>& candidate) {
          const double mean = MeanBytes(bytes, candidate);
          return (size > mean * options.bucket_low && size < mean * options.bucket_high) ||
                 (size < least && mean < least);
        });
    if (bucket == buckets.end()) {
      buckets.push_back({i});
    } else {
      bucket->push_back(i);
    }
  }
  return buckets;
}

std::optional<Stretch> PickSizeTiered(std::span<const uint64_t> bytes,
                                      const StoreOptions& options) {
  // Sorted sizes make buckets in ascending order of their means.
  for (const std::vector<size_t>& bucket : SizeBuckets(bytes, options)) {
    if (bucket.size() < options.min_threshold) continue;
    if (const auto stretch = OldestStretch(bytes, bucket, options)) return stretch;
  }
  return std::nullopt;
}

}  // namespace filterbench::lsm
