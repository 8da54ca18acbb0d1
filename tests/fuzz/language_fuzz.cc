// A language file: a language whose patterns compile, or an error that names file and line.
#include <string_view>

#include "runtime/policy/language_file.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx;
  const auto language = policy::parse_language(fuzz::as_text(data, size), "fuzz");
  if (!language) {
    fuzz::require(language.error().code == ErrorCode::kInvalid);
    fuzz::require(to_string(language.error()).find("fuzz:") != std::string::npos);
    return 0;
  }
  fuzz::require(!language->name.empty() && !language->argv.empty());
  fuzz::require(language->file.find('/') == std::string::npos);
  return 0;
}
