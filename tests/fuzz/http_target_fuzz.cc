// Request targets: what is decoded is what was encoded, and the router takes any of them.
#include <variant>

#include "http/router.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace sbx::http;

const Router& router() {
  static const Router made = [] {
    Router routes;
    for (const char* path : {"/", "/v1/run", "/v1/sessions/{id}", "/v1/sessions/{id}/files",
                             "/v1/sessions/{id}/files/{path...}"}) {
      routes.add({Method::kGet, path});
    }
    return routes;
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using sbx::fuzz::require;
  const std::string_view text = sbx::fuzz::as_text(data, size);
  if (text.find('\0') == std::string_view::npos) {
    require(percent_decode(percent_encode(text)) == text);
  }
  const auto target = parse_target(text);
  if (!target) return 0;
  std::string again;
  for (const std::string& segment : target->segments) {
    require(segment.find('\0') == std::string::npos);
    again += "/" + percent_encode(segment);
  }
  const auto reparsed = parse_target(again);
  require(reparsed && reparsed->segments == target->segments);
  const auto found = router().find(Method::kGet, *target);
  if (const auto* match = std::get_if<Router::Match>(&found)) {
    for (const auto& [name, value] : match->parameters) require(!value.empty());
    return 0;
  }
  const Response refusal = to_response(std::get<Problem>(found));
  require(refusal.status == 404 && refusal.body.starts_with("{") && refusal.body.ends_with("}\n"));
  return 0;
}
