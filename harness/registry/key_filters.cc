#include "harness/registry/key_filters.h"

#include <map>
#include <utility>

#include <fmt/format.h>

namespace filterbench {
namespace {

using nlohmann::json;

class ErasedKeyFilter final : public KeyFilter {
 public:
  ErasedKeyFilter(std::unique_ptr<BuiltFilter> filter, std::string_view target)
      : filter_(std::move(filter)), lookups_(filter_->On(target)) {}

  bool MayContain(uint64_t hash) const override { return lookups_->MayContain(hash); }
  void MayContainBits(std::span<const uint64_t> hashes, uint64_t* bits) const override {
    lookups_->Bits(hashes, bits);
  }
  uint64_t SizeInBytes() const override { return filter_->SizeInBytes(); }
  std::optional<uint64_t> PeakBuildBytes() const override {
    const uint64_t peak = filter_->Report().peak_bytes;
    return peak != 0 ? std::optional(peak) : std::nullopt;
  }
  std::optional<FprEstimate> ExpectedFpr() const override { return filter_->ExpectedFpr(); }
  std::span<const std::byte> Table() const override { return filter_->Table(); }
  std::vector<std::byte> Serialize() const override { return filter_->Serialize(); }
  bool Insert(uint64_t hash) override { return filter_->InsertUntilFull({&hash, 1}) == 1; }

 private:
  std::unique_ptr<BuiltFilter> filter_;
  std::unique_ptr<TargetLookups> lookups_;  // of filter_
};

class CataloguePolicy final : public FilterPolicy {
 public:
  CataloguePolicy(const FilterType& type, json params, std::string_view target)
      : type_(type),
        params_(std::move(params)),
        target_(target),
        identity_(fmt::format("{}{}", type.info().name, params_.dump())) {}

  std::string_view identity() const override { return identity_; }
  bool can_insert() const override { return type_.can_insert(); }

  Result<std::unique_ptr<KeyFilter>> Build(std::span<const uint64_t> hashes,
                                           uint64_t seed) const override {
    return Wrap(type_.Build({.words = hashes}, params_, seed));
  }
  Result<std::unique_ptr<KeyFilter>> Create(uint64_t keys, uint64_t seed) const override {
    return Wrap(type_.Create(keys, params_, seed));
  }
  Result<std::unique_ptr<KeyFilter>> Load(std::span<const std::byte> bytes) const override {
    return Wrap(type_.Deserialize(bytes));
  }

 private:
  Result<std::unique_ptr<KeyFilter>> Wrap(Result<std::unique_ptr<BuiltFilter>> filter) const {
    if (!filter) return Error{filter.error()};
    return std::unique_ptr<KeyFilter>(
        std::make_unique<ErasedKeyFilter>(std::move(*filter), target_));
  }

  const FilterType& type_;
  const json params_;
  const std::string target_;
  const std::string identity_;
};

class CatalogueSource final : public FilterSource {
 public:
  CatalogueSource(const FilterType& type, json params, std::string_view target)
      : type_(type), params_(std::move(params)), target_(target), policy_(type, params_, target) {}

  std::string_view filter() const override { return type_.info().name; }
  const json& params() const override { return params_; }
  const FilterPolicy& policy() const override { return policy_; }

  Result<const FilterPolicy*> WithBitsPerKey(double bits_per_key) override {
    if (!params_.contains("bits_per_key")) {
      return Error{fmt::format("{} has no parameter bits_per_key", filter())};
    }
    json given = params_;
    given["bits_per_key"] = bits_per_key;
    Result<json> params = type_.CompleteParams(given);
    if (!params) return Error{params.error()};
    if (std::string problem = type_.Contradiction(*params); !problem.empty()) {
      return Error{std::move(problem)};
    }
    auto& policy = others_[bits_per_key];
    if (policy == nullptr) {
      policy = std::make_unique<CataloguePolicy>(type_, std::move(*params), target_);
    }
    return policy.get();
  }

 private:
  const FilterType& type_;
  const json params_;
  const std::string target_;
  const CataloguePolicy policy_;
  std::map<double, std::unique_ptr<CataloguePolicy>> others_;
};

}  // namespace

std::unique_ptr<FilterSource> MakeFilterSource(const FilterType& type, json params,
                                               std::string_view target) {
  return std::make_unique<CatalogueSource>(type, std::move(params), target);
}

}  // namespace filterbench
