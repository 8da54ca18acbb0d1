// Any text, redacted: hits are in order and inside, nothing else changes, and a secret of ours that
// is put into the text is never left in it.
#include <string>

#include "agentd/redact/redactor.h"
#include "runtime/base/base64.h"
#include "tests/fuzz/entry.h"

namespace {

constexpr std::string_view kSecret = "pw=Kx9/t+7 Zq";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace agentd::redact;
  using sbx::fuzz::require;
  static const Redactor kRedactor({Secret{std::string(kSecret)}});
  const std::string_view text = sbx::fuzz::as_text(data, size);
  std::size_t at = 0;
  for (const Redactor::Hit& hit : kRedactor.find(text)) {
    require(hit.begin >= at && hit.begin < hit.end && hit.end <= text.size());
    at = hit.end;
  }
  require(kRedactor.clean(kRedactor.clean(text).text()).text() == kRedactor.clean(text).text());

  const std::string half(text.substr(0, size / 2));
  const std::string planted = half + std::string(kSecret) + std::string(text.substr(size / 2));
  require(kRedactor.clean(planted).text().find(kSecret) == std::string::npos);
  const std::string encoded = kRedactor.clean(sbx::encode_base64(planted)).text();
  const auto decoded = sbx::decode_base64(encoded);
  require(!decoded || decoded->find(kSecret) == std::string::npos);
  return 0;
}
