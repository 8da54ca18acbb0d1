#include "agentd/providers/recordings.h"

#include <gtest/gtest.h>

#include "tests/support/process.h"

namespace agentd::providers {
namespace {

const std::string kHash(64, 'a');

std::string line(const std::string& hash, int call, const std::string& label = "",
                 const std::string& reply = "\"r\"") {
  return R"({"prompt":"codegen.v1.python","request_sha256":")" + hash + R"(","label":")" + label +
         R"(","call":)" + std::to_string(call) + R"(,"reply":)" + reply +
         R"(,"finish_reason":"stop","usage":{"input_tokens":3,"output_tokens":4}})";
}

TEST(RequestHash, IsTheOneOfTheDocumentedExample) {
  EXPECT_EQ(request_sha256(
                "python", "hi",
                {{"a.csv", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}),
            "2b38cd73b3a760ed5c29744712b2caf0fbc528571e4a52bd1f5df0759f4fa803");
}

TEST(RequestHash, CoversLanguageTextAndFilesInAnyOrder) {
  const std::string base = request_sha256("python", "hi", {{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(request_sha256("python", "hi", {{"b", "2"}, {"a", "1"}}), base);
  EXPECT_NE(request_sha256("javascript", "hi", {{"a", "1"}, {"b", "2"}}), base);
  EXPECT_NE(request_sha256("python", "hi ", {{"a", "1"}, {"b", "2"}}), base);
  EXPECT_NE(request_sha256("python", "hi", {{"a", "2"}, {"b", "1"}}), base);
}

TEST(Recordings, AreReadAndWrittenInOneFormat) {
  const std::string text = line(kHash, 2, "da-1");
  const auto recording = parse_recording(text);
  ASSERT_TRUE(recording) << to_string(recording.error());
  EXPECT_EQ(recording->completion.text, "r");
  EXPECT_EQ(recording->completion.finish, Finish::kStop);
  EXPECT_EQ(recording->completion.usage->output_tokens, 4);
  EXPECT_EQ(to_line(*recording), text);
  const std::string tools =
      line(kHash, 1, "", R"({"text":"t","tool_calls":[{"id":"i","name":"n","arguments":"{"}]})");
  const auto with_tools = parse_recording(tools);
  ASSERT_TRUE(with_tools);
  EXPECT_EQ(with_tools->completion.tool_calls.at(0).arguments, "{");
  EXPECT_EQ(to_line(*with_tools), tools);
}

TEST(Recordings, AreFoundByHashAndByLabelOnlyWhenNothingHasTheHash) {
  sbx::test::TemporaryDirectory directory;
  const std::string other(64, 'b');
  (void)directory.write("b.jsonl", line(other, 1, "da-2") + "\n\n" + line(other, 2, "da-2") + "\n");
  (void)directory.write("a.jsonl", line(kHash, 1, "da-1"));
  (void)directory.write("ignored.txt", "x");
  const std::vector<std::string> directories = {directory.path()};
  const auto all = Recordings::load(directories);
  ASSERT_TRUE(all) << to_string(all.error());
  EXPECT_EQ(all->size(), 3U);
  const auto found = [&](const RecordingKey& key) { return all->find(key) != nullptr; };
  EXPECT_TRUE(found({.request_sha256 = kHash, .call = 1}));
  EXPECT_FALSE(found({.request_sha256 = kHash, .call = 2}));
  EXPECT_FALSE(found({.request_sha256 = kHash, .label = "da-2", .call = 2})) << "the hash is known";
  EXPECT_TRUE(found({.request_sha256 = "unknown", .label = "da-2", .call = 2}));
  EXPECT_FALSE(found({.request_sha256 = "unknown", .call = 1}));
}

TEST(Recordings, SayWhereAMistakeIs) {
  sbx::test::TemporaryDirectory directory;
  const std::vector<std::string> directories = {directory.path()};
  const auto error_with = [&](const std::string& content) {
    (void)directory.write("x.jsonl", content);
    const auto all = Recordings::load(directories);
    return all ? "none" : all.error().detail;
  };
  const std::string good = line(kHash, 1) + "\n";
  for (const std::string& bad :
       {std::string("{"), std::string("[]"), line("short", 1), line(kHash, 0),
        line(kHash, 2, "", "7"), line(kHash, 2, "", R"({"tool_calls":1})"), line(kHash, 1)}) {
    const std::string detail = error_with(good + bad);
    EXPECT_NE(detail.find("x.jsonl:2: "), std::string::npos) << detail;
  }
  const std::vector<std::string> missing = {directory.path() + "/none"};
  EXPECT_FALSE(Recordings::load(missing));
}

}  // namespace
}  // namespace agentd::providers
