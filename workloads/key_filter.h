#ifndef FILTERBENCH_WORKLOADS_KEY_FILTER_H_
#define FILTERBENCH_WORKLOADS_KEY_FILTER_H_

// Filters as an application holds them: whichever the sweep names, behind virtual calls, since an
// application asks one key at a time and does far more between two of them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/fpr.h"
#include "filters/result.h"

namespace filterbench {

// One filter, over one set of hashes.
class KeyFilter {
 public:
  virtual ~KeyFilter() = default;

  virtual bool MayContain(uint64_t hash) const = 0;
  // Bit i % 64 of bits[i / 64] is answer i; bits has a word for each 64 hashes begun.
  virtual void MayContainBits(std::span<const uint64_t> hashes, uint64_t* bits) const = 0;

  virtual uint64_t SizeInBytes() const = 0;
  // Working memory of the build, besides the keys; nothing where the filter does not say.
  virtual std::optional<uint64_t> PeakBuildBytes() const = 0;
  virtual std::optional<FprEstimate> ExpectedFpr() const = 0;
  // What it looks keys up in.
  virtual std::span<const std::byte> Table() const = 0;
  // For FilterPolicy::Load of an equal policy.
  virtual std::vector<std::byte> Serialize() const = 0;

  // False if the key was refused, which changes nothing. Only where FilterPolicy::can_insert().
  virtual bool Insert(uint64_t hash) = 0;
};

// How filters of an application are made: a filter of the catalogue with all its parameters.
class FilterPolicy {
 public:
  virtual ~FilterPolicy() = default;

  // The filter and its parameters, equal for policies whose filters can load each other's bytes.
  virtual std::string_view identity() const = 0;
  // Whether its filters take single keys.
  virtual bool can_insert() const = 0;

  virtual Result<std::unique_ptr<KeyFilter>> Build(std::span<const uint64_t> hashes,
                                                   uint64_t seed) const = 0;
  // Empty, sized for `keys` hashes. Only where can_insert().
  virtual Result<std::unique_ptr<KeyFilter>> Create(uint64_t keys, uint64_t seed) const = 0;
  // Trusts nothing: bytes that are no filter of this policy are an error.
  virtual Result<std::unique_ptr<KeyFilter>> Load(std::span<const std::byte> bytes) const = 0;
};

// The filter that a sweep asks for, and the same at other sizes.
class FilterSource {
 public:
  virtual ~FilterSource() = default;

  virtual std::string_view filter() const = 0;          // its name in the catalogue
  virtual const nlohmann::json& params() const = 0;     // all its knobs
  virtual const FilterPolicy& policy() const = 0;
  // The same filter at another number of bits per key; lives as long as the source. The error says
  // that it has no such knob, or that the number is out of its range.
  virtual Result<const FilterPolicy*> WithBitsPerKey(double bits_per_key) = 0;
};

}  // namespace filterbench

#endif  // FILTERBENCH_WORKLOADS_KEY_FILTER_H_
