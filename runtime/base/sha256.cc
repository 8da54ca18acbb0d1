// The block functions of libcrypto and not EVP: EVP loads openssl.cnf and the provider tables on
// first use (milliseconds) and pulls them, with dlopen, into a static program. OpenSSL 3 marks
// these functions deprecated, but has no other way to one hash without the rest.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "runtime/base/sha256.h"

#include <openssl/sha.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

namespace sbx {
namespace {

constexpr std::size_t kChunk = 128 * 1024;

std::string to_hex(const std::array<unsigned char, SHA256_DIGEST_LENGTH>& digest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0xF];
  }
  return text;
}

}  // namespace

Result<std::string> sha256_of_file(int fd, std::uint64_t size) {
  SHA256_CTX context;
  (void)SHA256_Init(&context);  // these three cannot fail
  std::vector<char> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(size + 1, kChunk)));
  std::uint64_t done = 0;
  for (;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys_error("pread");
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
    if (done > size) break;
    (void)SHA256_Update(&context, buffer.data(), static_cast<std::size_t>(got));
  }
  if (done != size) return invalid("changed while it was collected");
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  (void)SHA256_Final(digest.data(), &context);
  return to_hex(digest);
}

std::string sha256_of(std::string_view bytes) {
  SHA256_CTX context;
  (void)SHA256_Init(&context);
  (void)SHA256_Update(&context, bytes.data(), bytes.size());
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  (void)SHA256_Final(digest.data(), &context);
  return to_hex(digest);
}

}  // namespace sbx
