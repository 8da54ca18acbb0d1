// A profile file, from its bytes to the compiled filter: there is a policy, or an error that the
// caller can mend. What was parsed can be printed, and parses back.
#include <string_view>

#include "runtime/policy/policy.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx;
  const auto policy = policy::parse_policy(fuzz::as_text(data, size), "fuzz");
  if (!policy) {
    fuzz::require(policy.error().code == ErrorCode::kInvalid && !policy.error().detail.empty());
    return 0;
  }
  fuzz::require(!policy->seccomp.bpf.empty() && policy->seccomp.bpf.size() % 8 == 0);
  policy::Limits again;
  for (const policy::LimitField& field : policy::limit_fields()) {
    const std::string text = policy::limit_text(policy->limits, field.name);
    fuzz::require(policy::set_limit(again, field.name, text).has_value());
  }
  fuzz::require(again == policy->limits);
  return 0;
}
