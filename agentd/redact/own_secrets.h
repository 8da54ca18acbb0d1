// The daemon's own secrets, found in the forms that a program could print them in. Internal to
// redact/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "agentd/redact/secret.h"

namespace agentd::redact {

// SECURITY: covers what a common function makes of a secret: itself; base64 and base64url at any
// offset in a longer text, also of base64; base32; hex in any case; percent-encoding (also of what
// is encoded already), quoted-printable, entities of HTML and backslash escapes (\x, \u, octal, \/)
// of some or all bytes. All also with some blanks and line ends between, hex with colons. A program
// that wants to hide a secret from this can (by reversing it, say): agentd gives it none to hide.
class OwnSecrets {
 public:
  explicit OwnSecrets(const std::vector<Secret>& secrets);

  // The length of what starts at `at`; 0 for nothing.
  [[nodiscard]] std::size_t match_at(std::string_view text, std::size_t at) const;
  [[nodiscard]] bool empty() const { return forms_.empty(); }
  [[nodiscard]] std::size_t reach() const;  // nothing that is found is longer
  // True when `c` can be the first byte of what match_at() finds: a quick filter.
  [[nodiscard]] bool may_start(char c) const {
    return !by_first_[static_cast<unsigned char>(c)].empty();
  }

 private:
  enum class Kind : std::uint8_t { kPlain, kHex, kBase32, kBase64 };
  struct Form {
    Kind kind;
    Secret text;  // hex in lower case; of base64 and base32 what does not depend on what is around
  };
  void add(Kind kind, Secret text, std::initializer_list<char> first);
  void add_hex(std::string text);
  void add_base32(std::string text);
  void add_base64(std::string text);
  [[nodiscard]] static std::size_t match(const Form& form, std::string_view text, std::size_t at);

  std::vector<Form> forms_;
  std::array<std::vector<std::size_t>, 256> by_first_;  // of forms_
  std::size_t longest_ = 0;                             // as it is
};

}  // namespace agentd::redact
