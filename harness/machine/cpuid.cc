#include "harness/machine/cpuid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "harness/machine/system_files.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace filterbench {

#if defined(__x86_64__)

namespace {

struct CpuidRegisters {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidRegisters Cpuid(uint32_t leaf) {
  CpuidRegisters r;
  __cpuid(leaf, r.eax, r.ebx, r.ecx, r.edx);
  return r;
}

std::string TextOf(std::initializer_list<uint32_t> registers) {
  std::string text;
  for (const uint32_t value : registers) {
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    text.append(bytes, sizeof(bytes));
  }
  return std::string(TrimBlanks(std::string_view(text.c_str())));
}

}  // namespace

std::optional<CpuSignature> ReadCpuSignature() {
  const CpuidRegisters vendor = Cpuid(0);
  const uint32_t signature = Cpuid(1).eax;
  const uint32_t base_family = (signature >> 8) & 0xf;
  const uint32_t base_model = (signature >> 4) & 0xf;
  const bool extended_model = base_family == 0x6 || base_family == 0xf;
  const uint32_t family =
      base_family == 0xf ? base_family + ((signature >> 20) & 0xff) : base_family;
  const uint32_t model = extended_model ? base_model | ((signature >> 12) & 0xf0) : base_model;
  return CpuSignature{TextOf({vendor.ebx, vendor.edx, vendor.ecx}), static_cast<int>(family),
                      static_cast<int>(model), static_cast<int>(signature & 0xf)};
}

std::string CpuidBrand() {
  if (Cpuid(0x80000000).eax < 0x80000004) return "";
  std::string brand;
  for (uint32_t leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    const CpuidRegisters r = Cpuid(leaf);
    char bytes[16];
    std::memcpy(bytes, &r, sizeof(bytes));
    brand.append(bytes, sizeof(bytes));
  }
  return std::string(TrimBlanks(std::string_view(brand.c_str())));
}

std::optional<std::string> CpuidHypervisor() {
  if (((Cpuid(1).ecx >> 31) & 1) == 0) return "none";
  const CpuidRegisters r = Cpuid(0x40000000);
  const std::string signature = TextOf({r.ebx, r.ecx, r.edx});
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"KVMKVMKVM", "kvm"},       {"Linux KVM Hv", "kvm"},        {"Microsoft Hv", "hyper-v"},
      {"VMwareVMware", "vmware"}, {"XenVMMXenVMM", "xen"},        {"TCGTCGTCGTCG", "qemu-tcg"},
      {"bhyve bhyve", "bhyve"},   {"VBoxVBoxVBox", "virtualbox"}, {"ACRNACRNACRN", "acrn"}};
  for (const auto& [known, name] : kNames) {
    if (signature == known) return std::string(name);
  }
  const bool printable =
      std::all_of(signature.begin(), signature.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return signature.empty() || !printable ? "unidentified" : signature;
}

#else

std::optional<CpuSignature> ReadCpuSignature() { return std::nullopt; }
std::string CpuidBrand() { return ""; }
std::optional<std::string> CpuidHypervisor() { return std::nullopt; }

#endif

std::string ForeignProcessor(std::string_view cpuinfo, std::string_view architecture,
                             const std::optional<CpuSignature>& signature) {
  // Keys that only kernels of the one or of the other architecture write.
  const bool is_x86 = FindColonValue(cpuinfo, "vendor_id").has_value();
  const bool is_arm = FindColonValue(cpuinfo, "CPU implementer").has_value();
  if ((is_x86 && architecture == "aarch64") || (is_arm && architecture == "x86_64")) {
    return fmt::format("emulated: the program runs on {}, the machine is another", architecture);
  }
  if (!is_x86 || !signature) return "";
  // Of the first CPU; cores of a hybrid processor differ in nothing of this.
  const std::pair<std::string_view, std::string> expected[] = {
      {"vendor_id", signature->vendor},
      {"cpu family", fmt::format("{}", signature->family)},
      {"model", fmt::format("{}", signature->model)},
      {"stepping", fmt::format("{}", signature->stepping)}};
  for (const auto& [key, value] : expected) {
    const auto told = FindColonValue(cpuinfo, key);
    if (told && *told != value) {
      return fmt::format("emulated: CPUID tells {} '{}', the machine's is '{}'", key, value, *told);
    }
  }
  return "";
}

}  // namespace filterbench
