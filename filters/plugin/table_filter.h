#ifndef FILTERBENCH_FILTERS_PLUGIN_TABLE_FILTER_H_
#define FILTERBENCH_FILTERS_PLUGIN_TABLE_FILTER_H_

// For filters from outside of the tree: all that the contract (filters/filter.h) asks of a filter
// whose state is one table and its parameters, but for what makes it this filter. That is a
// `Scheme`:
//
//   kInfo, Params, kKnobs                       as in filters/filter.h
//   View                                        trivially copyable, with MayContain(hash); made as
//                                               View{table, bytes}, or by MakeView(params, table,
//                                               bytes) where it needs more
//   TableBytes(n, params) -> double             for n keys; what is not whole is rounded up
//   Fill(view, table, hashes) -> std::string    empty, or why the keys do not go into the table,
//                                               which is zero at first; fast enough to be measured
//   Fpr(params, n, bytes) -> FprEstimate  theory for n keys
//
// and, where there are vectors, Kernels(); else lookups are the inlined MayContain. A file of the
// same name that ends in .cc or _kernel.cc and lies beside the header is built with it.
// filters/plugin/example_filter.h is a whole filter.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "filters/filter.h"
#include "filters/table.h"
#include "filters/wire.h"

namespace filterbench {

template <class Scheme>
class TableFilter {
 public:
  using Params = typename Scheme::Params;
  using View = typename Scheme::View;
  static constexpr FilterInfo kInfo = Scheme::kInfo;
  static constexpr auto kKnobs = Scheme::kKnobs;

  static Result<TableFilter> Build(std::span<const uint64_t> hashes, const Params& params) {
    const uint64_t bytes = BytesFor(hashes.size(), params);
    if (bytes > kMaxTableBytes) {
      return Error{fmt::format("too large: needs {} bytes, limit {}", bytes, kMaxTableBytes)};
    }
    Result<AlignedTable> table = AlignedTable::Allocate(bytes);
    if (!table) return Error{table.error()};
    TableFilter filter(params, hashes.size(), std::move(*table));
    std::string problem = Scheme::Fill(filter.view(), filter.table_.data(), hashes);
    if (!problem.empty()) return Error{std::move(problem)};
    return filter;
  }

  View view() const {
    if constexpr (requires { Scheme::MakeView(params_, table_.data(), table_.size()); }) {
      return Scheme::MakeView(params_, table_.data(), table_.size());
    } else {
      return View{table_.data(), table_.size()};
    }
  }
  bool MayContain(uint64_t hash) const noexcept { return view().MayContain(hash); }
  static std::span<const Kernel<View>> Kernels() {
    if constexpr (requires { Scheme::Kernels(); }) return Scheme::Kernels();
    static const auto kernels = ScalarKernels<View>();
    return kernels;
  }

  const Params& params() const { return params_; }
  const BuildReport& report() const { return report_; }
  uint64_t SizeInBytes() const { return table_.size() + sizeof(View); }
  uint64_t AllocatedBytes() const { return table_.allocated_bytes() + sizeof(*this); }
  std::span<const std::byte> Table() const { return table_.bytes(); }
  Details GetDetails() const { return {}; }
  std::optional<FprEstimate> ExpectedFpr() const {
    return Scheme::Fpr(params_, n_, table_.size());
  }
  static std::optional<double> TheoryFpr(double) { return std::nullopt; }

  std::vector<std::byte> Serialize() const {
    WireWriter writer(kInfo.name, kWireVersion);
    WriteParams<TableFilter>(writer, params_);
    writer.U64(n_).Bytes(table_.bytes());
    return std::move(writer).Finish();
  }
  static Result<TableFilter> Deserialize(std::span<const std::byte> wire) {
    WireReader reader(wire, kInfo.name, kWireVersion);
    const Params params = ReadParams<TableFilter>(reader);
    const uint64_t n = reader.U64("keys", 0, kMaxKeys);
    AlignedTable table = reader.Table("table", reader.ok() ? BytesFor(n, params) : 0);
    reader.ExpectEnd();
    if (!reader.ok()) return Error{reader.error()};
    return TableFilter(params, n, std::move(table));
  }

 private:
  static constexpr uint32_t kWireVersion = 1;
  static constexpr uint64_t kMaxTableBytes = uint64_t{1} << 40;
  static constexpr uint64_t kMaxKeys = uint64_t{1} << 45;

  static uint64_t BytesFor(uint64_t n, const Params& params) {
    return static_cast<uint64_t>(std::ceil(std::min(Scheme::TableBytes(n, params), 0x1p62)));
  }

  TableFilter(const Params& params, uint64_t n, AlignedTable table)
      : params_(params), n_(n), table_(std::move(table)) {
    report_.distinct_keys = n;
    report_.peak_bytes = table_.allocated_bytes() + sizeof(*this);
  }

  Params params_;
  uint64_t n_;
  AlignedTable table_;
  BuildReport report_;
};

}  // namespace filterbench

#endif  // FILTERBENCH_FILTERS_PLUGIN_TABLE_FILTER_H_
