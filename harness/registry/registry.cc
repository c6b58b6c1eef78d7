#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "filters/catalogue.h"
#include "filters/nearest_name.h"
#include "harness/registry/erased_filter.h"
#include "harness/registry/hashed_pieces.h"
#include "harness/registry/plugin.h"

namespace filterbench {
namespace {

template <Filter F>
class KernelLookups final : public TargetLookups {
 public:
  KernelLookups(const F& filter, const Kernel<typename F::View>& kernel)
      : filter_(filter), kernel_(kernel) {}
  bool MayContain(uint64_t hash) const override {
    return kernel_.count_single(filter_.view(), &hash, 1) != 0;
  }
  void Bits(std::span<const uint64_t> hashes, uint64_t* bits) const override {
    kernel_.bits_batched(filter_.view(), hashes.data(), hashes.size(), bits);
  }

 private:
  const F& filter_;
  const Kernel<typename F::View>& kernel_;
};

template <Filter F>
class Built final : public BuiltFilter {
 public:
  explicit Built(F filter) : filter_(std::move(filter)) {}

  uint64_t SizeInBytes() const override { return filter_.SizeInBytes(); }
  uint64_t AllocatedBytes() const override { return filter_.AllocatedBytes(); }
  std::span<const std::byte> Table() const override { return filter_.Table(); }
  const BuildReport& Report() const override { return filter_.report(); }
  Details GetDetails() const override { return filter_.GetDetails(); }
  std::optional<FprEstimate> ExpectedFpr() const override { return filter_.ExpectedFpr(); }
  std::vector<std::byte> Serialize() const override { return filter_.Serialize(); }

  uint64_t Count(const KeyStream& stream, Mode mode, std::string_view target) const override {
    const Kernel<View>& kernel = KernelOf(target);
    const View view = filter_.view();
    const std::span<const uint64_t> words = stream.words;
    if (mode == Mode::kLatency) return kernel.chain(view, words.data(), words.size());
    if (mode == Mode::kReference) return kernel.count_reference(view, words.data(), words.size());
    if (mode == Mode::kLookupBatched) return CountBatched(kernel, view, stream);
    if (stream.hashing == Hashing::kXxh3U64) {
      return kernel.count_single_u64(view, words.data(), words.size(), stream.hash_seed);
    }
    if (stream.hashing == Hashing::kXxh3Bytes) {
      return kernel.count_single_bytes(view, stream.bytes, stream.hash_seed);
    }
    return kernel.count_single(view, words.data(), words.size());
  }

  void Bits(std::span<const uint64_t> words, std::string_view target,
            uint64_t* bits) const override {
    KernelOf(target).bits_batched(filter_.view(), words.data(), words.size(), bits);
  }

  std::unique_ptr<TargetLookups> On(std::string_view target) const override {
    return std::make_unique<KernelLookups<F>>(filter_, KernelOf(target));
  }

  uint64_t InsertUntilFull(std::span<const uint64_t> hashes) override {
    if constexpr (DynamicFilter<F>) {
      uint64_t accepted = 0;
      for (const uint64_t hash : hashes) {
        if (filter_.Insert(hash) != InsertStatus::kOk) break;
        ++accepted;
      }
      return accepted;
    }
    throw std::logic_error(fmt::format("{} takes no single keys", F::kInfo.name));
  }

  bool Erase(uint64_t hash) override {
    if constexpr (ErasableFilter<F>) return filter_.Erase(hash) == EraseStatus::kOk;
    throw std::logic_error(fmt::format("{} forgets no keys", F::kInfo.name));
  }

  void InsertAll(std::span<const uint64_t> hashes, unsigned threads) override {
    if constexpr (StreamingFilter<F>) {
      filter_.InsertAll(hashes, threads);
    } else {
      throw std::logic_error(fmt::format("{} is not filled in pieces", F::kInfo.name));
    }
  }

 private:
  using View = typename F::View;

  static const Kernel<View>& KernelOf(std::string_view target) {
    const auto kernels = F::Kernels();
    return *std::find_if(kernels.begin(), kernels.end(),
                         [&](const Kernel<View>& kernel) { return kernel.target == target; });
  }

  static uint64_t CountBatched(const Kernel<View>& kernel, const View& view,
                               const KeyStream& stream) {
    if (stream.hashing == Hashing::kPrehashed ||
        (KeyHashingFilter<F> && stream.hashing == Hashing::kXxh3U64)) {
      return kernel.count_batched(view, stream.words.data(), stream.words.size());
    }
    if constexpr (KeyHashingFilter<F>) {
      return kernel.count_single_bytes(view, stream.bytes, stream.hash_seed);
    }
    return SumOverHashedPieces(stream, [&](std::span<const uint64_t> hashes) {
      return kernel.count_batched(view, hashes.data(), hashes.size());
    });
  }

