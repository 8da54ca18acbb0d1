#include "agentd/render/record_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace agentd::render {
namespace {

using Json = nlohmann::ordered_json;

Json record_with(Json result) {
  return {{"id", "rq_1"},
          {"state", "succeeded"},
          {"reason", {{"code", "passed"}, {"text", "the program succeeded"}}},
          {"provider", {{"kind", "openai"}, {"model", "m-1"}, {"replayed", false}}},
          {"cost_usd", 0.00123},
          {"cost_basis", "list price"},
          {"wall_seconds", 4.25},
          {"attempts",
           {{{"n", 1},
             {"outcome", "failed"},
             {"class", "runtime"},
             {"error", {{"code", "exit"}, {"detail", "KeyError: 'price'"}}},
             {"seconds", 1.5},
             {"tokens", {{"input", 900}, {"output", 100}}},
             {"cost_usd", 0.0008}},
            {{"n", 2},
             {"outcome", "passed"},
             {"class", nullptr},
             {"error", nullptr},
             {"seconds", 2.75},
             {"tokens", {{"input", 1000}, {"output", 120}}},
             {"cost_usd", 0.00043}}}},
          {"result", std::move(result)},
          {"artifacts", Json::array()}};
}

Json result_of(const std::string& type, Json data) {
  return {{"type", type},
          {"data", std::move(data)},
          {"artifact", nullptr},
          {"note", nullptr},
          {"banner", nullptr}};
}

// What could drive a terminal: a control other than a line end or a tab, in UTF-8 or raw.
bool drives(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F || c1) return true;
  }
  return text.find("\xE2\x80\xAE") != std::string::npos;  // right to left from here on
}

Json refusal(const char* path, const char* reason) {
  return {{"path", path}, {"reason", reason}};
}

Json run_with(const char* status, const std::vector<Json>& refused) {
  return {{"status", status}, {"files", Json::array()}, {"refused", refused}};
}

TEST(LeftOut, SaysHowManyAndWhyOfTheRunThatTheFilesAreFrom) {
  Json record = record_with(result_of("text", "x"));
  EXPECT_EQ(left_out(record), "");
  record["attempts"][0]["run"] = run_with("exit", {refusal("first", "socket")});
  record["attempts"][1]["run"] = run_with("ok", {});
  EXPECT_EQ(left_out(record), "") << "the program of the result left nothing out";
  std::vector<Json> refused = {refusal("a\x1b[2J", "symbolic link")};
  record["attempts"][1]["run"] = run_with("ok", refused);
  EXPECT_FALSE(drives(left_out(record)));
  EXPECT_EQ(left_out(record), "left out: 1 of /output: a\\x1b[2J: symbolic link\n");
  refused[0]["path"] = "a";
  for (const char* path : {"b", "c", "d"}) refused.push_back(refusal(path, "named pipe"));
  refused.push_back(refusal(".", "12 more entries (the limit is 4 files)"));
  record["attempts"][1]["run"] = run_with("ok", refused);
  EXPECT_EQ(
      left_out(record),
      "left out: 4 of /output: a: symbolic link; b: named pipe; c: named pipe; … (--json names "
      "each); 12 more entries (the limit is 4 files)\n");
  record["result"] = nullptr;
  EXPECT_EQ(left_out(record), "") << "no result, no files of it";
}

TEST(LeftOut, WithToolsIsOfTheLastRunThatHadFiles) {
  Json record = record_with(result_of("text", "x"));
  const Json with_some = {{"run", run_with("ok", {refusal(".", "at least 2 more entries")})}};
  const Json with_none = {{"run", run_with("ok", {})}};
  record["attempts"][0]["tools"] = Json::array({with_some, {{"run", nullptr}}});
  record["attempts"][1]["tools"] = Json::array({with_none});
  EXPECT_EQ(left_out(record), "left out: at least 2 more entries\n");
  Json with_files = {{"run", run_with("ok", {refusal("a", "symbolic link")})}};
  with_files["run"]["files"] = Json::array({{{"name", "b"}}});
  record["attempts"][0]["tools"] = Json::array({with_files, with_some, with_none});
  EXPECT_EQ(left_out(record), "left out: 1 of /output: a: symbolic link\n");
}

