#include "runtime/daemon/audit_event.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sbx::daemon {
namespace {

using Json = nlohmann::json;

collect::Outcome outcome() {
  collect::Outcome made;
  made.id = "0123456789abcdef";
  made.status = collect::Status::kSecurity;
  made.denials = {{"ptrace", "hostile", 1}};
  made.limits_hit = {"memory"};
  made.usage = collect::ResourceUsage{.cpu_seconds = 0.25, .memory_peak = 4096};
  made.layers = {{"seccomp", policy::LayerState::kHeld, ""},
                 {"cpuset", policy::LayerState::kDegraded, "x"}};
  made.profile = "default";
  made.language = "python";
  made.stdout_bytes = "SECRET";
  return made;
}

TEST(AuditEvent, SaysWhoWhatHowAndTheVerdict) {
  AuditSubject subject;
  subject.peer = {.uid = 1000, .gid = 1000, .pid = 42};
  subject.session = "s1";
  subject.program_sha256 = std::string(64, 'a');
  subject.inputs_sha256 = std::string(64, 'b');
  subject.inputs = 2;
  const Json json = Json::parse("{" + run_event(subject, outcome()) + "}");
  EXPECT_EQ(json["event"], "run");
  EXPECT_EQ(json["run"], "0123456789abcdef");
  EXPECT_EQ(json["uid"], 1000);
  EXPECT_EQ(json["pid"], 42);
  EXPECT_EQ(json["session"], "s1");
  EXPECT_EQ(json["program_sha256"], std::string(64, 'a'));
  EXPECT_EQ(json["inputs"], 2);
  EXPECT_EQ(json["status"], "security");
  EXPECT_EQ(json["denials"][0]["syscall"], "ptrace");
  EXPECT_EQ(json["limits"]["pids"], 64);
  EXPECT_EQ(json["limits_hit"][0], "memory");
  EXPECT_EQ(json["usage"]["memory_peak"], 4096);
  EXPECT_EQ(json["weak_layers"], Json({{"cpuset", "degraded"}}));
}

TEST(AuditEvent, HoldsNothingOfWhatTheProgramWrote) {
  EXPECT_EQ(run_event({}, outcome()).find("SECRET"), std::string::npos);
}

TEST(AuditEvent, WhatIsNotKnownIsNull) {
  collect::Outcome bare;
  bare.id = "x";
  const Json json = Json::parse("{" + run_event({}, bare) + "}");
  for (const char* name :
       {"uid", "pid", "session", "language", "inputs_sha256", "usage", "signal"}) {
    EXPECT_TRUE(json[name].is_null()) << name;
  }
}

TEST(AuditEvent, ALineIsShorterThanTheLongestThatIsRead) {
  collect::Outcome large = outcome();
  large.denials.assign(65, {std::string(32, 'x'), "deny", UINT64_MAX});
  EXPECT_LT(run_event({}, large).size(), 16'000U);
}

TEST(AuditEvent, AReapedRunIsNamed) {
  EXPECT_EQ(Json::parse("{" + reaped_event("ab\"c") + "}")["run"], "ab\"c");
}

}  // namespace
}  // namespace sbx::daemon
