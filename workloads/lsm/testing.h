#ifndef FILTERBENCH_WORKLOADS_LSM_TESTING_H_
#define FILTERBENCH_WORKLOADS_LSM_TESTING_H_

// For tests of stores: files in memory, to be damaged and lost at will, and faults of any call.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "workloads/key_filter.h"
#include "workloads/lsm/files.h"

namespace filterbench::lsm {

// A flat file system of any number of directories that all exist.
class MemoryFiles final : public Files {
 public:
  struct Content {
    std::string bytes;
    bool synced = false;
  };

  Result<std::unique_ptr<WritableFile>> CreateNew(const std::filesystem::path& path) override {
    const auto [at, is_new] = files.try_emplace(path.string(), std::make_shared<Content>());
    if (!is_new) return Error{fmt::format("{}: exists", path.string())};
    return std::unique_ptr<WritableFile>(std::make_unique<Writable>(at->second));
  }
  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::filesystem::path& path,
                                                       bool direct_io) override {
    if (direct_io) return Error{fmt::format("{}: no direct reading in memory", path.string())};
    const auto at = files.find(path.string());
    if (at == files.end()) return Error{fmt::format("{}: is not there", path.string())};
    return std::unique_ptr<ReadableFile>(std::make_unique<Readable>(path.string(), at->second));
  }
  std::optional<Error> Rename(const std::filesystem::path& from,
                              const std::filesystem::path& to) override {
    auto node = files.extract(from.string());
    if (node.empty()) return Error{fmt::format("{}: is not there", from.string())};
    files[to.string()] = std::move(node.mapped());
    return std::nullopt;
  }
  std::optional<Error> Remove(const std::filesystem::path& path) override {
    if (files.erase(path.string()) == 1) return std::nullopt;
    return Error{fmt::format("{}: is not there", path.string())};
  }
  Result<std::vector<std::string>> List(const std::filesystem::path& directory) override {
    std::vector<std::string> names;
    for (const auto& [path, content] : files) {
      const std::filesystem::path name(path);
      if (name.parent_path() == directory) names.push_back(name.filename().string());
    }
    return names;
  }

  // The power fails: of what was not flushed to the disk, nothing is left but the name.
  void LoseUnsynced() {
    for (auto& [path, content] : files) {
      if (!content->synced) content = std::make_shared<Content>(Content{.synced = true});
    }
  }

  std::map<std::string, std::shared_ptr<Content>> files;

 private:
  class Writable final : public WritableFile {
   public:
    explicit Writable(std::shared_ptr<Content> content) : content_(std::move(content)) {}
    std::optional<Error> Append(std::span<const std::byte> bytes) override {
      content_->bytes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return std::nullopt;
    }
    std::optional<Error> SyncAndClose() override {
      content_->synced = true;
      return std::nullopt;
    }

   private:
    std::shared_ptr<Content> content_;
  };

  class Readable final : public ReadableFile {
   public:
    Readable(std::string path, std::shared_ptr<const Content> content)
        : path_(std::move(path)), content_(std::move(content)) {}
    uint64_t size() const override { return content_->bytes.size(); }
    std::optional<Error> Read(uint64_t offset, std::span<std::byte> buffer) const override {
      if (offset > size() || buffer.size() > size() - offset) {
        return Error{fmt::format("{}: ends before {} bytes at {}", path_, buffer.size(), offset)};
      }
      if (!buffer.empty()) {
        std::memcpy(buffer.data(), content_->bytes.data() + offset, buffer.size());
      }
      return std::nullopt;
    }
    void DropFromPageCache() const override {}

   private:
    std::string path_;
    std::shared_ptr<const Content> content_;
  };
};

// Calls another's, but for one that fails.
class FaultyFiles final : public Files {
 public:
  enum class Fails {
    kUndone,  // with no effect
    kHalf,    // an Append leaves the first half of its bytes; as kUndone for other calls
    kDone,    // with all its effect, which the caller does not hear of
  };
  struct Fault {
    uint64_t at = 0;  // the call that fails, counted from 1; 0: none
    Fails fails = Fails::kUndone;
    bool kills = false;  // every later call fails too, with no effect
  };

  explicit FaultyFiles(Files& files) : FaultyFiles(files, Fault{}) {}
  FaultyFiles(Files& files, const Fault& fault) : files_(files), fault_(fault) {}
  uint64_t calls() const { return calls_; }
  bool failed() const { return fault_.at > 0 && calls_ >= fault_.at; }

