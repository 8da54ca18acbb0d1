// A program's output on its way to a terminal: however it is cut into pieces, the same safe text.
//
// An input is pieces: a byte for the length, and the bytes.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "runtime/base/escape.h"
#include "runtime/base/sys.h"
#include "runtime/cli/live_output.h"
#include "tests/fuzz/entry.h"

namespace {

using sbx::fuzz::require;

// The pieces, as they reach a terminal.
std::string shown(const std::vector<std::string_view>& pieces) {
  const sbx::UniqueFd file(::memfd_create("terminal", MFD_CLOEXEC));
  require(static_cast<bool>(file));
  sbx::cli::LiveOutput output(file.get(), true);
  for (const std::string_view piece : pieces) output.append(piece);
  require(output.flush());
  require(::lseek(file.get(), 0, SEEK_SET) == 0);
  auto text = sbx::sys::read_all(file.get(), 1U << 20U);
  require(text.has_value());
  return *std::move(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sbx::fuzz::Bytes input(data, size);
  std::vector<std::string_view> pieces;
  std::string whole;
  while (!input.empty()) {
    pieces.push_back(input.take(input.byte()));
    whole += pieces.back();
  }
  const std::string text = shown(pieces);
  require(text == shown({whole}));
  require(sbx::escape_for_terminal(text, sbx::Keep::kNewlinesAndTabs) == text);
  return 0;
}
