#ifndef FILTERBENCH_HARNESS_REGISTRY_ERASED_FILTER_H_
#define FILTERBENCH_HARNESS_REGISTRY_ERASED_FILTER_H_

// Filters without their types, for the parts of the harness that treat all alike. Virtual calls are
// made over whole streams; inside, lookups are inlined.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "filters/filter.h"
#include "filters/params_json.h"
#include "filters/result.h"
#include "harness/spec/point.h"

namespace filterbench {

// What lookups and builds are fed with, in the form that the hashing of a point asks for.
struct KeyStream {
  Hashing hashing = Hashing::kPrehashed;
  std::span<const uint64_t> words;  // hashes (kPrehashed) or integer keys (kXxh3U64)
  ByteKeys bytes;                   // kXxh3Bytes
  uint64_t hash_seed = 0;

  size_t size() const { return hashing == Hashing::kXxh3Bytes ? bytes.size : words.size(); }
};

// Lookups by the kernel of one target, resolved once: for callers that ask key by key.
class TargetLookups {
 public:
  virtual ~TargetLookups() = default;
  virtual bool MayContain(uint64_t hash) const = 0;
  // As BuiltFilter::Bits.
  virtual void Bits(std::span<const uint64_t> hashes, uint64_t* bits) const = 0;
};

// A filter that was built.
class BuiltFilter {
 public:
  virtual ~BuiltFilter() = default;

  virtual uint64_t SizeInBytes() const = 0;
  virtual uint64_t AllocatedBytes() const = 0;
  virtual std::span<const std::byte> Table() const = 0;
  virtual const BuildReport& Report() const = 0;
  virtual Details GetDetails() const = 0;
  virtual std::optional<FprEstimate> ExpectedFpr() const = 0;
  virtual std::vector<std::byte> Serialize() const = 0;

  // Number of answers `maybe` over the stream, in the way of `mode` (any lookup mode) by the kernel
  // of `target`, which is one of FilterType::targets.
  virtual uint64_t Count(const KeyStream& stream, Mode mode, std::string_view target) const = 0;
  // Answers as bits, by the batched kernel of `target`; the stream in the same form as the keys
  // that the filter was built from.
  virtual void Bits(std::span<const uint64_t> words, std::string_view target,
                    uint64_t* bits) const = 0;

  // Of `target`, one of FilterType::targets; valid while the filter lives.
  virtual std::unique_ptr<TargetLookups> On(std::string_view target) const = 0;

  // Inserts key by key until one is refused; the number that were accepted. Only where
  // FilterType::can_insert().
  virtual uint64_t InsertUntilFull(std::span<const uint64_t> hashes) = 0;
  // Whether the hash was found and taken out. Only where FilterType::can_erase().
  virtual bool Erase(uint64_t hash) = 0;
  // Only where FilterType::can_stream().
  virtual void InsertAll(std::span<const uint64_t> hashes, unsigned threads) = 0;
};

// A filter of the catalogue.
class FilterType {
 public:
  virtual ~FilterType() = default;

  virtual const FilterInfo& info() const = 0;
  virtual std::vector<KnobInfo> knobs() const = 0;
  // Targets that have a kernel and run here, the best first, `scalar` last.
  virtual std::vector<std::string_view> targets() const = 0;
  // Whether batched lookups of a target are the scalar reference compiled for it, since vectors do
  // not help there.
  virtual bool batched_by_reference(std::string_view target) const = 0;
  // Takes the key through several hash functions of its own, so that it is built from keys and not
  // from hashes wherever lookups include hashing.
  virtual bool hashes_keys() const = 0;
  virtual bool can_insert() const = 0;
  virtual bool can_erase() const = 0;
  virtual bool can_stream() const = 0;
  // Code that is not of this program: it is measured in a process of its own.
  virtual bool is_external() const { return false; }
  virtual std::optional<double> TheoryFpr(double bits_per_key) const = 0;

  // All knobs of the given ones, defaults filled in; the error starts with the knob's name.
  virtual Result<nlohmann::json> CompleteParams(const nlohmann::json& params) const = 0;
  // How complete parameters contradict each other; empty if they do not.
  virtual std::string Contradiction(const nlohmann::json& params) const = 0;
  // `params` as CompleteParams gives them. Keys in the form of their hashing: hashes, unless
  // hashes_keys().
  virtual Result<std::unique_ptr<BuiltFilter>> Build(const KeyStream& keys,
                                                     const nlohmann::json& params,
                                                     uint64_t seed) const = 0;
  // Empty, sized for `keys` hashes; only where can_insert().
  virtual Result<std::unique_ptr<BuiltFilter>> Create(uint64_t keys, const nlohmann::json& params,
                                                      uint64_t seed) const = 0;
  // From BuiltFilter::Serialize; trusts nothing. Not where is_external().
  virtual Result<std::unique_ptr<BuiltFilter>> Deserialize(
      std::span<const std::byte> bytes) const = 0;
};

// All filters of this build in the order of the catalogue, then those of plug-ins.
std::span<const std::unique_ptr<FilterType>> FilterTypes();
// Filters of the catalogue that this build cannot offer: type and reason.
std::vector<std::pair<std::string, std::string>> FiltersNotBuilt();

// A shared library whose filters were added (harness/registry/plugin.h).
struct LoadedPlugin {
  std::string path;
  std::string digest;  // XXH3-64 of the file, 16 hex digits
  std::vector<std::string> filters;
};
// Adds the filters of a shared library to FilterTypes(), once. The error starts with the path.
std::optional<Error> LoadPlugin(const std::string& path);
std::span<const LoadedPlugin> LoadedPlugins();

// By name; the error names the nearest one, or says why this build has it not.
Result<const FilterType*> FindFilterType(std::string_view name);

}  // namespace filterbench

#endif  // FILTERBENCH_HARNESS_REGISTRY_ERASED_FILTER_H_