  Result<std::unique_ptr<WritableFile>> CreateNew(const std::filesystem::path& path) override {
    Result<std::unique_ptr<WritableFile>> file = Error{};
    if (auto error = Call([&] { return Keep(files_.CreateNew(path), file); })) return *error;
    return std::unique_ptr<WritableFile>(std::make_unique<Writable>(*this, *std::move(file)));
  }
  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::filesystem::path& path,
                                                       bool direct_io) override {
    Result<std::unique_ptr<ReadableFile>> file = Error{};
    if (auto error = Call([&] { return Keep(files_.OpenForReading(path, direct_io), file); })) {
      return *error;
    }
    return std::unique_ptr<ReadableFile>(std::make_unique<Readable>(*this, *std::move(file)));
  }
  std::optional<Error> Rename(const std::filesystem::path& from,
                              const std::filesystem::path& to) override {
    return Call([&] { return files_.Rename(from, to); });
  }
  std::optional<Error> Remove(const std::filesystem::path& path) override {
    return Call([&] { return files_.Remove(path); });
  }
  Result<std::vector<std::string>> List(const std::filesystem::path& directory) override {
    Result<std::vector<std::string>> names = Error{};
    if (auto error = Call([&] { return Keep(files_.List(directory), names); })) return *error;
    return names;
  }

 private:
  template <class T>
  static std::optional<Error> Keep(Result<T> result, Result<T>& kept) {
    kept = std::move(result);
    if (!kept) return Error{kept.error()};
    return std::nullopt;
  }

  template <class Work, class Half>
  std::optional<Error> Call(const Work& work, const Half& half) {
    ++calls_;
    const Error failure = {fmt::format("call {} fails", calls_)};
    if (calls_ == fault_.at) {
      if (fault_.fails == Fails::kHalf) (void)half();
      if (fault_.fails == Fails::kDone) (void)work();
      return failure;
    }
    if (failed() && fault_.kills) return failure;
    return work();
  }
  template <class Work>
  std::optional<Error> Call(const Work& work) {
    return Call(work, [] { return 0; });
  }

  class Writable final : public WritableFile {
   public:
    Writable(FaultyFiles& files, std::unique_ptr<WritableFile> file)
        : files_(files), file_(std::move(file)) {}
    std::optional<Error> Append(std::span<const std::byte> bytes) override {
      return files_.Call([&] { return file_->Append(bytes); },
                         [&] { return file_->Append(bytes.first(bytes.size() / 2)); });
    }
    std::optional<Error> SyncAndClose() override {
      return files_.Call([&] { return file_->SyncAndClose(); });
    }

   private:
    FaultyFiles& files_;
    std::unique_ptr<WritableFile> file_;
  };

  class Readable final : public ReadableFile {
   public:
    Readable(FaultyFiles& files, std::unique_ptr<ReadableFile> file)
        : files_(files), file_(std::move(file)) {}
    uint64_t size() const override { return file_->size(); }
    std::optional<Error> Read(uint64_t offset, std::span<std::byte> buffer) const override {
      return files_.Call([&] { return file_->Read(offset, buffer); });
    }
    void DropFromPageCache() const override { file_->DropFromPageCache(); }

   private:
    FaultyFiles& files_;
    std::unique_ptr<ReadableFile> file_;
  };

  Files& files_;
  const Fault fault_;
  uint64_t calls_ = 0;
};

// Filters that rule out nothing.
class AlwaysYes final : public FilterPolicy {
 public:
  std::string_view identity() const override { return "always yes"; }
  bool can_insert() const override { return false; }
  Result<std::unique_ptr<KeyFilter>> Build(std::span<const uint64_t>, uint64_t) const override {
    return std::unique_ptr<KeyFilter>(std::make_unique<Yes>());
  }
  Result<std::unique_ptr<KeyFilter>> Create(uint64_t, uint64_t) const override {
    return Error{"takes no single keys"};
  }
  Result<std::unique_ptr<KeyFilter>> Load(std::span<const std::byte> bytes) const override {
    if (bytes.size() != 1) return Error{"has not one byte"};
    return std::unique_ptr<KeyFilter>(std::make_unique<Yes>());
  }

 private:
  class Yes final : public KeyFilter {
   public:
    bool MayContain(uint64_t) const override { return true; }
    void MayContainBits(std::span<const uint64_t> hashes, uint64_t* bits) const override {
      std::fill_n(bits, (hashes.size() + 63) / 64, ~uint64_t{0});
    }
    uint64_t SizeInBytes() const override { return 0; }
    std::optional<uint64_t> PeakBuildBytes() const override { return 0; }
    std::optional<FprEstimate> ExpectedFpr() const override { return std::nullopt; }
    std::span<const std::byte> Table() const override { return {}; }
    std::vector<std::byte> Serialize() const override { return {std::byte{1}}; }
    bool Insert(uint64_t) override { return false; }
  };
};

}  // namespace filterbench::lsm

#endif  // FILTERBENCH_WORKLOADS_LSM_TESTING_H_
