#include "harness/machine/cpuid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace filterbench {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kAmd =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n"
    "model name\t: AMD EPYC 7B13\nstepping\t: 0\n";
constexpr std::string_view kArm =
    "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n";
const CpuSignature kMilan = {"AuthenticAMD", 25, 1, 0};

TEST(ForeignProcessorTest, FilesAboutTheProcessorThatRunsTheProgram) {
  EXPECT_EQ(ForeignProcessor(kAmd, "x86_64", kMilan), "");
  EXPECT_EQ(ForeignProcessor(kArm, "aarch64", std::nullopt), "");
  EXPECT_EQ(ForeignProcessor("", "x86_64", kMilan), "");
  EXPECT_EQ(ForeignProcessor("vendor_id : AuthenticAMD", "x86_64", kMilan), "");
}

TEST(ForeignProcessorTest, AnotherArchitecture) {
  EXPECT_THAT(ForeignProcessor(kAmd, "aarch64", std::nullopt), HasSubstr("runs on aarch64"));
  EXPECT_THAT(ForeignProcessor(kArm, "x86_64", kMilan), HasSubstr("runs on x86_64"));
}

TEST(ForeignProcessorTest, AnotherProcessorOfTheArchitecture) {
  EXPECT_THAT(ForeignProcessor(kAmd, "x86_64", CpuSignature{"GenuineIntel", 6, 26, 3}),
              HasSubstr("vendor_id 'GenuineIntel', the machine's is 'AuthenticAMD'"));
  EXPECT_THAT(ForeignProcessor(kAmd, "x86_64", CpuSignature{"AuthenticAMD", 23, 1, 0}),
              HasSubstr("cpu family '23'"));
  EXPECT_THAT(ForeignProcessor(kAmd, "x86_64", CpuSignature{"AuthenticAMD", 25, 0x11, 0}),
              HasSubstr("model '17'"));
  EXPECT_THAT(ForeignProcessor(kAmd, "x86_64", CpuSignature{"AuthenticAMD", 25, 1, 2}),
              HasSubstr("stepping '2'"));
}

TEST(CpuidTest, TheProcessorOfThisMachineDescribesItselfWhole) {
  const std::optional<CpuSignature> signature = ReadCpuSignature();
  EXPECT_EQ(signature.has_value(), CpuidHypervisor().has_value());
  if (!signature) GTEST_SKIP() << "no CPUID";
  EXPECT_NE(signature->vendor, "");
  EXPECT_GT(signature->family, 0);
}

}  // namespace
}  // namespace filterbench
