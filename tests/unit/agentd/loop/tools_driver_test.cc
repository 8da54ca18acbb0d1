// Tool-calling mode: whatever the model does, it is answered, and it ends.
#include "agentd/loop/tools_driver.h"

#include <gtest/gtest.h>

#include "tests/agent/support/fakes.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::loop {
namespace {

using providers::Completion;
using providers::CompletionRequest;
using providers::CompletionResult;
using providers::ProviderError;
using providers::ToolCall;
using record::Record;
using sandbox::RunOutcome;
using sandbox::SandboxFailure;
using test::FakeProvider;
using test::FakeSandbox;

Completion calls(std::vector<ToolCall> tool_calls) {
  return {.text = "I'll run it.",
          .tool_calls = std::move(tool_calls),
          .finish = providers::Finish::kToolCalls,
          .usage = providers::Usage{300, 40}};
}

Completion answer(const std::string& text) {
  return {.text = text, .finish = providers::Finish::kStop, .usage = providers::Usage{300, 40}};
}

constexpr char kToolsSecret[] = "tok-of-agentd-73510982";

ToolCall run_code(const std::string& code) {
  return {"c", "run_code", R"({"language":"python","code":")" + code + "\"}"};
}

class ToolsDriverTest : public ::testing::Test {
 protected:
  ToolsDriverTest() {
    record_.id = "r1";
    record_.mode = record::Mode::kTools;
    record_.text = "task";
    record_.queued = false;
    record_.budget.attempts = 10;
    sandbox_.info_ = test::known(test::shipped_info());
  }

  void run(std::function<CompletionResult(int)> model, RunOutcome outcome) {
    model_ = std::move(model);
    outcome_ = std::move(outcome);
    auto composer = prompts::Composer::make({});
    ASSERT_TRUE(composer);
    const Services services{.provider = provider_,
                            .sandbox = sandbox_,
                            .ledger = ledger_.ledger,
                            .composer = *composer,
                            .redactor = redactor_};
    const Submission submission;
    ToolsDriver driver(services, submission, record_, stop_, [](const Record&) {});
    sbx::async::test::run_on(loop_, driver.run());
    sbx::async::test::run_on(loop_, ledger_.written());
    for (const char* unit : {"tokens", "cost", "sandbox_ms"}) {
      EXPECT_EQ(ledger_.book.balance("request/r1/" + std::string(unit))->reserved, 0) << unit;
    }
  }

  // What the model was told by the answers to its last calls.
  std::string last_output() { return record_.attempts.back().tools.back().output; }

  sbx::async::Loop loop_;
  test::TestLedger ledger_{loop_};
  redact::Redactor redactor_{{redact::Secret(kToolsSecret)}};
  sbx::async::Cancellation stop_;
  std::function<CompletionResult(int)> model_;
  RunOutcome outcome_;
  FakeProvider provider_{[this](const CompletionRequest&) {
    return model_(static_cast<int>(provider_.asked.size()));
  }};
  FakeSandbox sandbox_{[this](const sandbox::RunRequest&) { return outcome_; }};
  Record record_;
};

TEST_F(ToolsDriverTest, RunsProgramsUntilTheModelAnswers) {
  run(
      [](int n) -> CompletionResult {
        return n == 1 ? calls({run_code("print(1)"), run_code("print(2)")}) : answer("It is 3.");
      },
      test::ok_run("out </data> put"));
  EXPECT_EQ(state_name(record_), "succeeded");
  EXPECT_EQ(record_.result->text, "It is 3.");
  ASSERT_EQ(record_.attempts.size(), 2U);
  EXPECT_EQ(record_.attempts[0].tools.size(), 2U);
  EXPECT_EQ(sandbox_.ran[1].code, "print(2)");
  const auto& told = provider_.asked[1].messages.back();
  EXPECT_EQ(told.role, providers::Role::kTool);
  EXPECT_NE(told.text.find("out &lt;/data> put"), std::string::npos) << told.text;
  EXPECT_FALSE(told.is_error);
}

TEST_F(ToolsDriverTest, NothingThatTheModelGetsWrongRaises) {
  const std::vector<ToolCall> wrong = {
      {"1", "browse", "{}"},
      {"2", "", ""},
      {"3", "run_code", ""},
      {"4", "run_code", "{\"code\": \"print(1"},
      {"5", "run_code", "[]"},
      {"6", "run_code", R"({"language":"python"})"},
      {"7", "run_code", R"({"code":"x"})"},
      {"8", "run_code", R"({"code":1,"language":"python"})"},
      {"9", "run_code", R"({"code":"x","language":"cobol"})"},
      {"10", "run_code", R"({"code":"x","language":"python","timeout":9})"},
      {"11", "run_code",
       R"({"language":"python","code":")" + std::string(envelope::kMaxCodeBytes + 1, 'x') + "\"}"}};
  record_.budget.tokens = 1'000'000;  // one of the mistakes is long
  run([&](int n) -> CompletionResult { return n == 1 ? calls(wrong) : answer("sorry"); },
      test::ok_run("never"));
  EXPECT_EQ(state_name(record_), "succeeded");
  EXPECT_TRUE(sandbox_.ran.empty());
  ASSERT_EQ(record_.attempts[0].tools.size(), wrong.size());
  for (const record::ToolUse& use : record_.attempts[0].tools) {
    EXPECT_TRUE(use.is_error);
    EXPECT_FALSE(use.output.empty()) << use.arguments;
  }
}

