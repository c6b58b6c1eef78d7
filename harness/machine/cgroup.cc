#include "harness/machine/cgroup.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace filterbench {
namespace {

// The place of one hierarchy: where it is mounted, and this process's group below the mount.
struct Hierarchy {
  bool is_v2 = false;
  std::string mount_point;
  std::string group;  // "" at the mount itself, else "/a/b"
};

// What one group says. `limit` empty and `reason` empty: no limit here.
template <typename T>
struct Level {
  std::optional<T> limit;
  bool controller_absent = false;
  std::string reason;  // why this level is not known
};

// mountinfo writes blanks and backslashes in paths as three octal digits (proc(5)).
std::string DecodeOctalEscapes(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      const std::optional<int64_t> code = ParseInteger(text.substr(i + 1, 3), 8);
      if (code) {
        decoded.push_back(static_cast<char>(*code));
        i += 3;
        continue;
      }
    }
    decoded.push_back(text[i]);
  }
  return decoded;
}

bool HasCommaItem(std::string_view list, std::string_view item) {
  while (true) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == item) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

// The group's path below a mount that shows the hierarchy from `mount_root` down; nullopt when the
// mount does not show it (a container that sees only a part).
std::optional<std::string> BelowMount(std::string group, std::string mount_root) {
  if (group == "/") group.clear();
  if (mount_root == "/") mount_root.clear();
  if (!group.starts_with(mount_root)) return std::nullopt;
  group.erase(0, mount_root.size());
  if (!group.empty() && (group[0] != '/' || group.starts_with("/.."))) return std::nullopt;
  return group;
}

// This process's group in the hierarchy of `controller` (v1) or in the unified one ("").
std::optional<std::string> GroupOf(std::string_view proc_self_cgroup, std::string_view controller) {
  for (const std::string_view line : SplitLines(proc_self_cgroup)) {
    const size_t first = line.find(':');
    if (first == std::string_view::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : HasCommaItem(controllers, controller)) {
      return std::string(line.substr(second + 1));
    }
  }
  return std::nullopt;
}

// A controller lives in one hierarchy only: in its own (v1) when /proc/self/cgroup lists one, even
// if that is not mounted here, else in the unified one (v2).
Fact<Hierarchy> FindHierarchy(const SystemFiles& files, std::string_view controller) {
  const Fact<std::string> groups = files.Read("/proc/self/cgroup");
  if (!groups.known()) return Fact<Hierarchy>::Unknown(groups.reason());
  const Fact<std::string> mounts = files.Read("/proc/self/mountinfo");
  if (!mounts.known()) return Fact<Hierarchy>::Unknown(mounts.reason());

  std::optional<std::string> group = GroupOf(groups.value(), controller);
  const bool is_v2 = !group;
  if (is_v2) group = GroupOf(groups.value(), "");
  std::string reason =
      fmt::format("no cgroup hierarchy with the controller '{}' is mounted here", controller);
  for (const std::string_view line : SplitLines(mounts.value())) {
    const size_t separator = line.find(" - ");
    if (!group || separator == std::string_view::npos) continue;
    const std::vector<std::string_view> mount = SplitAtBlanks(line.substr(0, separator));
    const std::vector<std::string_view> source = SplitAtBlanks(line.substr(separator + 3));
    if (mount.size() < 5 || source.size() < 3) continue;
    const bool matches = is_v2 ? source[0] == "cgroup2"
                               : source[0] == "cgroup" && HasCommaItem(source[2], controller);
    if (!matches) continue;
    std::optional<std::string> below = BelowMount(*group, DecodeOctalEscapes(mount[3]));
    std::string mount_point = DecodeOctalEscapes(mount[4]);
    if (below && files.Exists(mount_point + *below)) {
      return Fact<Hierarchy>::Known({is_v2, std::move(mount_point), *std::move(below)});
    }
    reason =
        fmt::format("the group {} of this process is not visible below {}", *group, mount_point);
  }
  return Fact<Hierarchy>::Unknown(std::move(reason));
}

// The smallest limit from this process's group up to the mount. One level that cannot be read
// makes the whole unknown: it might be the tightest.
template <typename T>
Fact<T> TightestLimit(const SystemFiles& files, std::string_view controller,
                      const std::function<Level<T>(bool is_v2, const std::string& group)>& read) {
  const Fact<Hierarchy> found = FindHierarchy(files, controller);
  if (!found.known()) return Fact<T>::Unknown(found.reason());
  const Hierarchy& hierarchy = found.value();

  std::optional<T> tightest;
  bool controller_seen = false;
  std::string group = hierarchy.group;
  while (true) {
    const Level<T> level = read(hierarchy.is_v2, hierarchy.mount_point + group);
    if (!level.reason.empty()) return Fact<T>::Unknown(level.reason);
    controller_seen |= !level.controller_absent;
    if (level.limit) tightest = std::min(*level.limit, tightest.value_or(*level.limit));
    if (group.empty()) break;
    group.resize(group.rfind('/'));
  }
  if (tightest) return Fact<T>::Known(*tightest);

  // Only the root of the whole hierarchy has a release_agent (v1) or lacks cgroup.events (v2); a
  // mount without that mark is the top of a namespace, and limits outside of it stay hidden.
  const bool is_whole = hierarchy.is_v2 ? !files.Exists(hierarchy.mount_point + "/cgroup.events")
                                        : files.Exists(hierarchy.mount_point + "/release_agent");
  if (is_whole && (controller_seen || hierarchy.is_v2)) return Fact<T>::Unknown("unlimited");
  if (controller_seen) {
    return Fact<T>::Unknown("unlimited in the groups that are visible; outer groups are hidden");
  }
  return Fact<T>::Unknown(fmt::format(
      "the controller '{}' sets no limit files in the groups that are visible", controller));
}

