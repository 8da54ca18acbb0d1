// An answer of sbxd: of an object in JSON, its members with these names and no others, as they
// stand; what is no object may come out as anything but must not crash.
#include <array>
#include <nlohmann/json.hpp>

#include "agentd/sandbox/json_members.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array<std::string_view, 3> kNames = {"a", "status", "stdout"};
  const std::string_view text = sbx::fuzz::as_text(data, size);
  const std::string members = agentd::sandbox::json_members(text, kNames);
  sbx::fuzz::require(members.size() <= std::max<std::size_t>(text.size(), 2));
  const auto whole = nlohmann::json::parse(text, nullptr, false);
  // A name is compared as it stands, and what is not at the text's end is not looked for.
  // The parser takes a NUL for the end.
  const bool plain = text.find_first_of(std::string_view("\\\0", 2)) == std::string_view::npos;
  if (!whole.is_object() || !plain || !text.starts_with('{') || !text.ends_with('}')) return 0;
  nlohmann::json wanted = nlohmann::json::object();
  for (const std::string_view name : kNames) {
    if (const auto found = whole.find(name); found != whole.end())
      wanted[std::string(name)] = *found;
  }
  sbx::fuzz::require(nlohmann::json::parse(members, nullptr, false) == wanted);
  return 0;
}
