#include "workloads/lsm/memtable.h"

namespace filterbench::lsm {
namespace {

template <class Iterator>
class MemtableCursor final : public Table::Cursor {
 public:
  MemtableCursor(Iterator at, Iterator end) : at_(at), end_(end) {}

  bool valid() const override { return at_ != end_; }
  std::string_view key() const override { return at_->first; }
  std::optional<std::string_view> value() const override { return at_->second; }
  void Next() override { ++at_; }
  const std::optional<Error>& error() const override { return none_; }

 private:
  Iterator at_;
  Iterator end_;
  std::optional<Error> none_;
};

uint64_t BytesOf(const std::optional<std::string>& value) { return value ? value->size() : 0; }

}  // namespace

void Memtable::Write(std::string_view key, std::optional<std::string_view> value) {
  auto at = entries_.lower_bound(key);
  if (at == entries_.end() || at->first != key) {
    at = entries_.emplace_hint(at, key, std::nullopt);
    bytes_ += key.size();
  }
  bytes_ -= BytesOf(at->second);
  at->second = value;
  bytes_ += BytesOf(at->second);
}

Found Memtable::Get(std::string_view key, std::string* value) const {
  const auto at = entries_.find(key);
  if (at == entries_.end()) return Found::kNothing;
  if (!at->second) return Found::kTombstone;
  if (value != nullptr) *value = *at->second;
  return Found::kValue;
}

void Memtable::Clear() {
  entries_.clear();
  bytes_ = 0;
}

std::unique_ptr<Table::Cursor> Memtable::Seek(std::string_view first) const {
  return std::make_unique<MemtableCursor<decltype(entries_)::const_iterator>>(
      entries_.lower_bound(first), entries_.end());
}

}  // namespace filterbench::lsm
