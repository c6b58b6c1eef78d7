#ifndef FILTERBENCH_FILTERS_CONFORMANCE_WIRE_H_
#define FILTERBENCH_FILTERS_CONFORMANCE_WIRE_H_

// Cases E1, E2: the serialized form; what is written comes back, and what is damaged is refused.
// Case E1 does not apply: to readers that return a byte at a time, since a filter is read from one
// span; files are read in workloads/lsm/files.cc.
// Case E2 does not apply: to merging, which no filter offers.

#include "filters/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "filters/filter.h"
#include "filters/hash.h"
#include "filters/conformance/tested.h"
#include "filters/test_support.h"
#include "filters/test_wire.h"

namespace filterbench {
namespace {

using test::FixChecksum;
using test::kFilterAt;
using test::kHeaderBytes;
using test::kPayloadBytesAt;
using test::kVersionAt;
using test::LoadU64;
using test::StoreU64;
using test::TestHashes;
using test::UsualParams;
using test::Wire;

template <class F>
class WireTest : public ::testing::Test {
 protected:
  static constexpr size_t kKeys = 1000;

  static Wire Serialized(size_t n) {
    typename F::Params params;
    params.seed = 7;
    const Result<F> filter = F::Build(TestHashes(0, n), params);
    EXPECT_TRUE(filter) << filter.error();
    return filter->Serialize();
  }

