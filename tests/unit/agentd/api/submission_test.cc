#include "agentd/api/submission.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "agentd/providers/recordings.h"
#include "runtime/base/base64.h"
#include "runtime/daemon/run_request.h"
#include "tests/unit/daemon/rules.h"

namespace agentd::api {
namespace {

using record::Mode;
using sbx::http::Problem;
using service::Submitted;

const record::Budget kCeilings;

std::string refusal_of(std::string_view body, Mode mode = Mode::kCode) {
  const auto parsed = parse_submission(body, mode, kCeilings);
  const auto* problem = std::get_if<Problem>(&parsed);
  return problem == nullptr ? "ok" : problem->code;
}

Problem problem_of(std::string_view body) {
  const auto parsed = parse_submission(body, Mode::kCode, kCeilings);
  const auto* problem = std::get_if<Problem>(&parsed);
  EXPECT_NE(problem, nullptr) << body;
  return problem == nullptr ? Problem{} : *problem;
}

Submitted good(std::string_view body, Mode mode = Mode::kCode) {
  auto parsed = parse_submission(body, mode, kCeilings);
  const auto* problem = std::get_if<Problem>(&parsed);
  EXPECT_EQ(problem, nullptr) << problem->code << ": " << problem->detail;
  return problem == nullptr ? std::get<Submitted>(std::move(parsed)) : Submitted{};
}

TEST(Submission, ARequestNeedsTextAlone) {
  const Submitted submitted = good(R"({"text":"hi"})");
  EXPECT_EQ(submitted.record.text, "hi");
  EXPECT_EQ(submitted.record.language, "python");
  EXPECT_EQ(submitted.record.budget.attempts, 3);
  EXPECT_EQ(submitted.submission.request_sha256, providers::request_sha256("python", "hi", {}));
}

TEST(Submission, EverythingThatCanBeGivenIsTaken) {
  const std::string body = R"({"text":"t","language":"js","label":"da-1","files":[
      {"name":"a.csv","content_base64":")" +
                           sbx::encode_base64("x,y\n1,2\n") + R"("}],
      "budget":{"attempts":2,"tokens":9000,"cost_usd":0.005,"sandbox_seconds":1.5,"wall_seconds":20}})";
  const Submitted submitted = good(body);
  EXPECT_EQ(submitted.record.language, "javascript");
  EXPECT_EQ(submitted.record.budget.attempts, 2);
  EXPECT_EQ(submitted.record.budget.tokens, 9000);
  EXPECT_EQ(submitted.record.budget.cost.value, 5000);
  EXPECT_EQ(submitted.record.budget.sandbox.count(), 1500);
  EXPECT_EQ(submitted.record.files.at(0).size, 8U);
  EXPECT_NE(submitted.submission.files_description.find("x,y"), std::string::npos);
  EXPECT_EQ(submitted.submission.files.at(0).content_base64, sbx::encode_base64("x,y\n1,2\n"));
}

TEST(Submission, ATaskHasItsOwnFields) {
  const Submitted submitted =
      good(R"({"task":"t","max_iterations":4,"budget":{"tokens":500}})", Mode::kTools);
  EXPECT_EQ(submitted.record.budget.attempts, 4);
  EXPECT_EQ(submitted.submission.request_sha256, providers::request_sha256("agent", "t", {}));
  EXPECT_EQ(good(R"({"task":"t"})", Mode::kTools).record.budget.attempts, kMaxIterations);
  EXPECT_EQ(refusal_of(R"({"text":"t"})", Mode::kTools), "unknown_field");
  EXPECT_EQ(refusal_of(R"({"task":"t","language":"python"})", Mode::kTools), "unknown_field");
  EXPECT_EQ(refusal_of(R"({"task":"t","budget":{"attempts":1}})", Mode::kTools), "unknown_field");
  EXPECT_EQ(refusal_of(R"({"task":"t","max_iterations":11})", Mode::kTools), "above_ceiling");
  EXPECT_EQ(refusal_of(R"({"task":"t"})", Mode::kCode), "unknown_field");
}