TEST(ResultText, ShowsEachTypeInItsForm) {
  EXPECT_EQ(result_text(record_with(result_of("text", "two\nlines"))), "two\nlines\n");
  const Json table = Json::parse(R"({"columns": ["a", "b"], "rows": [["x", 1], ["y", 22]]})");
  EXPECT_EQ(result_text(record_with(result_of("table", table))), "a   b\n─  ──\nx   1\ny  22\n");
  EXPECT_EQ(result_text(record_with(result_of("chart", {{"series", 1}}))), "");
  EXPECT_EQ(result_text(record_with(nullptr)), "");
}

TEST(ResultText, RawOutputStandsUnderItsBannerAndANoteBelow) {
  Json result = result_of("raw", "42\n");
  result["banner"] = "No form.";
  result["note"] = "a doubt";
  EXPECT_EQ(result_text(record_with(result)), "[No form.]\n42\na doubt\n");
}

TEST(AttemptLines, HaveClassTimeTokensAndCost) {
  EXPECT_EQ(attempt_lines(record_with(nullptr)),
            "  1 runtime      1.5 s    1000 tokens  $0.00080  KeyError: 'price'\n"
            "  2 ok           2.8 s    1120 tokens  $0.00043\n");
  Json record = record_with(nullptr);
  for (const auto& [outcome, shown] : {std::pair("running", "running  "),
                                       {"not_run", "not run  "},
                                       {"cancelled", "cancelled"},
                                       {"done", "ok       "}}) {
    record["attempts"][1]["outcome"] = outcome;
    EXPECT_NE(attempt_lines(record).find(std::string("  2 ") + shown + "    2.8 s"),
              std::string::npos)
        << attempt_lines(record);
  }
}

TEST(Footer, HasAttemptsTimeCostProviderAndId) {
  Json record = record_with(nullptr);
  EXPECT_EQ(footer(record),
            "2 attempts · 4.2 s · $0.00123 (list price) · provider: openai m-1 · rq_1\n");
  record["attempts"].erase(1);
  record["cost_usd"] = 0;
  record["provider"] = {{"kind", "replay"}, {"model", "replay"}, {"replayed", true}};
  EXPECT_EQ(footer(record),
            "1 attempt · 4.2 s · $0 (list price) · provider: replay, recorded · rq_1\n");
}

TEST(Footer, SaysWhyItEndedWhereThatWasNoSuccess) {
  Json record = record_with(nullptr);
  record["state"] = "gave_up";
  record["reason"]["text"] = "all 3 attempts were used";
  EXPECT_TRUE(footer(record).ends_with("\ngave_up: all 3 attempts were used\n")) << footer(record);
}

TEST(Footer, OfARequestThatHasNotEndedSaysSo) {
  Json record = record_with(nullptr);
  record["reason"] = nullptr;
  for (const char* state : {"queued", "generate", "execute", "evaluate", "repair", "give_up"}) {
    record["state"] = state;
    EXPECT_TRUE(footer(record).ends_with(std::string("\n") + state +
                                         ": it is under way; show it again later\n"))
        << footer(record);
  }
}

TEST(ProviderLine, SaysThatRecordingsAreNoModel) {
  EXPECT_EQ(provider_line(
                {{"provider", {{"kind", "replay"}, {"origin", "the demo"}, {"replayed", true}}}}),
            "provider: replay (recorded replies of the demo; no model is asked)\n");
  EXPECT_EQ(
      provider_line(
          {{"provider",
            {{"kind", "openai"}, {"model", "m"}, {"origin", "http://h/v1"}, {"replayed", false}}}}),
      "provider: openai (m at http://h/v1)\n");
}

