#include "agentd/providers/key.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "runtime/base/sys.h"

namespace agentd::providers {
namespace {

constexpr std::size_t kMaxKeyBytes = 4096;
constexpr const char* kOneLine = "put the provider's key there, and nothing else, as one line";

sbx::Result<redact::Secret> checked(std::string text, const std::string& place) {
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  redact::Secret key(std::move(text));
  if (key.empty()) return sbx::invalid(place + " holds no key", kOneLine);
  const bool plain = std::all_of(key.reveal().begin(), key.reveal().end(),
                                 [](char c) { return c > ' ' && c < '\x7F'; });
  if (!plain) {
    return sbx::invalid(place + " holds more than a key: blanks, lines or controls", kOneLine);
  }
  return key;
}

// SECURITY: a key may stand where its place belongs, and no shape tells all of them. What is not
// surely a place is not repeated.
std::string unsaid(const std::string& value) {
  return fmt::format("its value ({} characters)", value.size());
}

bool is_there(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0;
}

// A path to a file, or into a directory other than the root.
std::string said_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const bool leads_somewhere =
      path.starts_with('/') && slash > 0 && is_there(path.substr(0, slash + 1));
  return leads_somewhere || is_there(path) ? path : unsaid(path);
}

// Words as names of variables have them: OPENAI, KEY2, 2026.
std::string said_variable(const std::string& name) {
  constexpr int kMostDigits = 4;
  bool is_name = !name.empty();
  int digits = 0;
  for (const char c : name) {
    const bool is_letter = c >= 'A' && c <= 'Z';
    const bool is_digit = c >= '0' && c <= '9';
    is_name = is_name && (c == '_' || is_digit || (is_letter && digits == 0));
    digits = is_digit ? digits + 1 : 0;
    is_name = is_name && digits <= kMostDigits;
  }
  return is_name ? "the variable " + name : unsaid(name);
}

// `shown` is the path as errors may have it.
sbx::Result<redact::Secret> from_file(const std::string& path, const std::string& shown) {
  auto file = sbx::sys::open(path, O_RDONLY | O_NONBLOCK);
  if (!file) {
    return sbx::host_lacks("open", file.error().sys_errno, shown,
                           "put the provider's key there, readable for agentd alone");
  }
  struct stat status{};
  if (::fstat(file->get(), &status) != 0) return sbx::sys_error("fstat", shown);
  if (!S_ISREG(status.st_mode)) return sbx::invalid(shown + " is no regular file", kOneLine);
  if ((status.st_mode & S_IRWXO) != 0) {
    return sbx::invalid(shown + " holds a key and is open to every user", "chmod 600 " + shown);
  }
  auto text = sbx::sys::read_all(file->get(), kMaxKeyBytes);
  if (!text) {
    sbx::Error error = std::move(text).error().with_context(shown);
    if (error.code == sbx::ErrorCode::kInvalid) error.fix = kOneLine;
    return error;
  }
  return checked(*std::move(text), shown);
}

}  // namespace

sbx::Result<redact::Secret> load_key(const KeySource& source) {
  if (!source.file.empty()) return from_file(source.file, said_path(source.file));
  if (!source.credential.empty()) {
    const char* directory = std::getenv("CREDENTIALS_DIRECTORY");
    if (directory == nullptr) {
      return sbx::host_lacks("getenv", 0, "CREDENTIALS_DIRECTORY is not set",
                             "start agentd by systemd with LoadCredential=NAME:PATH, or use "
                             "api_key_file");
    }
    const std::string path = std::string(directory) + "/" + source.credential;
    return from_file(path, is_there(path) ? path : unsaid(source.credential));
  }
  if (source.environment.empty()) return redact::Secret();
  const char* value = std::getenv(source.environment.c_str());
  if (value == nullptr) {
    return sbx::host_lacks("getenv", 0, said_variable(source.environment) + " is not set",
                           "set it, or use api_key_file");
  }
  std::string text = value;
  // Nothing of ours starts programs, but nothing needs it there either.
  (void)::unsetenv(source.environment.c_str());  // fails only for a malformed name
  return checked(std::move(text), "the variable " + source.environment);
}

}  // namespace agentd::providers