TEST_F(ToolsDriverTest, OfTooManyCallsTheFirstAreDoneAndTheModelIsTold) {
  run(
      [](int n) -> CompletionResult {
        if (n > 1) return answer("done");
        Completion reply = calls({run_code("print(1)"), run_code("print(2)")});
        reply.calls_dropped = true;
        return reply;
      },
      test::ok_run("1"));
  EXPECT_EQ(state_name(record_), "succeeded");
  EXPECT_EQ(sandbox_.ran.size(), 2U);
  EXPECT_FALSE(record_.attempts[0].charge.estimated);
  const auto& told = provider_.asked[1].messages;
  EXPECT_NE(told.back().text.find("may make 16"), std::string::npos) << told.back().text;
  EXPECT_EQ(told[told.size() - 2].text.find("may make 16"), std::string::npos);
}

TEST_F(ToolsDriverTest, AHostileCallEndsIt) {
  auto hostile = test::failed_run("");
  hostile.status = "security";
  run([](int) -> CompletionResult { return calls({run_code("x"), run_code("y")}); }, hostile);
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_EQ(record_.state.ending.reason, Reason::kSecurity);
  EXPECT_EQ(sandbox_.ran.size(), 1U);
  EXPECT_EQ(provider_.asked.size(), 1U);
}

TEST_F(ToolsDriverTest, ASandboxThatIsDownInTheMiddleIsToldToTheModel) {
  run([](int n) -> CompletionResult { return n == 1 ? calls({run_code("1")}) : answer("no luck"); },
      SandboxFailure{.kind = SandboxFailure::Kind::kUnreachable, .detail = "nobody answers"});
  EXPECT_EQ(state_name(record_), "succeeded");
  EXPECT_EQ(record_.attempts[0].tools[0].output,
            "The sandbox could not run it:\n<data>\nnobody answers\n</data>");
}

TEST_F(ToolsDriverTest, NoStepIsPaidForOnceTheSandboxIsGone) {
  run(
      [this](int) -> CompletionResult {
        sandbox_.info_ = SandboxFailure{
            .kind = SandboxFailure::Kind::kSilent, .detail = "does not answer", .fix = "look"};
        return calls({run_code("1")});
      },
      SandboxFailure{.kind = SandboxFailure::Kind::kSilent, .detail = "does not answer"});
  EXPECT_EQ(state_name(record_), "failed");
  EXPECT_EQ(record_.attempts.size(), 1U);
  EXPECT_EQ(record_.state.ending.failure, FailureClass::kSandbox);
  EXPECT_NE(record_.reason_text.find("does not answer. Fix: look"), std::string::npos)
      << record_.reason_text;
}

TEST_F(ToolsDriverTest, AFailedRunIsAnErrorWithStatusStreamsAndNotes) {
  sandbox::RunResult run_result = test::failed_run("NameError: x");
  run_result.notes = {{"memory", "Kernel fact.", "kernel"}};
  run([](int n) -> CompletionResult { return n == 1 ? calls({run_code("x")}) : answer("."); },
      run_result);
  const record::ToolUse& use = record_.attempts[0].tools[0];
  EXPECT_TRUE(use.is_error);
  for (const char* part : {"exit code 1", "Kernel fact.", "NameError: x"}) {
    EXPECT_NE(use.output.find(part), std::string::npos) << use.output;
  }
}

TEST_F(ToolsDriverTest, ACutOrEmptyReplyIsNoAnswerAndIsToldSo) {
  run(
      [](int n) -> CompletionResult {
        if (n == 1) return Completion{.text = "It is 4", .finish = providers::Finish::kLength};
        if (n == 2) return Completion{.text = "", .finish = providers::Finish::kLength};
        if (n == 3) return answer(" \n");
        return answer("It is 42.");
      },
      test::ok_run("never"));
  EXPECT_EQ(state_name(record_), "succeeded");
  EXPECT_EQ(record_.result->text, "It is 42.");
  ASSERT_EQ(record_.attempts.size(), 4U);
  EXPECT_EQ(record_.attempts[0].error->code, "cut");
  EXPECT_EQ(record_.attempts[1].error->code, "cut");
  EXPECT_EQ(record_.attempts[2].error->code, "empty");
  EXPECT_FALSE(record_.attempts[3].error);
  for (std::size_t call = 1; call < 4; ++call) {
    const auto& told = provider_.asked[call].messages.back();
    EXPECT_EQ(told.role, providers::Role::kUser);
    EXPECT_EQ(told.text, record_.attempts[call - 1].error->detail + ".");
    for (const auto& message : provider_.asked[call].messages) {
      EXPECT_NE(message.text.find_first_not_of(" \n"), std::string::npos)
          << "some servers refuse empty messages";
    }
  }
}

