#include "workloads/lsm/cursors.h"

#include <algorithm>
#include <string>
#include <utility>

namespace filterbench::lsm {
namespace {

class RunCursor final : public Table::Cursor {
 public:
  RunCursor(std::vector<const Table*> tables, std::string_view first, ReadCounters& counters)
      : tables_(std::move(tables)), counters_(counters) {
    const auto at = std::partition_point(
        tables_.begin(), tables_.end(),
        [&](const Table* table) { return table->facts().largest < first; });
    next_ = static_cast<size_t>(at - tables_.begin());
    Enter(first);
  }

  bool valid() const override { return cursor_ != nullptr && cursor_->valid(); }
  std::string_view key() const override { return cursor_->key(); }
  std::optional<std::string_view> value() const override { return cursor_->value(); }
  void Next() override {
    cursor_->Next();
    if (!cursor_->valid() && !cursor_->error()) Enter({});
  }
  const std::optional<Error>& error() const override {
    return cursor_ == nullptr ? none_ : cursor_->error();
  }

 private:
  // No key is less than the empty one.
  void Enter(std::string_view first) {
    if (next_ < tables_.size()) cursor_ = tables_[next_++]->Seek(first, counters_);
  }

  const std::vector<const Table*> tables_;
  size_t next_ = 0;
  ReadCounters& counters_;
  std::unique_ptr<Table::Cursor> cursor_;
  const std::optional<Error> none_;
};

class MergingCursor final : public Table::Cursor {
 public:
  explicit MergingCursor(std::vector<std::unique_ptr<Table::Cursor>> newest_first)
      : cursors_(std::move(newest_first)) {
    for (size_t i = 0; i < cursors_.size(); ++i) Push(i);
    PopFirst();
  }

  bool valid() const override { return !error_ && current_ != kNone; }
  std::string_view key() const override { return cursors_[current_]->key(); }
  std::optional<std::string_view> value() const override { return cursors_[current_]->value(); }
  void Next() override {
    // Older versions first, while the key that they are compared with still stands.
    while (!heap_.empty() && cursors_[heap_.front()]->key() == key()) Advance(PopHeap());
    Advance(current_);
    PopFirst();
  }
  const std::optional<Error>& error() const override { return error_; }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  // std heaps have the greatest first: the smallest key, of equal ones the newest.
  auto After() const {
    return [this](size_t a, size_t b) {
      const int order = cursors_[a]->key().compare(cursors_[b]->key());
      return order != 0 ? order > 0 : a > b;
    };
  }
  void Push(size_t i) {
    if (cursors_[i]->valid()) {
      heap_.push_back(i);
      std::push_heap(heap_.begin(), heap_.end(), After());
    } else if (cursors_[i]->error() && !error_) {
      error_ = cursors_[i]->error();
    }
  }
  size_t PopHeap() {
    std::pop_heap(heap_.begin(), heap_.end(), After());
    const size_t i = heap_.back();
    heap_.pop_back();
    return i;
  }
  void Advance(size_t i) {
    cursors_[i]->Next();
    Push(i);
  }
  void PopFirst() { current_ = heap_.empty() ? kNone : PopHeap(); }

  const std::vector<std::unique_ptr<Table::Cursor>> cursors_;
  std::vector<size_t> heap_;  // all valid cursors but the current one
  size_t current_ = kNone;
  std::optional<Error> error_;
};

}  // namespace

std::unique_ptr<Table::Cursor> SeekInRun(std::vector<const Table*> tables, std::string_view first,
                                         ReadCounters& counters) {
  return std::make_unique<RunCursor>(std::move(tables), first, counters);
}

std::unique_ptr<Table::Cursor> Merge(std::vector<std::unique_ptr<Table::Cursor>> newest_first) {
  return std::make_unique<MergingCursor>(std::move(newest_first));
}

}  // namespace filterbench::lsm