Level<double> ReadCpuLevel(const SystemFiles& files, bool is_v2, const std::string& group) {
  Level<double> level;
  std::optional<int64_t> quota_us;
  std::optional<int64_t> period_us;
  if (is_v2) {
    const std::string path = group + "/cpu.max";
    if (!files.Exists(path)) {
      level.controller_absent = true;
      return level;
    }
    const Fact<std::string> text = files.Read(path);
    if (!text.known()) {
      level.reason = text.reason();
      return level;
    }
    const std::vector<std::string_view> words = SplitAtBlanks(text.value());
    if (words.size() == 2 && words[0] == "max") return level;
    if (words.size() == 2) {
      quota_us = ParseInteger(words[0]);
      period_us = ParseInteger(words[1]);
    }
    if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) {
      level.reason =
          fmt::format("{} holds '{:.40}' instead of quota and period", path, text.value());
      return level;
    }
  } else {
    const std::string quota_path = group + "/cpu.cfs_quota_us";
    if (!files.Exists(quota_path)) {
      level.controller_absent = true;
      return level;
    }
    const Fact<int64_t> quota = files.ReadInteger(quota_path);
    if (!quota.known()) {
      level.reason = quota.reason();
      return level;
    }
    if (quota.value() == -1) return level;
    const Fact<int64_t> period = files.ReadInteger(group + "/cpu.cfs_period_us");
    if (!period.known()) {
      level.reason = period.reason();
      return level;
    }
    quota_us = quota.value();
    period_us = period.value();
    if (*quota_us <= 0 || *period_us <= 0) {
      level.reason =
          fmt::format("{} and its period hold {} and {}", quota_path, *quota_us, *period_us);
      return level;
    }
  }
  level.limit = static_cast<double>(*quota_us) / static_cast<double>(*period_us);
  return level;
}

// Keys and units: Documentation/admin-guide/cgroup-v2.rst "cpu.stat" and scheduler/sched-bwc.rst.
Fact<CgroupThrottling> ParseThrottling(std::string_view text, bool is_v2, const std::string& path) {
  std::optional<int64_t> periods;
  std::optional<int64_t> time;
  for (const std::string_view line : SplitLines(text)) {
    const std::vector<std::string_view> words = SplitAtBlanks(line);
    if (words.size() != 2) continue;
    if (words[0] == "nr_throttled") periods = ParseInteger(words[1]);
    if (words[0] == (is_v2 ? "throttled_usec" : "throttled_time")) time = ParseInteger(words[1]);
  }
  constexpr int64_t kMaxTime = int64_t{1} << 52;
  if (!periods || !time || *periods < 0 || *time < 0 || (is_v2 && *time > kMaxTime)) {
    return Fact<CgroupThrottling>::Unknown(
        fmt::format("{} does not tell how often it was throttled", path));
  }
  return Fact<CgroupThrottling>::Known({*periods, is_v2 ? *time * 1000 : *time});
}

Level<int64_t> ReadMemoryLevel(const SystemFiles& files, bool is_v2, const std::string& group) {
  // v1 writes "no limit" as the largest multiple of the page size below 2^63.
  constexpr int64_t kUnlimitedFrom = int64_t{1} << 62;
  Level<int64_t> level;
  const std::string path = group + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes");
  if (!files.Exists(path)) {
    level.controller_absent = true;
    return level;
  }
  const Fact<std::string> text = files.Read(path);
  if (!text.known()) {
    level.reason = text.reason();
    return level;
  }
  if (is_v2 && text.value() == "max") return level;
  const std::optional<int64_t> bytes = ParseInteger(text.value());
  if (!bytes || *bytes < 0) {
    level.reason = fmt::format("{} holds '{:.40}' instead of bytes", path, text.value());
    return level;
  }
  if (*bytes < kUnlimitedFrom) level.limit = *bytes;
  return level;
}

}  // namespace

Fact<double> CgroupCpuQuota(const SystemFiles& files) {
  return TightestLimit<double>(files, "cpu", [&files](bool is_v2, const std::string& group) {
    return ReadCpuLevel(files, is_v2, group);
  });
}

Fact<CgroupThrottling> CgroupCpuThrottling(const SystemFiles& files) {
  using Throttling = Fact<CgroupThrottling>;
  const Fact<Hierarchy> found = FindHierarchy(files, "cpu");
  if (!found.known()) return Throttling::Unknown(found.reason());
  CgroupThrottling sum;
  bool counted = false;
  std::string group = found.value().group;
  while (true) {
    const std::string directory = found.value().mount_point + group;
    const std::string path = directory + "/cpu.stat";
    // In v2 every group has cpu.stat, but only one with the CPU controller counts throttling; that
    // one has cpu.max.
    const bool counts =
        found.value().is_v2 ? files.Exists(directory + "/cpu.max") : files.Exists(path);
    if (counts) {
      const Fact<std::string> text = files.Read(path);
      if (!text.known()) return Throttling::Unknown(text.reason());
      const Throttling level = ParseThrottling(text.value(), found.value().is_v2, path);
      if (!level.known()) return level;
      sum.throttled_periods += level.value().throttled_periods;
      sum.throttled_ns += level.value().throttled_ns;
      counted = true;
    }
    if (group.empty()) break;
    group.resize(group.rfind('/'));
  }
  if (!counted) return Throttling::Unknown("no group that is visible counts throttling");
  return Throttling::Known(sum);
}

Fact<int64_t> CgroupMemoryLimitBytes(const SystemFiles& files) {
  return TightestLimit<int64_t>(files, "memory", [&files](bool is_v2, const std::string& group) {
    return ReadMemoryLevel(files, is_v2, group);
  });
}

}  // namespace filterbench
