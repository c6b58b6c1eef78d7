#include "workloads/lsm/rocksdb_policy.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "filters/bloom/rocksdb.h"
#include "filters/hash.h"

namespace filterbench::lsm {
namespace {

constexpr uint64_t kLineBytes = 64;
constexpr uint64_t kTrailerBytes = 5;  // behind the bits: kind, number of probes, reserved
constexpr double kLeastBits = 1;
constexpr double kMostBits = 100;

// What RocksDB takes for the rate of its Bloom filter when it sizes a Ribbon filter: the mean of
// two lines of 512 bits, with a standard deviation of keys more and less than the mean (RocksDB,
// util/bloom_impl.h, BloomMath::CacheLocalFpRate).
double RateOfEquivalentBloom(double bits_per_key) {
  constexpr double kLineBits = 512;
  const int probes = static_cast<int>(
      RocksDbBloomScheme::ProbesForMillibits(RocksDbBloomScheme::MillibitsPerKey(bits_per_key)));
  const double keys = kLineBits / bits_per_key;
  const auto rate = [&](double keys_in_line) {
    return std::pow(1 - std::exp(-probes * keys_in_line / kLineBits), probes);
  };
  return (rate(keys + std::sqrt(keys)) + rate(keys - std::sqrt(keys))) / 2;
}

Result<std::unique_ptr<KeyFilter>> FilterOf(const FilterSource& filters, uint64_t keys) {
  std::vector<uint64_t> hashes(keys);
  for (uint64_t i = 0; i < keys; ++i) hashes[i] = Mix64((i + 1) * kGoldenGamma);
  return filters.policy().Build(hashes, 0);
}

}  // namespace

std::string WhyNoRocksdbPolicy(std::string_view filter, const nlohmann::json& params) {
  if (filter == "always_maybe" || filter == "rocksdb_bloom") return {};
  if (filter != "ribbon") {
    return fmt::format(
        "RocksDB takes no filters from outside; those that it has are here rocksdb_bloom, ribbon "
        "(width 128, system standard) and, for none, always_maybe");
  }
  if (params.at("width") != "128" || params.at("system") != "standard") {
    return "the Ribbon filter of RocksDB has width 128 and system standard";
  }
  return {};
}

std::optional<double> BloomEquivalentBits(double fpr) {
  // The rate falls with the bits but for small steps up where the number of probes changes. There
  // the bits that bisection ends with are beside the step, and its rate is off by less than 2 %.
  double low = kLeastBits;
  double high = kMostBits;
  if (!(fpr <= RateOfEquivalentBloom(low)) || !(fpr >= RateOfEquivalentBloom(high))) {
    return std::nullopt;
  }
  while (high - low > 1e-9) {
    const double middle = (low + high) / 2;
    (RateOfEquivalentBloom(middle) > fpr ? low : high) = middle;
  }
  return high;
}

Result<RocksdbPolicy> MakeRocksdbPolicy(const FilterSource& filters, uint64_t file_keys) {
  RocksdbPolicy made;
  if (filters.filter() == "always_maybe") return made;
  if (filters.filter() == "rocksdb_bloom") {
    made.bits_per_key = filters.params().at("bits_per_key").get<double>();
    made.policy.reset(rocksdb::NewBloomFilterPolicy(made.bits_per_key));
    return made;
  }
  const auto filter = FilterOf(filters, file_keys);
  if (!filter) return Error{filter.error()};
  const std::optional<FprEstimate> fpr = (*filter)->ExpectedFpr();
  const std::optional<double> bits = fpr ? BloomEquivalentBits(fpr->mean) : std::nullopt;
  if (!bits) {
    return Error{fmt::format("ribbon: RocksDB makes Ribbon filters with rates of its Bloom filters "
                             "of {} to {} bits per key, this has {}",
                             kLeastBits, kMostBits, fpr ? fpr->mean : 0)};
  }
  made.is_ribbon = true;
  made.bits_per_key = *bits;
  made.ribbon_fpr = RateOfEquivalentBloom(*bits);
  // In all files, those of flushes too.
  made.policy.reset(rocksdb::NewRibbonFilterPolicy(*bits, -1));
  return made;
}

bool IsBloomInsteadOfRibbon(const RocksdbPolicy& policy, const RocksdbFilterSize& size) {
  const uint64_t lines =
      RocksDbBloomScheme::BlocksFor(size.keys, {.bits_per_key = policy.bits_per_key});
  return policy.is_ribbon && size.bytes == lines * kLineBytes + kTrailerBytes;
}

Result<std::optional<FprEstimate>> ExpectedFprOfFile(const FilterSource& filters,
                                                     const RocksdbPolicy& policy,
                                                     const RocksdbFilterSize& size) {
  if (policy.policy == nullptr) return std::optional<FprEstimate>();
  if (IsBloomInsteadOfRibbon(policy, size)) {
    const RocksDbBloomScheme::Params params{.bits_per_key = policy.bits_per_key};
    return std::optional(RocksDbBloomScheme::Fpr(params, RocksDbBloomScheme::ProbesFor(params),
                                                 size.keys,
                                                 RocksDbBloomScheme::BlocksFor(size.keys, params)));
  }
  if (policy.is_ribbon) {
    // A block of 128 slots has one of two numbers of columns; the share of each is rounded to whole
    // blocks, which changes the rate by one block's part at most.
    const double blocks = std::max(1.0, static_cast<double>(size.keys) / 128);
    return std::optional(
        FprEstimate{.mean = policy.ribbon_fpr, .instance_sd = policy.ribbon_fpr / blocks});
  }
  const auto filter = FilterOf(filters, size.keys);
  if (!filter) return Error{filter.error()};
  return (*filter)->ExpectedFpr();
}

}  // namespace filterbench::lsm