TEST(Submission, MistakesHaveStableCodes) {
  EXPECT_EQ(refusal_of(""), "invalid_json");
  EXPECT_EQ(refusal_of("{"), "invalid_json");
  EXPECT_EQ(refusal_of("[]"), "wrong_type");
  EXPECT_EQ(refusal_of("{}"), "missing_field");
  EXPECT_EQ(refusal_of(R"({"text":""})"), "text_empty");
  EXPECT_EQ(refusal_of(R"({"text":" \n\t"})"), "text_empty");
  EXPECT_EQ(refusal_of(R"({"text":7})"), "wrong_type");
  EXPECT_EQ(refusal_of(R"({"text":"a","text":"b"})"), "duplicate_field");
  EXPECT_EQ(refusal_of(R"({"text":"a","language":"cobol"})"), "unknown_language");
  EXPECT_EQ(refusal_of(R"({"text":"a","language":"bash"})"), "unknown_language");
  EXPECT_EQ(refusal_of(R"({"text":"a","extra":1})"), "unknown_field");
  EXPECT_EQ(refusal_of(R"({"text":"a","budget":[]})"), "wrong_type");
  EXPECT_EQ(refusal_of(R"({"text":"a","budget":{"money":1}})"), "unknown_field");
}

TEST(Submission, ABudgetIsAboveZeroAndWithinTheCeilings) {
  for (const char* name : {"attempts", "tokens", "cost_usd", "sandbox_seconds", "wall_seconds"}) {
    const auto body = [name](const char* value) {
      return std::string(R"({"text":"a","budget":{")") + name + "\":" + value + "}}";
    };
    EXPECT_EQ(refusal_of(body("0")), "invalid_value") << name;
    EXPECT_EQ(refusal_of(body("-1")), "invalid_value") << name;
    EXPECT_EQ(refusal_of(body("1000000000")), "above_ceiling") << name;
    EXPECT_EQ(refusal_of(body("\"1\"")), "wrong_type") << name;
    EXPECT_EQ(refusal_of(body("null")), "wrong_type") << name;
    EXPECT_EQ(refusal_of(body("1e999")), "invalid_json") << name;
  }
  EXPECT_EQ(refusal_of(R"({"text":"a","budget":{"attempts":1.5}})"), "wrong_type");
  const auto of = [](std::string_view name, std::string_view value) {
    return fmt::format(R"({{"text":"a","budget":{{"{}":{}}}}})", name, value);
  };
  for (const auto& [name, below, least] :
       {std::tuple("sandbox_seconds", "0.999", "1"), std::tuple("wall_seconds", "1.999", "2"),
        std::tuple("cost_usd", "9.9e-7", "0.000001")}) {
    EXPECT_EQ(refusal_of(of(name, below)), "invalid_value");
    EXPECT_NE(problem_of(of(name, below)).detail.find(fmt::format("at least {}: ", least)),
              std::string::npos);
    EXPECT_EQ(refusal_of(of(name, least)), "ok");
  }
  EXPECT_EQ(good(of("cost_usd", "0.000001")).record.budget.cost.value, 1);
  const Problem above = problem_of(R"({"text":"a","budget":{"cost_usd":0.03}})");
  EXPECT_EQ(above.field, "budget.cost_usd");
  EXPECT_EQ(above.allowed, std::vector<std::string>{"0.02"});
  EXPECT_EQ(good(R"({"text":"a","budget":{"cost_usd":0.02}})").record.budget.cost.value, 20'000);
}

TEST(Submission, FilesHaveNamesOfOneComponentAndCanonicalContent) {
  const auto body = [](const std::string& name, const std::string& content = "eA==") {
    return R"({"text":"a","files":[{"name":)" + name + R"(,"content_base64":")" + content + "\"}]}";
  };
  for (const char* name : {"\"\"", "\".\"", "\"..\"", "\"a/b\"", "\"/a\"", "\"a\\u0000b\""}) {
    EXPECT_EQ(refusal_of(body(name)), "invalid_value") << name;
  }
  EXPECT_EQ(refusal_of(body("\"" + std::string(kMaxFileName, 'n') + "\"")), "ok");
  EXPECT_EQ(refusal_of(body("\"" + std::string(kMaxFileName + 1, 'n') + "\"")), "invalid_value");
  EXPECT_EQ(refusal_of(body("\"-rf \"")), "ok") << "odd, but one component";
  EXPECT_EQ(refusal_of(body("7")), "wrong_type");
  for (const char* content : {"eA", "eA=", "e A==", "!"}) {
    EXPECT_EQ(refusal_of(body("\"a\"", content)), "invalid_value") << content;
  }
  EXPECT_EQ(refusal_of(R"({"text":"a","files":[{"name":"a"}]})"), "missing_field");
  EXPECT_EQ(refusal_of(R"({"text":"a","files":[{"name":"a","content_base64":"","mode":1}]})"),
            "unknown_field");
  const Problem twice = problem_of(
      R"({"text":"a","files":[{"name":"x.csv","content_base64":""},{"name":"x.csv","content_base64":""}]})");
  EXPECT_EQ(twice.detail, "Two files are named \"x.csv\".");
  EXPECT_FALSE(twice.fix.empty());
  EXPECT_EQ(refusal_of(R"({"text":"a","files":[{"name":"a","content_base64":""},
                                            {"name":"a","content_base64":""}]})"),
            "invalid_value");
}

