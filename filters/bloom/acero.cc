#include "filters/bloom/acero.h"

#include <array>
#include <random>

#include "filters/theory/rotated_masks.h"

namespace filterbench {
namespace {

// A string of bits in which every window of kMaskBits has kMinSet to kMaxSet ones, as Arrow draws
// it.
class MaskStringMaker {
 public:
  MaskStringMaker() : engine_(Seeded()) {
    int set = static_cast<int>(Between(AceroScheme::kMinSet, AceroScheme::kMaxSet));
    for (int i = 0; i < set; ++i) {
      uint64_t position;
      do {
        position = Between(0, AceroScheme::kMaskBits - 1);
      } while (Get(position));
      Set(position);
    }
    constexpr uint64_t kEnd = AceroScheme::kMasks + AceroScheme::kMaskBits - 1;
    for (uint64_t i = AceroScheme::kMaskBits; i < kEnd; ++i) {
      const bool leaves = Get(i - AceroScheme::kMaskBits);
      if (leaves && set == AceroScheme::kMinSet) {
        Set(i);
      } else if (!leaves && set == AceroScheme::kMaxSet) {
        continue;
      } else {
        // One with the share of ones that windows have in the mean.
        const bool enters = Between(0, 2 * AceroScheme::kMaskBits - 1) <
                            AceroScheme::kMinSet + AceroScheme::kMaxSet;
        if (enters) Set(i);
        set += (enters ? 1 : 0) - (leaves ? 1 : 0);
      }
    }
  }

  const std::array<uint8_t, AceroScheme::kStringBytes>& string() const { return string_; }

 private:
  static std::mt19937 Seeded() {
    std::seed_seq zeros{0, 0, 0, 0, 0, 0, 0, 0};
    return std::mt19937(zeros);
  }
  // What std::uniform_int_distribution<uint64_t> over all values draws from this engine in the
  // libraries that Arrow is built with: two words, the higher one first.
  uint64_t Between(uint64_t low, uint64_t high) {
    const uint64_t higher = engine_();
    return low + (higher << 32 | engine_()) % (high - low + 1);
  }
  bool Get(uint64_t i) const { return (string_[i / 8] >> (i % 8) & 1) != 0; }
  void Set(uint64_t i) { string_[i / 8] |= static_cast<uint8_t>(1 << (i % 8)); }

  std::mt19937 engine_;
  std::array<uint8_t, AceroScheme::kStringBytes> string_ = {};
};

const theory::RotatedMaskLaw& Law() {
  static const theory::RotatedMaskLaw law = [] {
    std::vector<uint64_t> masks;
    for (uint64_t i = 0; i < AceroScheme::kMasks; ++i) {
      masks.push_back(AceroScheme::MaskFrom(AceroScheme::MaskString(), i));
    }
    return theory::RotatedMaskLaw(masks);
  }();
  return law;
}

}  // namespace

const uint8_t* AceroScheme::MaskString() {
  static const MaskStringMaker maker;
  return maker.string().data();
}

FprEstimate AceroScheme::Fpr(const Params&, uint32_t, uint64_t n, uint64_t blocks) {
  return Law().Fpr(n, blocks);
}

double AceroScheme::TheoryFpr(double bits_per_key) { return Law().Fpr(bits_per_key); }

}  // namespace filterbench
