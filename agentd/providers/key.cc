#include "agentd/providers/key.h"

#include <fcntl.h>
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

sbx::Result<redact::Secret> from_file(const std::string& path) {
  auto file = sbx::sys::open(path, O_RDONLY | O_NONBLOCK);
  if (!file) {
    return sbx::host_lacks("open", file.error().sys_errno, path,
                           "put the provider's key there, readable for agentd alone");
  }
  struct stat status{};
  if (::fstat(file->get(), &status) != 0) return sbx::sys_error("fstat", path);
  if (!S_ISREG(status.st_mode)) return sbx::invalid(path + " is no regular file", kOneLine);
  if ((status.st_mode & S_IRWXO) != 0) {
    return sbx::invalid(path + " holds a key and is open to every user", "chmod 600 " + path);
  }
  auto text = sbx::sys::read_all(file->get(), kMaxKeyBytes);
  if (!text) {
    sbx::Error error = std::move(text).error().with_context(path);
    if (error.code == sbx::ErrorCode::kInvalid) error.fix = kOneLine;
    return error;
  }
  return checked(*std::move(text), path);
}

}  // namespace

sbx::Result<redact::Secret> load_key(const KeySource& source) {
  if (!source.file.empty()) return from_file(source.file);
  if (!source.credential.empty()) {
    const char* directory = std::getenv("CREDENTIALS_DIRECTORY");
    if (directory == nullptr) {
      return sbx::host_lacks("getenv", 0, "CREDENTIALS_DIRECTORY is not set",
                             "start agentd by systemd with LoadCredential=" + source.credential +
                                 ":PATH, or use api_key_file");
    }
    return from_file(std::string(directory) + "/" + source.credential);
  }
  if (source.environment.empty()) return redact::Secret();
  const char* value = std::getenv(source.environment.c_str());
  if (value == nullptr) {
    return sbx::host_lacks("getenv", 0, "the variable " + source.environment + " is not set",
                           "set it, or use api_key_file");
  }
  std::string text = value;
  // Nothing of ours starts programs, but nothing needs it there either.
  (void)::unsetenv(source.environment.c_str());  // fails only for a malformed name
  return checked(std::move(text), "the variable " + source.environment);
}

}  // namespace agentd::providers