// As JSON writes them.
TEST(Submission, FilesHaveTheNamesThatTheSandboxTakes) {
  std::vector<std::string> names = {
      "",  ".",   "..",   "...",    ".a",       "a/b",     "/a",      "a/",  "main.py", "-rf",
      " ", "a b", "\\\\", "a\\\"b", "\xC3\xA4", "\\u0085", "\\u2028", "con", "*"};
  for (int byte = 0; byte <= 0x20; ++byte) names.push_back(fmt::format("a\\u{:04x}b", byte));
  names.emplace_back("a\\u007f");
  for (const std::size_t size : {254U, 255U, 256U}) names.emplace_back(size, 'n');
  names.push_back("n" + std::string(254, '/'));
  std::string long_one;
  for (int i = 0; i < 127; ++i) long_one += "\xC3\xA4";
  names.push_back(long_one + "n");
  names.push_back(long_one + "nn");
  const sbx::daemon::RequestRules rules = sbx::test::default_rules();
  int taken = 0;
  const auto compare = [&](const std::string& files) {
    const auto run =
        sbx::daemon::parse_run_request(R"({"language":"python","code":"","files":)" + files + "}",
                                       rules, sbx::daemon::RunPlace::kAlone);
    const auto* refused = std::get_if<Problem>(&run);
    EXPECT_EQ(refusal_of(R"({"text":"a","files":)" + files + "}"),
              refused == nullptr ? "ok" : refused->code)
        << files;
    taken += refused == nullptr ? 1 : 0;
  };
  for (const std::string& name : names) {
    compare(R"([{"name":")" + name + R"(","content_base64":"eA=="}])");
  }
  EXPECT_GT(taken, 10);
  EXPECT_GT(static_cast<int>(names.size()) - taken, 30);
  compare(R"([{"name":"a","content_base64":""},{"name":"a","content_base64":""}])");
  compare(R"([{"name":"a","content_base64":""},{"name":"A","content_base64":""}])");
}

TEST(Submission, SizesHaveLimitsAtAndOnePast) {
  const auto text = [](std::size_t bytes) {
    return "{\"text\":\"" + std::string(bytes, 't') + "\"}";
  };
  EXPECT_EQ(refusal_of(text(kMaxTextBytes)), "ok");
  EXPECT_EQ(refusal_of(text(kMaxTextBytes + 1)), "text_too_long");
  EXPECT_EQ(refusal_of(text(1'000'000)), "text_too_long");
  const auto files = [](std::size_t count) {
    std::string body = R"({"text":"a","files":[)";
    for (std::size_t i = 0; i < count; ++i) {
      body +=
          (i == 0 ? "" : ",") + (R"({"name":")" + std::to_string(i) + R"(","content_base64":""})");
    }
    return body + "]}";
  };
  EXPECT_EQ(refusal_of(files(kMaxFiles)), "ok");
  EXPECT_EQ(refusal_of(files(kMaxFiles + 1)), "invalid_value");
  const auto large = [](std::size_t bytes) {
    return R"({"text":"a","files":[{"name":"a","content_base64":")" +
           sbx::encode_base64(std::string(bytes, 'x')) + "\"}]}";
  };
  EXPECT_EQ(refusal_of(large(kMaxFileBytes)), "ok");
  EXPECT_EQ(refusal_of(large(kMaxFileBytes + 1)), "files_too_large");
  EXPECT_EQ(refusal_of(R"({"text":"a","label":")" + std::string(kMaxLabel, 'l') + "\"}"), "ok");
  EXPECT_EQ(refusal_of(R"({"text":"a","label":")" + std::string(kMaxLabel + 1, 'l') + "\"}"),
            "invalid_value");
}

}  // namespace
}  // namespace agentd::api
