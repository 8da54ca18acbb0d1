// The request parser: bytes that arrive in one piece and in many are the same request, and what it
// waits for is bounded. First byte: the size of the pieces.
#include <string>

#include "http/connection/request_parser.h"
#include "tests/fuzz/entry.h"

namespace {

using sbx::http::RequestParser;

constexpr RequestParser::Limits kLimits{.header_bytes = 1024, .header_fields = 16};

struct Parsed {
  RequestParser::Stage stage;
  std::string body;
  std::string left;
};

Parsed parse(std::string_view bytes, std::size_t step) {
  RequestParser parser(kLimits);
  Parsed parsed;
  do {
    parsed.left += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    for (bool progress = true; progress;) {
      const auto before = parser.stage();
      const std::size_t used = parser.feed(parsed.left);
      sbx::fuzz::require(used <= parsed.left.size());
      parsed.left.erase(0, used);
      parsed.body += parser.take_body();
      progress = used > 0 || parser.stage() != before;
    }
    parsed.stage = parser.stage();
    const bool waits =
        parsed.stage == RequestParser::Stage::kHead || parsed.stage == RequestParser::Stage::kBody;
    sbx::fuzz::require(!waits || parsed.left.size() <= kLimits.header_bytes);
  } while (!bytes.empty());
  return parsed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sbx::fuzz::Bytes bytes(data, size);
  const std::size_t step = std::size_t{bytes.byte()} + 1;
  const std::string_view request = bytes.rest();
  const Parsed whole = parse(request, request.size());
  const Parsed parts = parse(request, step);
  const auto done = RequestParser::Stage::kDone;
  sbx::fuzz::require((whole.stage == done) == (parts.stage == done));
  if (whole.stage != done) return 0;
  sbx::fuzz::require(whole.body == parts.body && whole.left == parts.left);
  return 0;
}
