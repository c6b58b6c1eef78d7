// The rules of overlapping windows; those of all filters that move tags are in tag_filter_test.cc.

#include "filters/cuckoo/windowed.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "filters/test_support.h"

namespace filterbench {
namespace {

using test::TestHash;
using test::TestHashes;

constexpr WindowedCuckoo::SlotBits kAllBits[] = {
    WindowedCuckoo::SlotBits::k8, WindowedCuckoo::SlotBits::k12, WindowedCuckoo::SlotBits::k16};

template <int kBits>
void CheckSlotsAgainstArray() {
  using Slots = WindowedSlots<kBits>;
  constexpr uint64_t kSlots = 9;
  std::vector<std::byte> table(kSlots * 2 + kCacheLineBytes);
  std::vector<uint64_t> values(kSlots);
  for (uint64_t step = 0; step < 20000; ++step) {
    const uint64_t random = Mix64(step + 1);
    const uint64_t slot = random % kSlots;
    values[slot] = random >> 8 & (step % 2 == 0 ? 7 : Slots::kSlotMask);
    Slots::Set(table.data(), slot, values[slot]);
    for (uint64_t i = 0; i < kSlots; ++i) ASSERT_EQ(Slots::Get(table.data(), i), values[i]);
    for (uint64_t i = 0; i + 1 < kSlots; ++i) {
      const uint64_t window = Slots::Window(table.data(), i);
      for (const uint64_t tag : {uint64_t{1}, uint64_t{2}, values[i] >> 1, values[i + 1] >> 1}) {
        if (tag == 0) continue;
        // Only a tag that says that it lies in that half.
        uint64_t expected = values[i] == 2 * tag ? uint64_t{1} << (kBits - 1) : 0;
        if (values[i + 1] == 2 * tag + 1) expected |= uint64_t{1} << (2 * kBits - 1);
        ASSERT_EQ(Slots::HalvesWith(window, tag), expected);
      }
      uint64_t expected = values[i] == 0 ? uint64_t{1} << (kBits - 1) : 0;
      if (values[i + 1] == 0) expected |= uint64_t{1} << (2 * kBits - 1);
      ASSERT_EQ(Slots::FreeHalves(window), expected);
      if (expected != 0) {
        ASSERT_EQ(Slots::FirstHalf(expected), values[i] == 0 ? 0u : 1u);
      }
    }
  }
}

TEST(WindowedSlotsTest, AreAnArrayWhoseWindowsOverlap) {
  CheckSlotsAgainstArray<8>();
  CheckSlotsAgainstArray<12>();
  CheckSlotsAgainstArray<16>();
}

// An insert is refused only if moves of stored tags can bring no free slot into the two windows.
TEST(WindowedTest, RefusesOnlyWhatCannotBePlaced) {
  for (const auto bits : kAllBits) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      auto filter = WindowedCuckoo::WithUnits(16, {.slot_bits = bits, .seed = seed});
      ASSERT_TRUE(filter);
      uint64_t i = seed << 32;
      while (filter->Insert(TestHash(i)) == InsertStatus::kOk) ++i;
      const bool free_slot_in_reach = filter->view().Specialize([&]<class V>(const V& view) {
        const CuckooPlace place = view.PlaceOf(TestHash(i));
        std::set<uint64_t> reached = {place.bucket, place.bucket + 1, place.partner,
                                      place.partner + 1};
        for (size_t size = 0; size != reached.size();) {
          size = reached.size();
          for (const uint64_t slot : std::vector<uint64_t>(reached.begin(), reached.end())) {
            const uint64_t value = V::Slots::Get(view.table, slot);
            if (value == 0) return true;
            const uint64_t window = slot - (value & 1);
            const uint64_t partner = view.PartnerOf(window, value >> 1);
            reached.insert({window, window + 1, partner, partner + 1});
          }
        }
        return false;
      });
      EXPECT_FALSE(free_slot_in_reach);
      EXPECT_GT(filter->Load(), 0.6);
    }
  }
}

TEST(WindowedTest, RefusesSlotsThatHoldNoTag) {
  alignas(64) std::byte table[4 + kCacheLineBytes] = {};
  // Four slots of eight bits, three windows.
  const WindowedCuckoo::View view = {table, 3, 0, WindowedCuckoo::SlotBits::k8, false};
  const auto error_with = [&](int slot, int value) {
    std::fill_n(table, 4, std::byte{0});
    table[slot] = static_cast<std::byte>(value);
    const Result<uint64_t> count = WindowedScheme::CountTags(view);
    return count ? "counts " + std::to_string(*count) : count.error();
  };
  EXPECT_EQ(error_with(0, 0), "counts 0");
  EXPECT_EQ(error_with(0, 4), "counts 1");
  EXPECT_EQ(error_with(3, 5), "counts 1");
  EXPECT_EQ(error_with(1, 1), "slot 1 holds 1, which is no tag");
  // There is no window that ends before the first slot or starts at the last one.
  EXPECT_EQ(error_with(0, 5), "slot 0 holds 5, which is no tag");
  EXPECT_EQ(error_with(3, 4), "slot 3 holds 4, which is no tag");
}

// More than 2^32 windows without the memory: a mapping of which only what is touched exists.
TEST(WindowedKernelTest, AgreesWithTheReferenceBeyond32BitWindows) {
  constexpr uint64_t kWindows = (uint64_t{1} << 32) + 12345;
  for (const auto bits : kAllBits) {
    const uint64_t bytes = (kWindows + 1) * 2 + kCacheLineBytes;
    void* mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) GTEST_SKIP() << "no address space for " << bytes << " bytes";
    auto* table = static_cast<std::byte*>(mapping);
    const WindowedCuckoo::View view = {table, kWindows, Mix64(1), bits, true};
    const std::vector<uint64_t> hashes = TestHashes(0, 1000);
    view.Specialize([&]<class V>(const V& sized) {
      for (size_t i = 0; i < hashes.size(); i += 2) {  // into either window, either half
        const CuckooPlace place = sized.PlaceOf(hashes[i]);
        const uint64_t half = i / 4 % 2;
        V::Slots::Set(table, (i % 4 == 0 ? place.bucket : place.partner) + half,
                      place.tag << 1 | half);
      }
    });
    for (const auto& kernel : WindowedCuckoo::Kernels()) {
      std::vector<uint64_t> answers((hashes.size() + 63) / 64);
      kernel.bits_batched(view, hashes.data(), hashes.size(), answers.data());
      for (size_t i = 0; i < hashes.size(); ++i) {
        ASSERT_EQ(answers[i / 64] >> (i % 64) & 1, view.MayContain(hashes[i]) ? 1 : 0)
            << kernel.target << " " << i;
        if (i % 2 == 0) {
          ASSERT_TRUE(view.MayContain(hashes[i]));
        }
      }
    }
    munmap(mapping, bytes);
  }
}

}  // namespace
}  // namespace filterbench