  F filter_;
};

template <Filter F>
class Type final : public FilterType {
 public:
  const FilterInfo& info() const override { return F::kInfo; }
  std::vector<KnobInfo> knobs() const override { return DescribeKnobs<F>(); }
  std::vector<std::string_view> targets() const override {
    std::vector<std::string_view> names;
    for (const auto& kernel : F::Kernels()) names.push_back(kernel.target);
    return names;
  }
  bool batched_by_reference(std::string_view target) const override {
    const auto kernels = F::Kernels();
    return std::any_of(kernels.begin(), kernels.end(), [&](const auto& kernel) {
      return kernel.target == target && kernel.count_batched == kernel.count_reference;
    });
  }
  bool hashes_keys() const override { return KeyHashingFilter<F>; }
  bool can_insert() const override { return DynamicFilter<F>; }
  bool can_erase() const override { return ErasableFilter<F>; }
  bool can_stream() const override { return StreamingFilter<F>; }
  std::optional<double> TheoryFpr(double bits_per_key) const override {
    return F::TheoryFpr(bits_per_key);
  }

  Result<nlohmann::json> CompleteParams(const nlohmann::json& params) const override {
    Result<typename F::Params> parsed = ParamsFromJson<F>(params);
    if (!parsed) return Error{parsed.error()};
    return ParamsToJson<F>(*parsed);
  }

  std::string Contradiction(const nlohmann::json& params) const override {
    if constexpr (requires(const typename F::Params& parsed) { F::Contradiction(parsed); }) {
      const Result<typename F::Params> parsed = ParamsFromJson<F>(params);
      return parsed ? F::Contradiction(*parsed) : parsed.error();
    }
    return {};
  }

  Result<std::unique_ptr<BuiltFilter>> Build(const KeyStream& keys, const nlohmann::json& params,
                                             uint64_t seed) const override {
    return Erase(params, seed,
                 [&](const typename F::Params& parsed) { return BuildFrom(keys, parsed); });
  }

  Result<std::unique_ptr<BuiltFilter>> Deserialize(
      std::span<const std::byte> bytes) const override {
    Result<F> filter = F::Deserialize(bytes);
    if (!filter) return Error{filter.error()};
    return std::unique_ptr<BuiltFilter>(std::make_unique<Built<F>>(std::move(*filter)));
  }

  Result<std::unique_ptr<BuiltFilter>> Create(uint64_t keys, const nlohmann::json& params,
                                              uint64_t seed) const override {
    return Erase(params, seed, [&](const typename F::Params& parsed) -> Result<F> {
      if constexpr (DynamicFilter<F>) return F::Create(keys, parsed);
      throw std::logic_error(fmt::format("{} takes no single keys", F::kInfo.name));
    });
  }

 private:
  template <class Make>
  static Result<std::unique_ptr<BuiltFilter>> Erase(const nlohmann::json& params, uint64_t seed,
                                                    const Make& make) {
    Result<typename F::Params> parsed = ParamsFromJson<F>(params);
    if (!parsed) return Error{parsed.error()};
    parsed->seed = seed;
    Result<F> filter = make(*parsed);
    if (!filter) return Error{filter.error()};
    return std::unique_ptr<BuiltFilter>(std::make_unique<Built<F>>(std::move(*filter)));
  }

  static Result<F> BuildFrom(const KeyStream& keys, const typename F::Params& params) {
    if constexpr (KeyHashingFilter<F>) {
      if (keys.hashing == Hashing::kXxh3Bytes) return F::BuildFromBytes(keys.bytes, params);
    }
    return F::Build(keys.words, params);
  }
};

std::vector<std::unique_ptr<FilterType>>& AllTypes() {
  static auto types = [] {
    std::vector<std::unique_ptr<FilterType>> list;
    Catalogue::ForEach([&]<class F>() { list.push_back(std::make_unique<Type<F>>()); });
    return list;
  }();
  return types;
}

std::vector<LoadedPlugin>& AllPlugins() {
  static std::vector<LoadedPlugin> plugins;
  return plugins;
}

}  // namespace

std::span<const std::unique_ptr<FilterType>> FilterTypes() { return AllTypes(); }

std::span<const LoadedPlugin> LoadedPlugins() { return AllPlugins(); }

std::optional<Error> LoadPlugin(const std::string& path) {
  Result<Plugin> plugin = OpenPlugin(path);
  if (!plugin) return Error{plugin.error()};
  for (const LoadedPlugin& loaded : AllPlugins()) {
    if (loaded.path == path && loaded.digest == plugin->digest) return std::nullopt;
  }
  LoadedPlugin loaded{.path = path, .digest = plugin->digest, .filters = {}};
  for (const auto& type : plugin->types) {
    const std::string name(type->info().name);
    const bool taken = FindFilterType(name).has_value() ||
                       std::ranges::count(loaded.filters, name) != 0;
    if (taken) return Error{fmt::format("{}: there is a filter {} already", path, name)};
    loaded.filters.push_back(name);
  }
  for (auto& type : plugin->types) AllTypes().push_back(std::move(type));
  AllPlugins().push_back(std::move(loaded));
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> FiltersNotBuilt() {
  std::vector<std::pair<std::string, std::string>> list;
  for (const FilterNotBuilt& filter : kFiltersNotBuilt) {
    list.emplace_back(filter.type, filter.reason);
  }
  return list;
}

Result<const FilterType*> FindFilterType(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& type : FilterTypes()) {
    if (type->info().name == name) return type.get();
    names.emplace_back(type->info().name);
  }
  return Error{UnknownName("filter", name, names)};
}

}  // namespace filterbench
