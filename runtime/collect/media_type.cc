#include <algorithm>
#include <array>

#include "runtime/collect/names.h"

namespace sbx::collect {
namespace {

struct MediaType {
  std::string_view extension;
  std::string_view type;
};

constexpr MediaType kMediaTypes[] = {
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"css", "text/css"},
    {"csv", "text/csv"},
    {"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"htm", "text/html"},
    {"html", "text/html"},
    {"ico", "image/vnd.microsoft.icon"},
    {"ipynb", "application/x-ipynb+json"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript"},
    {"json", "application/json"},
    {"jsonl", "application/jsonl"},
    {"log", "text/plain"},
    {"md", "text/markdown"},
    {"mjs", "text/javascript"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"ndjson", "application/x-ndjson"},
    {"npy", "application/x-npy"},
    {"npz", "application/zip"},
    {"ods", "application/vnd.oasis.opendocument.spreadsheet"},
    {"odt", "application/vnd.oasis.opendocument.text"},
    {"parquet", "application/vnd.apache.parquet"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
    {"py", "text/x-python"},
    {"sh", "application/x-sh"},
    {"sqlite", "application/vnd.sqlite3"},
    {"svg", "image/svg+xml"},
    {"tar", "application/x-tar"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"tsv", "text/tab-separated-values"},
    {"txt", "text/plain"},
    {"wav", "audio/wav"},
    {"webm", "video/webm"},
    {"webp", "image/webp"},
    {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

constexpr std::size_t kMaxExtension = 8;

}  // namespace

std::string_view media_type(std::string_view path) {
  constexpr std::string_view kUnknown = "application/octet-stream";
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0 || name.size() - dot - 1 > kMaxExtension) {
    return kUnknown;
  }
  std::array<char, kMaxExtension> lower{};
  const std::string_view extension = name.substr(dot + 1);
  std::transform(extension.begin(), extension.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const std::string_view wanted(lower.data(), extension.size());
  const auto* const found =
      std::find_if(std::begin(kMediaTypes), std::end(kMediaTypes),
                   [&](const MediaType& entry) { return entry.extension == wanted; });
  return found == std::end(kMediaTypes) ? kUnknown : found->type;
}

}  // namespace sbx::collect