TEST(HistoryLines, AreOneForEachRequestAndCutWhereTheTextIsLong) {
  const Json page{{"requests",
                   {{{"id", "rq_2"},
                     {"created_at", "2026-01-02T03:04:05.678Z"},
                     {"state", "succeeded"},
                     {"attempts_made", 1},
                     {"cost_usd", 0.001},
                     {"text", std::string(100, 't') + "\nmore"}},
                    {{"id", "rq_1"},
                     {"created_at", "2026-01-02T03:04:04.000Z"},
                     {"state", "gave_up"},
                     {"attempts_made", 3},
                     {"cost_usd", 0},
                     {"text", "short"}}}},
                  {"next", nullptr}};
  EXPECT_EQ(history_lines(page),
            "rq_2  2026-01-02T03:04:05Z  succeeded   1   $0.00100  " + std::string(59, 't') +
                "…\n"
                "rq_1  2026-01-02T03:04:04Z  gave_up     3         $0  short\n");
}

// SECURITY: whatever a model or a program wrote, wherever it stands.
TEST(Rendering, NoStringOfARecordDrivesTheTerminal) {
  const std::string hostile =
      "a\x1b]0;title\x07 b\x1b[2J \xC2\x9B"
      "31m \x7F \r\b \xE2\x80\xAE end \xFF\x9B";
  Json base = record_with(result_of("text", "t"));
  for (const char* type : {"text", "raw", "table"}) {
    Json result = result_of(type, hostile);
    if (type == std::string("table")) {
      result["data"] = Json::object();
      result["data"]["columns"] = Json::array({hostile});
      result["data"]["rows"] =
          Json::array({Json::array({hostile}), Json::array({Json::object({{hostile, hostile}})})});
    }
    result["note"] = hostile;
    result["banner"] = hostile;
    base["result"] = result;
    base["state"] = hostile;
    base["cost_basis"] = hostile;
    base["reason"] = {{"text", hostile}};
    base["provider"] = {{"kind", hostile}, {"model", hostile}, {"origin", hostile}};
    base["attempts"][0]["class"] = hostile;
    base["attempts"][0]["error"] = {{"detail", hostile}};
    for (const std::string& text :
         {result_text(base), attempt_lines(base), footer(base), provider_line(base)}) {
      EXPECT_FALSE(drives(text)) << type << ": " << text;
    }
  }
  const Json page{
      {"requests",
       {{{"id", hostile}, {"created_at", hostile}, {"state", hostile}, {"text", hostile}}}}};
  EXPECT_FALSE(drives(history_lines(page)));
  EXPECT_TRUE(drives(hostile)) << "the check itself can fail";
}

// Another version's answers may have other types anywhere.
TEST(Rendering, AValueOfAnyTypeAnywhereIsDrawnSomehow) {
  const Json whole = record_with(result_of(
      "table", Json::parse(R"({"columns": ["a", "b"], "rows": [["x", 1], ["y", {"k": 2}]]})")));
  const std::vector<Json> others = {
      nullptr, true,          -7,           1e300,
      "text",  Json::array(), {{"k", "v"}}, Json::array({nullptr, 1, "x", Json::array({1})})};
  const Json flat = whole.flatten();
  std::set<std::string> places;
  for (const auto& leaf : flat.items()) {
    // Each leaf, and each value that it stands in.
    for (std::string at = leaf.key(); !at.empty(); at.erase(at.rfind('/'))) places.insert(at);
  }
  EXPECT_GT(places.size(), 30U);
  for (const std::string& place : places) {
    for (const Json& other : others) {
      Json record = whole;
      record[Json::json_pointer(place)] = other;
      EXPECT_NO_THROW({
        (void)result_text(record);
        (void)attempt_lines(record);
        (void)footer(record);
        (void)provider_line(record);
        (void)history_lines({{"requests", {record}}});
        (void)history_lines({{"requests", record}});
      }) << place
         << " as " << other;
    }
  }
}

}  // namespace
}  // namespace agentd::render
