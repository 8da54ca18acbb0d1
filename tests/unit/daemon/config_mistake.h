// What is said of a configuration that is refused.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "runtime/daemon/config.h"

namespace sbx::daemon {

inline std::string mistake(const std::string& text) {
  const auto config = parse_daemon_config(text, "f");
  EXPECT_FALSE(config) << text;
  if (config) return {};
  EXPECT_EQ(config.error().code, ErrorCode::kInvalid);
  return config.error().detail;
}

}  // namespace sbx::daemon
