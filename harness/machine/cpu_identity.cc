#include "harness/machine/cpu_identity.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/machine/cpuid.h"

namespace filterbench {
namespace {

using nlohmann::json;

// As the kernel spells them in /proc/cpuinfo.
constexpr std::array<std::string_view, 44> kFlagsOfInterest = {
    // x86
    "ssse3", "sse4_1", "sse4_2", "popcnt", "aes", "pclmulqdq", "bmi1", "bmi2", "avx", "f16c", "fma",
    "avx2", "gfni", "vaes", "vpclmulqdq", "avx_vnni", "avx512f", "avx512bw", "avx512cd", "avx512dq",
    "avx512vl", "avx512ifma", "avx512vbmi", "avx512_vbmi2", "avx512_vnni", "avx512_bitalg",
    "avx512_vpopcntdq", "avx512_bf16", "avx512_fp16", "prefetchw", "3dnowprefetch", "constant_tsc",
    "nonstop_tsc", "hypervisor", "hybrid_cpu",
    // Arm; "aes" is spelled alike
    "asimd", "asimddp", "crc32", "pmull", "atomics", "sve", "sve2", "svebitperm", "sme"};

// Fields that are missing in `cpu`, as the processor itself reports them.
void FillFromCpuid(json& cpu) {
  const auto fill = [&cpu](const std::string& field, const auto& value) {
    if (!cpu[field].is_null()) return;
    cpu[field] = value;
    cpu.erase(field + "_reason");
  };
  const std::optional<CpuSignature> signature = ReadCpuSignature();
  if (!signature) return;
  fill("vendor", signature->vendor);
  fill("family", signature->family);
  fill("model", signature->model);
  fill("stepping", signature->stepping);
  const std::string brand = CpuidBrand();
  if (!brand.empty()) fill("brand", brand);
}

// The lines of the first CPU in /proc/cpuinfo; blocks are divided by an empty line.
std::string_view FirstBlock(std::string_view cpuinfo) {
  return cpuinfo.substr(0, cpuinfo.find("\n\n"));
}

void PutText(json& cpu, const std::string& field, const Fact<std::string>& cpuinfo,
             std::string_view key) {
  if (!cpuinfo.known()) return PutUnknown(cpu, field, cpuinfo.reason());
  const auto value = FindColonValue(FirstBlock(cpuinfo.value()), key);
  if (!value || value->empty()) {
    return PutUnknown(cpu, field, fmt::format("/proc/cpuinfo has no '{}'", key));
  }
  cpu[field] = std::string(*value);
}

void PutInteger(json& cpu, const std::string& field, const Fact<std::string>& cpuinfo,
                std::string_view key) {
  PutText(cpu, field, cpuinfo, key);
  if (cpu[field].is_null()) return;
  const std::string text = cpu[field];
  if (const std::optional<int64_t> value = ParseInteger(text)) {
    cpu[field] = *value;
  } else {
    PutUnknown(cpu, field, fmt::format("/proc/cpuinfo: '{}' is '{:.40}'", key, text));
  }
}

void PutMicrocode(json& cpu, const Fact<std::string>& cpuinfo) {
  PutText(cpu, "microcode", cpuinfo, "microcode");
  if (cpu["microcode"].is_null()) return;
  std::vector<std::string> versions;
  for (const std::string_view line : SplitLines(cpuinfo.value())) {
    if (const auto value = FindColonValue(line, "microcode")) versions.emplace_back(*value);
  }
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  // Some hypervisors hide the version behind all ones.
  if (versions.front() == "0xffffffff") {
    return PutUnknown(cpu, "microcode", "the hypervisor hides it (0xffffffff)");
  }
  cpu["microcode"] = fmt::format("{}", fmt::join(versions, ","));
}

void PutFlags(json& cpu, const Fact<std::string>& cpuinfo) {
  const bool is_arm = cpuinfo.known() && FindColonValue(cpuinfo.value(), "Features").has_value();
  PutText(cpu, "flags", cpuinfo, is_arm ? "Features" : "flags");
  if (cpu["flags"].is_null()) return;
  const std::string text = cpu["flags"];
  const std::vector<std::string_view> present = SplitAtBlanks(text);
  json flags = json::array();
  for (const std::string_view flag : kFlagsOfInterest) {
    if (std::find(present.begin(), present.end(), flag) != present.end()) flags.push_back(flag);
  }
  cpu["flags"] = std::move(flags);
}

bool InRange(int value, int first, int last) { return first <= value && value <= last; }

// Model ranges of each generation as AMD's revision guides group them.
std::string_view AmdName(int family, int model) {
  switch (family) {
    case 0x17:
      return model <= 0x2f || InRange(model, 0x50, 0x5f) ? "zen1" : "zen2";
    case 0x19:
      if (model <= 0x0f || InRange(model, 0x20, 0x5f)) return "zen3";
      if (InRange(model, 0x10, 0x1f) || InRange(model, 0x60, 0xaf)) return "zen4";
      return {};
    case 0x1a:
      if (model <= 0x2f || InRange(model, 0x40, 0x4f) || InRange(model, 0x60, 0x7f)) return "zen5";
      return {};
  }
  return {};
}

struct IntelModel {
  int model;
  std::string_view name;
};

// Family 6 by DisplayModel (Intel SDM volume 4, table 2-1).
constexpr IntelModel kIntelModels[] = {
    {0x2a, "sandy-bridge"},    {0x2d, "sandy-bridge"},   {0x3a, "ivy-bridge"},
    {0x3e, "ivy-bridge"},      {0x3c, "haswell"},        {0x3f, "haswell"},
    {0x45, "haswell"},         {0x46, "haswell"},        {0x3d, "broadwell"},
    {0x47, "broadwell"},       {0x4f, "broadwell"},      {0x56, "broadwell"},
    {0x4e, "skylake"},         {0x5e, "skylake"},        {0x8e, "kaby-lake"},
    {0x9e, "kaby-lake"},       {0xa5, "comet-lake"},     {0xa6, "comet-lake"},
    {0x7d, "ice-lake"},        {0x7e, "ice-lake"},       {0x6a, "ice-lake-server"},
    {0x6c, "ice-lake-server"}, {0x8c, "tiger-lake"},     {0x8d, "tiger-lake"},
    {0xa7, "rocket-lake"},     {0x97, "alder-lake"},     {0x9a, "alder-lake"},
    {0xb7, "raptor-lake"},     {0xba, "raptor-lake"},    {0xbf, "raptor-lake"},
    {0x8f, "sapphire-rapids"}, {0xcf, "emerald-rapids"}, {0xaa, "meteor-lake"},
    {0xac, "meteor-lake"},     {0xad, "granite-rapids"}, {0xae, "granite-rapids"},
    {0xaf, "sierra-forest"},   {0xbd, "lunar-lake"},     {0xc5, "arrow-lake"},
    {0xc6, "arrow-lake"}};

std::string_view IntelName(int family, int model, int stepping) {
  if (family != 6) return {};
  // One model number for three generations, told apart by the stepping.
  if (model == 0x55) {
    if (stepping <= 4) return "skylake-server";
    return stepping <= 7 ? "cascade-lake" : "cooper-lake";
  }
  for (const IntelModel& known : kIntelModels) {
    if (known.model == model) return known.name;
  }
  return {};
}

std::string ArchitectureOf(const SystemFiles& files, const Fact<std::string>& cpuinfo) {
  if (!files.is_live()) {
    if (!cpuinfo.known()) return "";
    return FindColonValue(cpuinfo.value(), "CPU implementer") ? "aarch64" : "x86_64";
  }
  utsname names = {};
  return uname(&names) == 0 ? names.machine : "";
}

}  // namespace

Fact<std::string> MicroarchitectureName(const std::string& vendor, int family, int model,
                                        int stepping) {
  std::string_view name;
  if (vendor == "AuthenticAMD") name = AmdName(family, model);
  if (vendor == "GenuineIntel") name = IntelName(family, model, stepping);
  if (!name.empty()) return Fact<std::string>::Known(std::string(name));
  return Fact<std::string>::Unknown(
      fmt::format("no name is recorded for {} family {} model {}", vendor, family, model));
}

json ReadCpuIdentity(const SystemFiles& files) {
  const Fact<std::string> cpuinfo = files.Read("/proc/cpuinfo");
  json cpu;
  const std::string architecture = ArchitectureOf(files, cpuinfo);
  if (architecture.empty()) {
    PutUnknown(cpu, "architecture", cpuinfo.reason());
  } else {
    cpu["architecture"] = architecture;
  }
  PutText(cpu, "brand", cpuinfo, "model name");
  PutFlags(cpu, cpuinfo);
  PutMicrocode(cpu, cpuinfo);
  PutInteger(cpu, "family", cpuinfo, "cpu family");
  PutInteger(cpu, "model", cpuinfo, "model");
  PutInteger(cpu, "stepping", cpuinfo, "stepping");

  if (cpuinfo.known() && FindColonValue(cpuinfo.value(), "CPU implementer")) {
    PutText(cpu, "vendor", cpuinfo, "CPU implementer");
    PutText(cpu, "part", cpuinfo, "CPU part");
    PutText(cpu, "variant", cpuinfo, "CPU variant");
    PutText(cpu, "revision", cpuinfo, "CPU revision");
  } else {
    PutText(cpu, "vendor", cpuinfo, "vendor_id");
  }

  if (files.is_live()) FillFromCpuid(cpu);

  if (cpu["vendor"].is_string() && cpu["family"].is_number() && cpu["model"].is_number() &&
      cpu["stepping"].is_number()) {
    PutFact(cpu, "microarchitecture",
            MicroarchitectureName(cpu["vendor"], cpu["family"], cpu["model"], cpu["stepping"]));
  } else {
    PutUnknown(cpu, "microarchitecture", "vendor, family, model and stepping are not all known");
  }
  return cpu;
}

Fact<std::string> HypervisorName(const SystemFiles& files) {
  const Fact<std::string> type = files.ReadText("/sys/hypervisor/type");
  if (type.known()) return type;
  if (files.is_live()) {
    if (const auto name = CpuidHypervisor()) return Fact<std::string>::Known(*name);
  }
  const Fact<std::string> cpuinfo = files.Read("/proc/cpuinfo");
  if (!cpuinfo.known()) return cpuinfo;
  const auto flags = FindColonValue(cpuinfo.value(), "flags");
  if (!flags) {
    return Fact<std::string>::Unknown("neither /sys/hypervisor nor CPU flags tell on this CPU");
  }
  const std::vector<std::string_view> present = SplitAtBlanks(*flags);
  const bool is_guest = std::find(present.begin(), present.end(), "hypervisor") != present.end();
  return Fact<std::string>::Known(is_guest ? "unidentified" : "none");
}

}  // namespace filterbench
