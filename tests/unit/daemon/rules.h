// The rules that a daemon with the default configuration holds requests against.
#pragma once

#include <gtest/gtest.h>

#include "runtime/daemon/run_request.h"

namespace sbx::test {

inline daemon::RequestRules default_rules() {
  daemon::RequestRules rules;
  for (const std::string name : {"default", "large"}) {
    auto profile = policy::load_policy(name);
    EXPECT_TRUE(profile) << name;
    if (profile) rules.profiles.push_back(*std::move(profile));
  }
  rules.ceilings = daemon::effective_ceilings(daemon::default_ceilings(), {},
                                              {.memory = 1024 * policy::kMiB, .cpus = 2});
  return rules;
}

}  // namespace sbx::test
