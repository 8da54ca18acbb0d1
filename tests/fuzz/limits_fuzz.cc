// One value as it is typed, for each limit: refused as the caller's mistake, or kept so that it
// prints as text that gives the same limit again.
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/policy/limits.h"
#include "tests/fuzz/entry.h"

namespace {

void try_limit(std::string_view name, std::string_view text) {
  using namespace sbx;
  policy::Limits limits;
  if (const auto set = policy::set_limit(limits, name, text); !set) {
    fuzz::require(set.error().code == ErrorCode::kInvalid);
    fuzz::require(limits == policy::Limits{});
    return;
  }
  policy::Limits again;
  fuzz::require(policy::set_limit(again, name, policy::limit_text(limits, name)).has_value());
  fuzz::require(again == limits);
  fuzz::require(nlohmann::json::accept(policy::limit_json(limits, name)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx;
  const std::string_view text = fuzz::as_text(data, size);
  for (const policy::LimitField& field : policy::limit_fields()) try_limit(field.name, text);
  if (const auto bytes = policy::parse_size(text)) {
    const auto again = policy::parse_size(policy::size_text(*bytes));
    fuzz::require(again && *again == *bytes);
  }
  return 0;
}
