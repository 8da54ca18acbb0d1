// Names and packets as a hostile tree may hold them: shown safely, and turned back exactly.
#include <span>
#include <string_view>

#include "runtime/base/escape.h"
#include "runtime/base/utf8.h"
#include "runtime/collect/names.h"
#include "runtime/collect/normalize.h"
#include "runtime/collect/wire.h"
#include "tests/fuzz/entry.h"
#include "tests/support/rendered_path.h"

namespace {

using sbx::fuzz::require;

bool has_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto next = sbx::decode_utf8(text, i);
    const char32_t c = next.code_point;
    if (c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x202A && c <= 0x202E)) return true;
    i += next.length;
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx;
  using namespace sbx::collect;
  using sbx::test::is_utf8;
  using sbx::test::unrender_path;
  const std::string_view raw = sbx::fuzz::as_text(data, size);
  const std::string shown = render_path(raw);
  require(is_utf8(shown));
  require(unrender_path(shown) == raw);
  const std::string escaped = escape_for_terminal(raw);
  require(is_utf8(escaped) && !has_control(escaped));
  require(escape_for_terminal(escaped) == escaped);
  const std::string key = canonical_key(raw);
  require(canonical_key(key) == key);
  require(!media_type(raw).empty());
  if (const auto message = wire::parse(std::span(data, size))) {
    require(message->record.kind != wire::Kind::kFile || is_plain_relative_path(message->path));
  }
  return 0;
}
