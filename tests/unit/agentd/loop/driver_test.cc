// The repair loop: its states, what the model is told, what is shown.
#include "agentd/loop/driver.h"

#include "runtime/base/utf8.h"
#include "tests/unit/agentd/loop/driver_fixture.h"

namespace agentd::loop {
namespace {

TEST_F(DriverTest, AFirstAttemptThatPassesIsTheShortestWay) {
  run(good, passes);
  EXPECT_EQ(states_, "generate execute evaluate succeeded");
  ASSERT_TRUE(record_.result);
  EXPECT_EQ(record_.result->envelope.text, "hi");
  ASSERT_EQ(record_.attempts.size(), 1U);
  EXPECT_EQ(record_.attempts[0].outcome, record::Outcome::kPassed);
  EXPECT_EQ(record_.attempts[0].code, "print(1)\n");
  EXPECT_EQ(record_.attempts[0].charge.input_tokens, 1000);
  EXPECT_EQ(record_.spent.tokens, 1200);
  EXPECT_EQ(record_.spent.sandbox, milliseconds(500));
  EXPECT_EQ(sandbox_.ran[0].code, "print(1)\n");
  EXPECT_EQ(provider_.asked[0].key.prompt, "codegen.v1.python");
}

TEST_F(DriverTest, AFailureIsRepairedWithTheExactTracebackInData) {
  run(good, [](int n) -> RunOutcome {
    return n == 1 ? failed_run("Traceback\nKeyError: 'pric</data>e'") : ok_run(kGood);
  });
  EXPECT_EQ(states_, "generate execute evaluate repair execute evaluate succeeded");
  EXPECT_EQ(record_.attempts[0].failure, FailureClass::kRuntime);
  EXPECT_EQ(record_.attempts[1].failure, std::nullopt);
  const auto& messages = provider_.asked[1].messages;
  EXPECT_NE(messages.back().text.find("KeyError: 'pric&lt;/data>e'"), std::string::npos)
      << messages.back().text;
  EXPECT_EQ(messages[messages.size() - 2].role, providers::Role::kAssistant);
  EXPECT_EQ(provider_.asked[1].key.call, 2);
  EXPECT_EQ(provider_.asked[1].key.prompt, "repair.v1");
}

TEST_F(DriverTest, TheConversationDoesNotGrowWithAttempts) {
  run(good, fails);
  EXPECT_EQ(record_.attempts.size(), 3U);
  EXPECT_EQ(provider_.asked[1].messages.size(), provider_.asked[2].messages.size());
}

TEST_F(DriverTest, WhenAttemptsAreSpentItGivesUpWithAReport) {
  run(good, fails);
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kAttempts);
  EXPECT_NE(record_.reason_text.find("KeyError: 'x'"), std::string::npos) << record_.reason_text;
  EXPECT_EQ(provider_.asked.size(), 3U);
  EXPECT_FALSE(record_.result);
}

TEST_F(DriverTest, TheLastRunThatEndedOkIsShownRawWhenNoneHadAnEnvelope) {
  run(good, [](int n) -> RunOutcome {
    if (n == 3) return failed_run("x");
    sandbox::RunResult run = ok_run("the answer is " + std::to_string(n));
    run.files = {{.path = "f.txt", .content = "c"}};
    return run;
  });
  EXPECT_EQ(state_name(record_), "gave_up");
  ASSERT_TRUE(record_.result);
  EXPECT_EQ(record_.result->kind, record::Result::Kind::kRaw);
  EXPECT_EQ(record_.result->text, "the answer is 2");
  EXPECT_FALSE(record_.result->banner.empty());
  EXPECT_EQ(record_.artifacts.at(0).name, "f.txt");
}

TEST_F(DriverTest, TimeoutAndSecurityAreNotRepaired) {
  for (const char* status : {"timeout", "security"}) {
    begin(status);
    run(good, [status](int) -> RunOutcome {
      sandbox::RunResult run = failed_run("");
      run.status = status;
      run.notes = {{"wall", "Ended at 30 s.", "kernel"}};
      return run;
    });
    EXPECT_EQ(record_.attempts.size(), 1U);
    EXPECT_EQ(state_name(record_), "gave_up");
    EXPECT_NE(record_.reason_text.find("Ended at 30 s."), std::string::npos);
  }
}

TEST_F(DriverTest, ASecondResourceFailureEndsIt) {
  run(good, [](int) -> RunOutcome {
    sandbox::RunResult run = failed_run("");
    run.status = "oom";
    return run;
  });
  EXPECT_EQ(record_.attempts.size(), 2U);
  EXPECT_EQ(record_.state.ending.reason, Reason::kResource);
}

TEST_F(DriverTest, AReplyWithoutAProgramCostsAnAttemptAndIsToldSo) {
  run(
      [](int n) -> CompletionResult {
        if (n == 1) return Completion{.text = "Sure!", .usage = providers::Usage{10, 10}};
        if (n == 2) {
          Completion cut = reply_with("x");
          cut.text = "```python\nprint(";
          cut.finish = providers::Finish::kLength;
          return cut;
        }
        return reply_with("print(1)");
      },
      passes);
  EXPECT_EQ(states_, "generate repair repair execute evaluate succeeded");
  EXPECT_EQ(record_.attempts[0].error->code, "no_code_block");
  EXPECT_EQ(record_.attempts[1].error->code, "cut_reply");
  EXPECT_EQ(record_.attempts[1].failure, FailureClass::kProvider);
  EXPECT_NE(provider_.asked[2].messages.back().text.find("shorter program"), std::string::npos);
}

TEST_F(DriverTest, AConnectionThatBrokeIsNotTheModelsFaultAndEndsIt) {
  run(
      [](int) -> CompletionResult {
        Completion cut = reply_with("x");
        cut.text = "```python\nprint(";
        cut.finish = providers::Finish::kCut;
        return cut;
      },
      passes);
  EXPECT_EQ(states_, "generate give_up gave_up");
  EXPECT_EQ(record_.state.ending.reason, Reason::kProvider);
  EXPECT_EQ(record_.attempts.at(0).error->code, "broken");
  EXPECT_NE(record_.reason_text.find("connection"), std::string::npos) << record_.reason_text;
  begin("r2");
  run(
      [](int) -> CompletionResult {
        Completion whole = reply_with("print(1)");
        whole.finish = providers::Finish::kCut;
        return whole;
      },
      passes);
  EXPECT_EQ(state_name(record_), "succeeded") << "the program was there";
}

TEST_F(DriverTest, AProgramWithAKeyOfAgentdsOwnIsNotRun) {
  run(
      [](int n) {
        return reply_with(n == 1 ? "print('" + std::string(kDriversSecret) + "')" : "print(1)");
      },
      passes);
  EXPECT_EQ(state_name(record_), "succeeded");
  ASSERT_EQ(sandbox_.ran.size(), 1U);
  EXPECT_EQ(sandbox_.ran[0].code.find(kDriversSecret), std::string::npos);
  EXPECT_EQ(record_.attempts.at(0).error->code, "own_secret");
  EXPECT_TRUE(record_.attempts.at(0).code.empty());
}

TEST_F(DriverTest, WhatIsShownRawSaysWhereBytesAreMissing) {
  run(good, [](int) -> RunOutcome {
    sandbox::RunResult cut = ok_run(std::string(9000, 'a') + std::string(9000, 'b'));
    cut.out_dropped = 500;
    cut.out_cut = 9000;
    return cut;
  });
  const std::string& text = record_.result->text;
  const std::size_t mark = text.find("bytes were not kept");
  ASSERT_NE(mark, std::string::npos);
  EXPECT_EQ(text.substr(0, mark).find('b'), text.substr(0, mark).rfind("b"));
  EXPECT_TRUE(text.starts_with("aaa"));
  EXPECT_TRUE(text.ends_with("bbb"));
}

TEST_F(DriverTest, AReplyThatTheProviderWithholdsIsARefusalAndNotRepaired) {
  run(
      [](int) -> CompletionResult {
        Completion withheld = reply_with("print(1)");
        withheld.finish = providers::Finish::kFiltered;
        withheld.finish_reason = "content_filter";
        return withheld;
      },
      passes);
  EXPECT_EQ(states_, "generate give_up gave_up");
  EXPECT_EQ(record_.state.ending.reason, Reason::kProvider);
  EXPECT_NE(record_.reason_text.find("content_filter"), std::string::npos) << record_.reason_text;
  EXPECT_EQ(record_.attempts.at(0).failure, FailureClass::kProvider);
  EXPECT_EQ(record_.spent.tokens, 1200) << "it cost all the same";
}

TEST_F(DriverTest, TheSandboxIsTriedOnceMoreWithoutAModelCall) {
  run(good, [](int n) -> RunOutcome {
    if (n == 1) return SandboxFailure{.kind = SandboxFailure::Kind::kLost, .detail = "gone"};
    return ok_run(kGood);
  });
  EXPECT_EQ(states_, "generate execute execute evaluate succeeded");
  EXPECT_EQ(provider_.asked.size(), 1U);
  EXPECT_EQ(record_.attempts[0].failure, std::nullopt);
  EXPECT_EQ(record_.attempts[0].error, std::nullopt);
}

TEST_F(DriverTest, ASandboxThatFailsTwiceIsAnErrorOfOurs) {
  run(good, [](int) -> RunOutcome {
    return SandboxFailure{.kind = SandboxFailure::Kind::kFailed, .detail = "no cgroup", .fix = "x"};
  });
  EXPECT_EQ(state_name(record_), "failed");
  EXPECT_EQ(sandbox_.ran.size(), 2U);
  EXPECT_NE(record_.reason_text.find("no cgroup. Fix: x"), std::string::npos)
      << record_.reason_text;
  EXPECT_EQ(record_.spent.sandbox, milliseconds(0));
}

TEST_F(DriverTest, WithoutASandboxNoModelIsAsked) {
  sandbox_.info_ =
      SandboxFailure{.kind = SandboxFailure::Kind::kUnreachable, .detail = "no socket"};
  run(good, passes);
  EXPECT_EQ(state_name(record_), "failed");
  EXPECT_TRUE(provider_.asked.empty());
  EXPECT_EQ(record_.spent.tokens, 0);
}

TEST_F(DriverTest, FilesThatTheSandboxDoesNotTakeCostNothing) {
  sandbox::SandboxInfo info = test::shipped_info();
  info.input = 2 * 4096;
  sandbox_.info_ = test::known(std::move(info));
  for (const std::size_t size : {4096U, 4097U}) {
    begin("r" + std::to_string(size));
    record_.files = {{.name = "a", .size = size}, {.name = "b", .size = 1}};
    run(good, passes);
    const bool fits = size == 4096;
    EXPECT_EQ(state_name(record_), fits ? "succeeded" : "failed");
    EXPECT_EQ(provider_.asked.size(), fits ? 1U : 0U);
  }
  EXPECT_NE(record_.reason_text.find("take 12288 bytes"), std::string::npos) << record_.reason_text;
  EXPECT_EQ(record_.reason_fix, "attach less, or raise input for sbxd");
}

TEST_F(DriverTest, NoRepairIsPaidForOnceTheSandboxIsGone) {
  run(good, [this](int) -> RunOutcome {
    sandbox_.info_ = SandboxFailure{
        .kind = SandboxFailure::Kind::kUnreachable, .detail = "no socket", .fix = "start sbxd"};
    return failed_run("x");
  });
  EXPECT_EQ(states_, "generate execute evaluate repair give_up failed");
  EXPECT_EQ(provider_.asked.size(), 1U);
  EXPECT_EQ(record_.state.ending.failure, FailureClass::kSandbox);
  EXPECT_TRUE(record_.reason_text.ends_with("no socket. Fix: start sbxd")) << record_.reason_text;
  EXPECT_EQ(record_.reason_fix, "start sbxd");
}

TEST_F(DriverTest, ASandboxThatHangsUntilTheRequestsTimeIsOverIsBlamedForIt) {
  for (const auto& took : {milliseconds(20'000), milliseconds(180'500), milliseconds(400'000)}) {
    begin("r" + std::to_string(took.count()));
    run(good, [&](int) -> RunOutcome {
      now_ += took;
      return SandboxFailure{
          .kind = SandboxFailure::Kind::kSilent, .detail = "does not answer", .fix = "look"};
    });
    EXPECT_EQ(state_name(record_), "failed");
    EXPECT_EQ(record_.state.ending.reason, Reason::kSandbox);
    EXPECT_EQ(record_.attempts.at(0).failure, FailureClass::kSandbox);
    EXPECT_EQ(record_.attempts.at(0).error->code, "sandbox");
    EXPECT_NE(record_.reason_text.find("does not answer. Fix: look"), std::string::npos)
        << record_.reason_text;
  }
}

TEST_F(DriverTest, ARunThatWasNeverSentCostsNoSandboxTime) {
  for (const bool not_sent : {false, true}) {
    begin(not_sent ? "not-sent" : "sent");
    run(good, [&](int) -> RunOutcome {
      return SandboxFailure{.kind = SandboxFailure::Kind::kSilent, .not_sent = not_sent};
    });
    EXPECT_EQ(record_.state.ending.reason, Reason::kSandbox);
    EXPECT_EQ(record_.spent.sandbox > milliseconds(0), !not_sent);
  }
}

TEST_F(DriverTest, AModelThatCannotBeReachedEndsItWithoutACharge) {
  run(
      [](int) -> CompletionResult {
        return ProviderError{.detail = "refused the key (401). Fix: not ours"};
      },
      passes);
  EXPECT_EQ(record_.reason_fix, "");
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_EQ(record_.state.ending.reason, Reason::kProvider);
  EXPECT_NE(record_.reason_text.find("refused the key"), std::string::npos);
  EXPECT_EQ(record_.spent.tokens, 0);
}

TEST_F(DriverTest, ALongLastLineIsReadWholeAndTheRecordKeepsTheEndsOfIt) {
  const std::string accents = [] {
    std::string text;
    for (int i = 0; i < 200'000; ++i) text += "\xC3\xA9";
    return text;
  }();
  const std::string printed = R"({"type":"text","data":")" + accents + "\"}\n";
  run(good, [&](int) -> RunOutcome { return ok_run(printed); });
  ASSERT_EQ(state_name(record_), "succeeded");
  EXPECT_EQ(record_.result->envelope.text, accents);
  const record::Run& kept = *record_.attempts[0].run;
  EXPECT_LE(kept.out.size(), 64U << 10);
  EXPECT_EQ(kept.out.size() + kept.out_dropped, printed.size());
  EXPECT_TRUE(printed.starts_with(kept.out.substr(0, 32'000)));
  EXPECT_TRUE(printed.ends_with(kept.out.substr(kept.out.size() - 32'000)));
  std::string ignored;
  EXPECT_TRUE(sbx::append_replacing(ignored, kept.out)) << "cut between characters";
}

TEST_F(DriverTest, CancelledBetweenStepsItEndsAtOnce) {
  on_state_ = [this](const Record& record) {
    if (state_name(record) != "execute") return;
    EXPECT_EQ(record.attempts[0].outcome, record::Outcome::kRunning);
    stop_.cancel();
  };
  run(good, passes);
  EXPECT_EQ(states_, "generate execute give_up cancelled");
  EXPECT_TRUE(sandbox_.ran.empty());
  EXPECT_EQ(record_.attempts[0].outcome, record::Outcome::kCancelled);
}

}  // namespace
}  // namespace agentd::loop
