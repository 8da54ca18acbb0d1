// The probes of doctor on the host that is there.
#include <gtest/gtest.h>

#include <memory>

#include "runtime/cli/doctor_checks.h"

namespace sbx::cli {
namespace {

TEST(Doctor, TheRealHostAnswersEveryProbe) {
  const std::unique_ptr<Host> host = real_host();
  for (const Check& check : run_checks(*host, {})) {
    EXPECT_FALSE(check.name.empty());
    EXPECT_EQ(check.state == CheckState::kOk, check.fix.empty()) << check.name;
  }
}

}  // namespace
}  // namespace sbx::cli
