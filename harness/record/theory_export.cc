#include "harness/record/theory_export.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "filters/catalogue.h"
#include "filters/filter.h"
#include "filters/params_json.h"
#include "filters/theory/bloom.h"
#include "workloads/lsm/block_reads.h"

namespace filterbench {
namespace {

using nlohmann::json;

// Of one filter: the parameters that were built, as canonical JSON, and for how many keys.
using Builds = std::map<std::string, std::set<uint64_t>>;

// --- FPR against bits per key ---

// One point for each number of bits per key where `fpr_at` has one.
template <class FprAt>
json Points(FprAt fpr_at) {
  constexpr int kStepsPerBit = 4;
  json points = json::array();
  for (int step = 2 * kStepsPerBit; step <= 24 * kStepsPerBit; ++step) {
    const double bits_per_key = static_cast<double>(step) / kStepsPerBit;
    if (const std::optional<double> fpr = fpr_at(bits_per_key)) {
      points.push_back({{"bits_per_key", bits_per_key}, {"fpr", *fpr}});
    }
  }
  return points;
}

// The inverse of theory::InformationBoundBitsPerKey.
json BoundCurve() {
  return {{"filter", nullptr},
          {"label", "log2(1/FPR)"},
          {"source", "Carter, Floyd, Gill, Markowsky, Wegman 1978"},
          {"points", Points([](double bits_per_key) -> std::optional<double> {
             return std::exp2(-bits_per_key);
           })}};
}

// --- FPR against the bits of small tables ---

// Sizes from 128 to 65,536 bits, each larger than the one before by a factor of sqrt(2), and cut to
// whole keys.
template <class FprOf>
json SmallTable(const char* filter, json params, uint64_t bits_per_key, std::string_view label,
                std::string_view source, const FprOf& fpr_of) {
  constexpr int kSizes = 19;
  json points = json::array();
  for (int i = 0; i < kSizes; ++i) {
    const double bits = 128 * std::exp2(0.5 * i);
    const auto keys =
        static_cast<uint64_t>(std::llround(bits / static_cast<double>(bits_per_key)));
    points.push_back({{"bits", keys * bits_per_key},
                      {"keys", keys},
                      {"fpr", fpr_of(keys, keys * bits_per_key).mean}});
  }
  return {{"filter", filter == nullptr ? json() : json(filter)},
          {"params", std::move(params)},
          {"label", label},
          {"source", source},
          {"points", std::move(points)}};
}

json SmallTables() {
  json curves = json::array();
  for (const auto& [bits_per_key, k] : {std::pair<uint64_t, int>{10, 6}, {16, 11}}) {
    const json params = {{"bits_per_key", static_cast<double>(bits_per_key)}, {"k", k}};
    const auto with_probing = [&](const char* probing) {
      json all = params;
      all["probing"] = probing;
      return all;
    };
    curves.push_back(SmallTable(
        "classic_bloom", params, bits_per_key, "k independent hash functions",
        "exact: E[(set/m)^k], Bose et al. 2008; Christensen, Roginsky, Jimeno 2010",
        [k = k](uint64_t n, uint64_t bits) { return theory::ClassicBloomFpr(n, bits, k); }));
    curves.push_back(SmallTable(
        nullptr, params, bits_per_key, "double hashing, any step",
        "exact: inclusion-exclusion over the query's probes; Kirsch, Mitzenmacher 2006",
        [k = k](uint64_t n, uint64_t bits) { return theory::DoubleHashingFpr(n, bits, k, 0); }));
    curves.push_back(SmallTable(
        "km_bloom", with_probing("plain"), bits_per_key, "double hashing, no step that returns",
        "exact: inclusion-exclusion over the query's probes; Dillinger, Manolios 2004",
        [k = k](uint64_t n, uint64_t bits) {
          return theory::DoubleHashingFpr(n, bits, k, theory::ForbiddenStepDivisor(bits, k));
        }));
    curves.push_back(SmallTable(
        "km_bloom", with_probing("enhanced"), bits_per_key, "enhanced double hashing, first order",
        "not exact: k independent hash functions and n/m^2 (Dillinger, Manolios 2004)",
        [k = k](uint64_t n, uint64_t bits) {
          return theory::EnhancedDoubleHashingFpr(n, bits, k);
        }));
  }
  return curves;
}

// --- Slots per key against the number of keys ---

// Slots of the table that F::Build makes first for n distinct keys, by the function with which it
// does so; nothing where there are too many keys, or where the size is no function of their number.
template <class F>
std::optional<uint64_t> SlotsFor(uint64_t n, const typename F::Params& params) {
  if constexpr (requires { F::LayoutFor(n, params, 0)->Slots(); }) {
    const auto layout = F::LayoutFor(n, params, 0);
    if (layout) return layout->Slots();
  } else if constexpr (requires { F::ShapeFor(n, params, 0)->slots(); }) {
    const auto shape = F::ShapeFor(n, params, 0);
    if (shape) return shape->slots();
  } else if constexpr (requires { F::ShapeFor(n, params, 0)->slots + uint64_t{0}; }) {
    const auto shape = F::ShapeFor(n, params, 0);
    if (shape) return shape->slots;
  } else if constexpr (requires { F::UnitsFor(n, params) * F::SlotsPerUnit(params); }) {
    return F::UnitsFor(n, params) * F::SlotsPerUnit(params);
  }
  return std::nullopt;
}

// Sixteen to a decade, and all of `key_counts`.
template <class F>
json SlotsCurve(const typename F::Params& params, const std::set<uint64_t>& key_counts) {
  std::set<uint64_t> grid = key_counts;
  const double last = static_cast<double>(*key_counts.rbegin());
  for (double n = static_cast<double>(*key_counts.begin()); n < last; n *= std::pow(10, 1.0 / 16)) {
    grid.insert(static_cast<uint64_t>(std::llround(n)));
  }
  json points = json::array();
  for (const uint64_t n : grid) {
    if (n == 0) continue;
    if (const std::optional<uint64_t> slots = SlotsFor<F>(n, params)) {
      points.push_back({{"keys", n},
                        {"slots_per_key", static_cast<double>(*slots) / static_cast<double>(n)}});
    }
  }
  return points;
}

// Adds a curve for each of the parameters that were built for several numbers of keys.
template <class F>
void AddSlotsCurves(const Builds& builds, json& curves) {
  for (const auto& [text, key_counts] : builds) {
    if (key_counts.size() < 2) continue;
    const json all = json::parse(text);
    const Result<typename F::Params> params = ParamsFromJson<F>(all);
    if (!params) continue;  // of a program that knew other parameters
    json points = SlotsCurve<F>(*params, key_counts);
    if (points.empty()) continue;
    curves.push_back({{"filter", F::kInfo.name},
                      {"params", all},
                      {"label", F::kInfo.name},
                      {"source", F::kInfo.source},
                      {"points", std::move(points)}});
  }
}

// --- Block reads ---

json BlockReadCurves() {
  constexpr uint64_t kMostFiles = 40;
  json curves = json::array();
  for (const auto& [key, name, label] :
       {std::tuple{SoughtKey::kAbsent, "absent", "key in no file"},
        std::tuple{SoughtKey::kInDeepestLevel, "deepest", "key in the last file asked"}}) {
    json points = json::array();
    for (uint64_t files = 1; files <= kMostFiles; ++files) {
      const BlockReads reads = BlockReadsPerGet(files, key);
      points.push_back({{"candidate_files", files},
                        {"certain_reads", reads.certain},
                        {"reads_per_fpr", reads.per_fpr}});
    }
    curves.push_back({{"key", name},
                      {"label", label},
                      {"source", "Dayan, Athanassoulis, Idreos 2017, section 4"},
                      {"points", std::move(points)}});
  }
  return curves;
}

// Of the filters in `builds`.
json CurvesOf(const std::map<std::string, Builds>& builds) {
  json curves = json::array();
  json slots = json::array();
  Catalogue::ForEach([&]<class F>() {
    const auto wanted = builds.find(std::string(F::kInfo.name));
    if (wanted == builds.end()) return;
    AddSlotsCurves<F>(wanted->second, slots);
    json points = Points(&F::TheoryFpr);
    if (points.empty()) return;
    curves.push_back({{"filter", F::kInfo.name},
                      {"label", F::kInfo.name},
                      {"source", F::kInfo.fpr_formula},
                      {"points", std::move(points)}});
  });
  curves.push_back(BoundCurve());
  json theory = {{"schema", "filterbench/theory/1"},
                 {"curves", std::move(curves)},
                 {"block_reads", BlockReadCurves()}};
  if (builds.contains("km_bloom")) theory["small_tables"] = SmallTables();
  if (!slots.empty()) theory["slots_per_key"] = std::move(slots);
  return theory;
}

}  // namespace

json TheoryCurves() {
  std::map<std::string, Builds> builds;
  Catalogue::ForEach([&]<class F>() {
    builds[std::string(F::kInfo.name)][ParamsToJson<F>({}).dump()] = {100, 100'000'000};
  });
  return CurvesOf(builds);
}

json TheoryCurves(std::span<const Sample> samples) {
  std::map<std::string, Builds> builds;
  for (const Sample& sample : samples) {
    Builds& of_filter = builds[sample.point.filter];
    if (sample.point.mode == Mode::kBuild) {
      of_filter[sample.point.params.dump()].insert(sample.point.keys);
    }
  }
  return CurvesOf(builds);
}

}  // namespace filterbench
