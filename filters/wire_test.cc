// The reader and the writer of the serialized form.

#include "filters/wire.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "filters/hash.h"
#include "filters/test_support.h"
#include "filters/test_wire.h"

namespace filterbench {
namespace {

using test::kChecksumAt;
using test::kFilterAt;
using test::kHeaderBytes;
using test::kPayloadBytesAt;
using test::kVersionAt;
using test::LoadU64;
using test::Wire;

TEST(WireReaderTest, ReadsWhatWasWritten) {
  const std::vector<std::byte> table(100, std::byte{7});
  WireWriter writer("some_filter", 3);
  writer.U64(UINT64_MAX).F64(-0.5).Bytes(table).U64(42);
  const Wire wire = std::move(writer).Finish();
  WireReader reader(wire, "some_filter", 3);
  EXPECT_EQ(reader.U64("first", 0, UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(reader.F64("second", -1, 1), -0.5);
  const AlignedTable read = reader.Table("third", table.size());
  EXPECT_TRUE(test::EqualBytes(read.bytes(), table));
  EXPECT_EQ(reader.U64("fourth", 42, 42), 42u);
  reader.ExpectEnd();
  EXPECT_TRUE(reader.ok()) << reader.error();
}

// The bytes themselves, so that no change of the format goes unnoticed.
TEST(WireWriterTest, IsLittleEndianAsDocumented) {
  WireWriter writer("ab", 0x01020304);
  writer.U64(0x1122334455667788);
  const Wire wire = std::move(writer).Finish();
  ASSERT_EQ(wire.size(), kHeaderBytes + 8);
  EXPECT_EQ(std::memcmp(wire.data(), "FLTRBNC1", 8), 0);
  EXPECT_EQ(LoadU64(wire, kChecksumAt), XXH3_64bits(wire.data() + 16, wire.size() - 16));
  EXPECT_EQ(LoadU64(wire, kPayloadBytesAt), 8u);
  const uint8_t version[4] = {4, 3, 2, 1};
  EXPECT_EQ(std::memcmp(wire.data() + kVersionAt, version, 4), 0);
  const char name[36] = "ab";
  EXPECT_EQ(std::memcmp(wire.data() + kFilterAt, name, 36), 0);
  EXPECT_EQ(static_cast<int>(wire[kHeaderBytes]), 0x88);
  EXPECT_EQ(static_cast<int>(wire[kHeaderBytes + 7]), 0x11);
}

// Case E2: an error names the field.
TEST(WireReaderTest, NamesTheFirstFieldThatIsWrong) {
  const auto wire_of = [](uint64_t value) {
    WireWriter writer("f", 1);
    writer.U64(value);
    return std::move(writer).Finish();
  };
  {
    const Wire wire = wire_of(11);
    WireReader reader(wire, "f", 1);
    EXPECT_EQ(reader.U64("probes", 1, 10), 0u);
    EXPECT_EQ(reader.U64("later", 0, 10), 0u);
    EXPECT_EQ(reader.error(), "probes: must be in 1..10, is 11");
  }
  {
    const Wire wire = wire_of(0x7ff8000000000000);  // not a number
    WireReader reader(wire, "f", 1);
    EXPECT_EQ(reader.F64("bits", 0, 100), 0);
    EXPECT_EQ(reader.error().find("bits: must be in 0..100"), 0u) << reader.error();
  }
  {
    const Wire wire = wire_of(uint64_t{1} << 60);
    WireReader reader(wire, "f", 1);
    const AlignedTable table = reader.Table("table", uint64_t{1} << 60);
    EXPECT_EQ(table.size(), 0u);
    EXPECT_EQ(reader.error().find("table: needs 1152921504606846976 bytes"), 0u) << reader.error();
  }
  {
    const Wire wire = wire_of(1);
    WireReader reader(wire, "f", 1);
    reader.ExpectEnd();
    EXPECT_EQ(reader.error(), "payload: 8 bytes too many");
  }
  {
    const Wire wire = wire_of(1);
    WireReader reader(wire, "f", 1);
    EXPECT_EQ(reader.U64("probes", 2, 10), 0u);
    EXPECT_EQ(reader.error(), "probes: must be in 2..10, is 1");
  }
  for (const double value : {-0.25, 1.25}) {
    const Wire wire = wire_of(std::bit_cast<uint64_t>(value));
    WireReader reader(wire, "f", 1);
    EXPECT_EQ(reader.F64("share", 0, 1), 0);
    EXPECT_EQ(reader.error().find("share: must be in 0..1"), 0u) << reader.error();
  }
}

TEST(WireReaderTest, ATableHasTheSizeThatIsExpected) {
  WireWriter writer("f", 1);
  writer.Bytes(std::vector<std::byte>(16));
  const Wire wire = std::move(writer).Finish();
  for (const uint64_t expected : {uint64_t{0}, uint64_t{8}, uint64_t{24}}) {
    WireReader reader(wire, "f", 1);
    EXPECT_EQ(reader.Table("table", expected).size(), 0u);
    EXPECT_EQ(reader.error().find("table: needs"), 0u) << reader.error();
  }
}

TEST(WireReaderTest, OtherVersionsAreRefusedOlderOnesToo) {
  for (const uint32_t written : {1u, 3u}) {
    const Wire wire = WireWriter("f", written).Finish();
    EXPECT_EQ(WireReader(wire, "f", 2).error(),
              "version: is " + std::to_string(written) + ", this program reads 2");
  }
}

}  // namespace
}  // namespace filterbench
