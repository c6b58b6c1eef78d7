#include "workloads/lsm/manifest.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "filters/hash.h"

namespace filterbench::lsm {
namespace {

// One line with the kind, the version and the checksum of the rest, which is JSON.
constexpr std::string_view kKind = "filterbench lsm manifest 1 ";
constexpr size_t kDigestDigits = 16;
constexpr size_t kHeaderBytes = kKind.size() + kDigestDigits + 1;
// Far beyond any store; what is longer is no manifest.
constexpr uint64_t kMaxBytes = 1 << 28;

std::string HeaderOf(std::string_view body) {
  return fmt::format("{}{:016x}\n", kKind, HashBytes(body, 0));
}

}  // namespace

Result<Manifest> ReadManifest(Files& files, const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / kManifestName;
  const auto damaged = [&](std::string_view why) {
    return Error{fmt::format("{}: damaged: {}", path.string(), why)};
  };
  Result<std::unique_ptr<ReadableFile>> file = files.OpenForReading(path, /*direct_io=*/false);
  if (!file) return Error{file.error()};
  if ((*file)->size() < kHeaderBytes) return damaged("it is too short");
  if ((*file)->size() > kMaxBytes) return damaged("it is too long");
  std::string text((*file)->size(), '\0');
  if (auto error = (*file)->Read(0, std::as_writable_bytes(std::span(text)))) return *error;
  const std::string_view body = std::string_view(text).substr(kHeaderBytes);
  if (!text.starts_with(kKind)) return damaged("it does not begin as a manifest of version 1");
  if (!text.starts_with(HeaderOf(body))) return damaged("its checksum is wrong");

  // The checksum holds, so what follows was written so; what does not make sense nevertheless was
  // written by something else.
  Manifest manifest;
  std::set<uint64_t> numbers;
  try {
    const nlohmann::json json = nlohmann::json::parse(body);
    manifest.next_number = json.at("next_number").get<uint64_t>();
    for (const nlohmann::json& level : json.at("levels")) {
      std::vector<Manifest::File>& of_level = manifest.levels.emplace_back();
      for (const nlohmann::json& entry : level) {
        of_level.push_back({.number = entry.at("number").get<uint64_t>(),
                            .file_bytes = entry.at("file_bytes").get<uint64_t>(),
                            .data_bytes = entry.at("data_bytes").get<uint64_t>(),
                            .filter = entry.at("filter").get<std::string>()});
        const uint64_t number = of_level.back().number;
        if (number >= manifest.next_number) return damaged("next_number is not beyond all files");
        if (!numbers.insert(number).second) {
          return damaged(fmt::format("file {} is listed twice", number));
        }
      }
    }
  } catch (const nlohmann::json::exception& error) {
    return damaged(error.what());
  }
  return manifest;
}

std::optional<Error> WriteManifest(Files& files, const std::filesystem::path& directory,
                                   const Manifest& manifest) {
  nlohmann::json levels = nlohmann::json::array();
  for (const std::vector<Manifest::File>& level : manifest.levels) {
    nlohmann::json entries = nlohmann::json::array();
    for (const Manifest::File& file : level) {
      entries.push_back({{"number", file.number},
                         {"file_bytes", file.file_bytes},
                         {"data_bytes", file.data_bytes},
                         {"filter", file.filter}});
    }
    levels.push_back(std::move(entries));
  }
  const nlohmann::json json = {{"next_number", manifest.next_number},
                               {"levels", std::move(levels)}};
  // Identities are text that others chose: what is no UTF-8 in them shall not throw.
  const std::string body =
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const std::string text = HeaderOf(body) + body;

  const std::filesystem::path path = directory / kNewManifestName;
  Result<std::unique_ptr<WritableFile>> file = files.CreateNew(path);
  if (!file) return Error{file.error()};
  if (auto error = (*file)->Append(std::as_bytes(std::span(text)))) return error;
  if (auto error = (*file)->SyncAndClose()) return error;
  return files.Rename(path, directory / kManifestName);
}

}  // namespace filterbench::lsm
