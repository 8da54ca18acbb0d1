// libFuzzer entry: a profile file, from its bytes to the compiled filter. Whatever they are, there
// is a policy or an error of code kInvalid; corpus: tests/fuzz/corpus/profile/.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/policy/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto policy = sbx::policy::parse_policy(text, "fuzz");
  if (!policy && policy.error().code != sbx::ErrorCode::kInvalid) std::abort();
  if (policy && policy->seccomp.bpf.empty()) std::abort();
  return 0;
}
