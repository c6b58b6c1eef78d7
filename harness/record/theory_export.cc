#include "harness/record/theory_export.h"

#include <cmath>
#include <optional>
#include <utility>

#include "filters/catalogue.h"
#include "filters/filter.h"

namespace filterbench {
namespace {

using nlohmann::json;

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

// Of the filters for which `wanted` says so.
template <class Wanted>
json CurvesOf(const Wanted& wanted) {
  json curves = json::array();
  Catalogue::ForEach([&]<class F>() {
    if (!wanted(std::string(F::kInfo.name))) return;
    json points = Points(&F::TheoryFpr);
    if (points.empty()) return;
    curves.push_back({{"filter", F::kInfo.name},
                      {"label", F::kInfo.name},
                      {"source", F::kInfo.fpr_formula},
                      {"points", std::move(points)}});
  });
  // The inverse of theory::InformationBoundBitsPerKey.
  curves.push_back(
      {{"filter", nullptr},
       {"label", "log2(1/FPR)"},
       {"source", "Carter, Floyd, Gill, Markowsky, Wegman 1978"},
       {"points", Points([](double bits_per_key) -> std::optional<double> {
          return std::exp2(-bits_per_key);
        })}});
  return {{"schema", "filterbench/theory/1"}, {"curves", std::move(curves)}};
}

}  // namespace

json TheoryCurves() {
  return CurvesOf([](const std::string&) { return true; });
}

json TheoryCurves(const std::set<std::string>& filters) {
  return CurvesOf([&](const std::string& name) { return filters.contains(name); });
}

}  // namespace filterbench