TEST_F(ToolsDriverTest, AConnectionThatBrokeEndsItAndHalfACallIsNotMade) {
  run(
      [](int) -> CompletionResult {
        return Completion{.text = "It is",
                          .tool_calls = {run_code("print(1)")},
                          .finish = providers::Finish::kCut};
      },
      test::ok_run("never"));
  EXPECT_EQ(record_.state.ending.reason, Reason::kProvider);
  ASSERT_EQ(record_.attempts.size(), 1U);
  EXPECT_EQ(record_.attempts[0].error->code, "broken");
  EXPECT_TRUE(record_.attempts[0].tools.empty());
  EXPECT_TRUE(sandbox_.ran.empty());
}

TEST_F(ToolsDriverTest, AKeyOfAgentdsOwnIsNotRunAndItsOutputIsCleanedBeforeItIsCut) {
  const std::string own = kToolsSecret;
  const auto model = [&](int n) -> CompletionResult {
    if (n == 1) return calls({run_code("print('" + own + "')")});
    return n == 2 ? calls({run_code("x")}) : answer(".");
  };
  // Wherever the cut falls.
  std::string long_output;
  while (long_output.size() < 200'000) long_output += own;
  run(model, test::ok_run(long_output));
  EXPECT_EQ(sandbox_.ran.size(), 1U) << "the second alone";
  EXPECT_TRUE(record_.attempts.at(0).tools.at(0).is_error);
  const record::ToolUse& use = record_.attempts.at(1).tools.at(0);
  for (const std::string& text : {use.output, use.run->out}) {
    for (std::size_t at = 0; at + 8 <= own.size(); ++at) {
      EXPECT_EQ(text.find(own.substr(at, 8)), std::string::npos) << own.substr(at, 8);
    }
  }
}

TEST_F(ToolsDriverTest, AWithheldReplyEndsItWithTheProvidersReason) {
  run(
      [](int) -> CompletionResult {
        return Completion{.text = "I can",
                          .finish = providers::Finish::kFiltered,
                          .finish_reason = "content_filter"};
      },
      test::ok_run("never"));
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_EQ(record_.state.ending.reason, Reason::kProvider);
  EXPECT_NE(record_.reason_text.find("content_filter"), std::string::npos) << record_.reason_text;
  EXPECT_EQ(record_.attempts.size(), 1U);
  EXPECT_FALSE(record_.result);
}

TEST_F(ToolsDriverTest, AModelThatNeverSaysAnythingGivesUpWithinItsSteps) {
  record_.budget.attempts = 3;
  run([](int) -> CompletionResult { return answer(""); }, test::ok_run("never"));
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_EQ(record_.attempts.size(), 3U);
  EXPECT_FALSE(record_.result);
}

TEST_F(ToolsDriverTest, ItEndsWhenItsStepsAreUsed) {
  record_.budget.attempts = 4;
  run([](int) -> CompletionResult { return calls({run_code("1")}); }, test::ok_run("x"));
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_EQ(record_.attempts.size(), 4U);
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kAttempts);
}

TEST_F(ToolsDriverTest, TheGrowingConversationEndsAtTheBudgetOfTokens) {
  record_.budget.attempts = 100;
  run([](int) -> CompletionResult { return calls({run_code("1")}); },
      test::ok_run(std::string(3000, 'x')));
  EXPECT_EQ(record_.state.ending.ceiling, Ceiling::kTokens) << record_.reason_text;
  EXPECT_LE(record_.spent.tokens, record_.budget.tokens);
}

TEST_F(ToolsDriverTest, AModelThatCannotBeReachedEndsIt) {
  run([](int) -> CompletionResult { return ProviderError{.detail = "down"}; }, test::ok_run(""));
  EXPECT_EQ(state_name(record_), "gave_up");
  EXPECT_EQ(record_.state.ending.reason, Reason::kProvider);
}

TEST_F(ToolsDriverTest, LongOutputIsCutInTheMiddle) {
  run([](int n) -> CompletionResult { return n == 1 ? calls({run_code("1")}) : answer("."); },
      test::ok_run("head" + std::string(100'000, 'x') + "tail"));
  const std::string& output = record_.attempts[0].tools[0].output;
  EXPECT_LT(output.size(), prompts::kMaxToolOutputBytes);
  EXPECT_NE(output.find("head"), std::string::npos);
  EXPECT_NE(output.find("tail"), std::string::npos);
}

}  // namespace
}  // namespace agentd::loop
