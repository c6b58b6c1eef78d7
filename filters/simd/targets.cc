#include "filters/simd/targets.h"

#include <cctype>
#include <map>
#include <mutex>

#include "hwy/highway.h"
#include "hwy/targets.h"

namespace filterbench {
namespace {

std::vector<int64_t> BitsFromLowest(int64_t mask) {
  std::vector<int64_t> bits;
  // Highway gives better targets lower bits.
  for (uint64_t rest = static_cast<uint64_t>(mask); rest != 0; rest &= rest - 1) {
    bits.push_back(static_cast<int64_t>(rest & -rest));
  }
  return bits;
}

}  // namespace

std::string_view TargetName(int64_t target) {
  static std::mutex mutex;
  static std::map<int64_t, std::string> names;  // nodes never move: views into them stay valid
  const std::lock_guard lock(mutex);
  std::string& name = names[target];
  if (name.empty()) {
    for (const char* c = hwy::TargetName(target); *c != '\0'; ++c) {
      name.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(*c))));
    }
    if (name == "scalar") name = "hwy_scalar";
  }
  return name;
}

std::vector<int64_t> CompiledTargets() { return BitsFromLowest(HWY_TARGETS); }

std::vector<int64_t> SupportedTargets() {
  return BitsFromLowest(hwy::SupportedTargets() & HWY_TARGETS);
}

std::vector<std::string_view> SupportedTargetNames() {
  std::vector<std::string_view> names;
  for (const int64_t target : SupportedTargets()) names.push_back(TargetName(target));
  names.push_back("scalar");
  return names;
}

void ForEachSupportedTarget(const std::function<void()>& use) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (const int64_t target : SupportedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    use();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace filterbench
