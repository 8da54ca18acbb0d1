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
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 0xF];
  }
  return text;
}

SHA256_CTX* context_of(std::array<std::byte, 112>& state) {
  return reinterpret_cast<SHA256_CTX*>(state.data());
}

}  // namespace

Sha256::Sha256() {
  static_assert(sizeof(SHA256_CTX) == sizeof state_ && alignof(SHA256_CTX) <= 8);
  (void)SHA256_Init(context_of(state_));  // these three cannot fail
}

void Sha256::add(std::string_view bytes) {
  (void)SHA256_Update(context_of(state_), bytes.data(), bytes.size());
}

std::string Sha256::finish() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  (void)SHA256_Final(digest.data(), context_of(state_));
  return to_hex(digest);
}

Result<std::string> sha256_of_file(int fd, std::uint64_t size) {
  Sha256 hash;
  std::vector<char> buffer(static_cast<std::size_t>(std::min<std::uint64_t>(size + 1, kChunk)));
  std::uint64_t done = 0;
  for (;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys_error("pread");
    if (got == 0) break;
    done += static_cast<std::uint64_t>(got);
    if (done > size) break;
    hash.add({buffer.data(), static_cast<std::size_t>(got)});
  }
  if (done != size) return invalid("changed while it was collected");
  return hash.finish();
}

std::string sha256_of(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

}  // namespace sbx