  static void ExpectRefused(std::span<const std::byte> wire, std::string_view mention = "") {
    const Result<F> filter = F::Deserialize(wire);
    ASSERT_FALSE(filter);
    EXPECT_NE(filter.error().find(mention), std::string::npos) << filter.error();
  }
};
TYPED_TEST_SUITE(WireTest, test::TestedFilters, test::FilterNames);

// Case E1: answers for 100,000 keys and bytes are identical.
TYPED_TEST(WireTest, RoundTrip) {
  for (const auto& [name, params] : UsualParams<TypeParam>(uint64_t{1} << 63)) {
    for (const size_t n : {0, 1, 2, 1000}) {
      SCOPED_TRACE(fmt::format("{} n={}", name, n));
      const Result<TypeParam> filter = TypeParam::Build(TestHashes(0, n), params);
      ASSERT_TRUE(filter) << filter.error();
      const Wire wire = filter->Serialize();
      const Result<TypeParam> read = TypeParam::Deserialize(wire);
      ASSERT_TRUE(read) << read.error();
      EXPECT_TRUE(read->params() == params);
      EXPECT_TRUE(test::EqualBytes(read->Table(), filter->Table()));
      EXPECT_EQ(read->Serialize(), wire);
      EXPECT_EQ(read->SizeInBytes(), filter->SizeInBytes());
      ASSERT_EQ(read->ExpectedFpr().has_value(), filter->ExpectedFpr().has_value());
      if (filter->ExpectedFpr()) {
        EXPECT_EQ(read->ExpectedFpr()->mean, filter->ExpectedFpr()->mean);
      }
      for (const uint64_t hash : test::MixedHashes(100000, n)) {
        ASSERT_EQ(read->MayContain(hash), filter->MayContain(hash));
      }
    }
  }
}

// What was inserted after the build comes back too.
TYPED_TEST(WireTest, RoundTripAfterInserts) {
  if constexpr (DynamicFilter<TypeParam>) {
    Result<TypeParam> filter = TypeParam::Build(TestHashes(0, 100), {});
    ASSERT_TRUE(filter) << filter.error();
    for (const uint64_t hash : TestHashes(100, 500)) (void)filter->Insert(hash);
    const Result<TypeParam> read = TypeParam::Deserialize(filter->Serialize());
    ASSERT_TRUE(read) << read.error();
    for (const uint64_t hash : test::MixedHashes(100000, 600)) {
      ASSERT_EQ(read->MayContain(hash), filter->MayContain(hash));
    }
    EXPECT_EQ(read->Serialize(), filter->Serialize());
  } else {
    GTEST_SKIP() << "has no Insert";
  }
}

// Case E2: three flips of each byte of the header.
TYPED_TEST(WireTest, RefusesDamageOfEachHeaderByte) {
  const Wire wire = this->Serialized(this->kKeys);
  for (size_t at = 0; at < kHeaderBytes; ++at) {
    SCOPED_TRACE(at);
    for (const int flip : {0x01, 0x80, 0xff}) {
      Wire damaged = wire;
      damaged[at] ^= static_cast<std::byte>(flip);
      this->ExpectRefused(damaged);
    }
  }
}

TYPED_TEST(WireTest, RefusesDamageOfTheContent) {
  const Wire wire = this->Serialized(this->kKeys);
  const size_t payload = wire.size() - kHeaderBytes;
  for (uint64_t i = 0; i < 200; ++i) {
    const uint64_t random = Mix64(i + 1);
    const size_t at = kHeaderBytes + FastRange64(random, payload);
    SCOPED_TRACE(at);
    Wire damaged = wire;
    damaged[at] ^= static_cast<std::byte>(1 << (random % 8));
    this->ExpectRefused(damaged, "checksum");
  }
}

// Case E1: cut by 1 to 64 bytes and to every short length, and with 1 to 7 bytes more.
TYPED_TEST(WireTest, RefusesEveryCutAndEveryAddition) {
  const Wire wire = this->Serialized(this->kKeys);
  const std::span<const std::byte> whole(wire);
  for (size_t length = 0; length < std::min<size_t>(200, wire.size()); ++length) {
    this->ExpectRefused(whole.first(length));
  }
  for (size_t cut = 1; cut <= std::min<size_t>(64, wire.size()); ++cut) {
    this->ExpectRefused(whole.first(wire.size() - cut));
  }
  for (size_t more = 1; more <= 7; ++more) {
    Wire longer = wire;
    longer.resize(wire.size() + more);
    this->ExpectRefused(longer, "payload_bytes");
  }
}

// Cut or lengthened with a header that says so and a checksum that is right.
TYPED_TEST(WireTest, RefusesConsistentCutsAndAdditions) {
  const Wire wire = this->Serialized(this->kKeys);
  const auto resized = [&](size_t size) {
    Wire other = wire;
    other.resize(size);
    StoreU64(size - kHeaderBytes, other, kPayloadBytesAt);
    FixChecksum(other);
    return other;
  };
  for (size_t size = kHeaderBytes; size < std::min<size_t>(264, wire.size()); ++size) {
    this->ExpectRefused(resized(size));
  }
  for (size_t cut = 1; cut <= std::min<size_t>(64, wire.size() - kHeaderBytes); ++cut) {
    this->ExpectRefused(resized(wire.size() - cut));
  }
  for (size_t more = 1; more <= 7; ++more) this->ExpectRefused(resized(wire.size() + more));
}

TYPED_TEST(WireTest, RefusesOtherVersionsAndOtherFilters) {
  const Wire wire = this->Serialized(this->kKeys);
  Wire other_version = wire;
  other_version[kVersionAt] = static_cast<std::byte>(200);
  FixChecksum(other_version);
  this->ExpectRefused(other_version, "version");

  Wire other_name = wire;
  other_name[kFilterAt] = static_cast<std::byte>('X');
  FixChecksum(other_name);
  this->ExpectRefused(other_name, "filter");

  // A name of which this one is the beginning.
  Wire longer_name = wire;
  longer_name[kFilterAt + TypeParam::kInfo.name.size()] = static_cast<std::byte>('2');
  FixChecksum(longer_name);
  this->ExpectRefused(longer_name, "filter");
}

// Fields with values that no writer produces, under a checksum that is right: an error, or a
// filter that can be asked. Under `ulimit -v` too, since nothing is allocated for what is not
// there.
// Case E2: m = 2^60, k = 0 or 255, no number, under a right checksum.
TYPED_TEST(WireTest, SurvivesHostileFields) {
  const Wire wire = this->Serialized(this->kKeys);
  const std::vector<uint64_t> hashes = test::MixedHashes(300, this->kKeys);
  const auto try_it = [&](Wire& hostile) {
    FixChecksum(hostile);
    const Result<TypeParam> filter = TypeParam::Deserialize(hostile);
    if (!filter) {
      EXPECT_FALSE(filter.error().empty());
      return;
    }
    EXPECT_LE(filter->Table().size(), wire.size());
    for (const auto& kernel : TypeParam::Kernels()) {
      (void)kernel.count_batched(filter->view(), hashes.data(), hashes.size());
      (void)kernel.count_single(filter->view(), hashes.data(), hashes.size());
    }
    (void)filter->ExpectedFpr();
    (void)filter->GetDetails();
  };
  const size_t fields_end = std::min<size_t>(wire.size(), kHeaderBytes + 256);
  for (size_t at = kHeaderBytes; at + 8 <= fields_end; at += 8) {
    SCOPED_TRACE(at);
    const uint64_t value = LoadU64(wire, at);
    for (const uint64_t hostile_value :
         {uint64_t{0}, uint64_t{1}, uint64_t{2}, value + 1, value - 1, uint64_t{255},
          uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 60, uint64_t{1} << 63, UINT64_MAX,
          // As a number with a point: infinity, not a number, the least, the greatest.
          uint64_t{0x7ff0000000000000}, uint64_t{0x7ff8000000000000}, uint64_t{0x0000000000000001},
          uint64_t{0x7fefffffffffffff}}) {
      Wire hostile = wire;
      StoreU64(hostile_value, hostile, at);
      try_it(hostile);
    }
  }
  // Any bytes at all, in one to four places.
  for (uint64_t i = 0; i < 500; ++i) {
    Wire hostile = wire;
    for (uint64_t j = 0; j <= i % 4; ++j) {
      const uint64_t random = Mix64(i * 4 + j + 1);
      hostile[kHeaderBytes + FastRange64(random, fields_end - kHeaderBytes)] =
          static_cast<std::byte>(random);
    }
    try_it(hostile);
  }
}

}  // namespace
}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_CONFORMANCE_WIRE_H_
