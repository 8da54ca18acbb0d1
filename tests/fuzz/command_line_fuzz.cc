// A command line of sbx-run, its words ended by NULs: arguments, then a policy and the inputs'
// names, or an error that the caller can mend (exit 2). No file is opened.
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cli/request.h"
#include "tests/fuzz/entry.h"

namespace {

using sbx::fuzz::require;

constexpr std::size_t kMaxWords = 64;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty() && words.size() < kMaxWords) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// load_policy would read the file.
bool names_a_file(const std::string& profile) {
  return profile.find('/') != std::string::npos || profile.ends_with(".toml");
}

template <typename T>
void require_mendable(const sbx::Result<T>& result) {
  require(result.has_value() ||
          (result.error().code == sbx::ErrorCode::kInvalid && !result.error().detail.empty()));
}

void try_arguments(const sbx::cli::Arguments& arguments) {
  if (!names_a_file(arguments.profile)) require_mendable(sbx::cli::make_policy(arguments));
  for (const std::string& text : arguments.inputs) {
    const auto input = sbx::cli::parse_input(text);
    require_mendable(input);
    require(!input || (!input->name.empty() && input->name.find('/') == std::string::npos));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto arguments = sbx::cli::parse_arguments(words_of(sbx::fuzz::as_text(data, size)));
  require_mendable(arguments);
  if (arguments) try_arguments(*arguments);
  return 0;
}
