// The processor as it describes itself to this program, without the kernel.

#ifndef FILTERBENCH_HARNESS_MACHINE_CPUID_H_
#define FILTERBENCH_HARNESS_MACHINE_CPUID_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace filterbench {

struct CpuSignature {
  std::string vendor;
  int family = 0;
  int model = 0;
  int stepping = 0;

  bool operator==(const CpuSignature&) const = default;
};

// Vendor in leaf 0, the rest in leaf 1 of CPUID (AMD APM volume 3, appendix E; Intel SDM volume 2,
// CPUID). nullopt on processors without it.
std::optional<CpuSignature> ReadCpuSignature();

// Leaves 0x80000002 to 4; empty where there is none.
std::string CpuidBrand();

// "none" outside of a virtual machine, as far as CPUID tells. Leaf 0x40000000 holds the signature
// that hypervisors agreed on. nullopt on processors without CPUID.
std::optional<std::string> CpuidHypervisor();

// Under an emulator of single programs (qemu-user) /proc and /sys describe the processor of the
// machine outside, which is not the one that this program sees. Why /proc/cpuinfo is not about a
// processor of `architecture` (as uname names it) that describes itself as `signature`; empty where
// nothing contradicts it.
std::string ForeignProcessor(std::string_view cpuinfo, std::string_view architecture,
                             const std::optional<CpuSignature>& signature);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_MACHINE_CPUID_H_
