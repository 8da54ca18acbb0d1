#include "runtime/daemon/result_body.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/base/base64.h"
#include "runtime/base/sys.h"

namespace sbx::daemon {
namespace {

UniqueFd file_with(const std::string& content) {
  UniqueFd fd(::memfd_create("content", MFD_CLOEXEC));
  EXPECT_TRUE(sys::write_all(fd.get(), content));
  return fd;
}

// As the collector does: the sink, then the file in the outcome, sorted by name.
void keep(collect::Outcome& outcome, const collect::FileSink& sink, const std::string& path,
          const std::string& content) {
  const UniqueFd fd = file_with(content);
  collect::CollectedFile file;
  file.path = file.raw_path = path;
  file.size = content.size();
  ASSERT_TRUE(sink(file, fd.get()));
  outcome.files.insert(outcome.files.begin(), std::move(file));
}

std::string text_of(ResultBody& body) {
  std::string text;
  for (;;) {
    auto piece = body.next();
    EXPECT_TRUE(piece);
    if (!piece || !*piece) return text;
    EXPECT_LE((*piece)->size(), 64U * 1024);
    text += **piece;
  }
}

TEST(ResultBody, WithoutFilesIsTheOutcomesJson) {
  collect::Outcome outcome;
  outcome.id = "x";
  ResultBody body(outcome, KeptFiles());
  EXPECT_EQ(text_of(body), to_json(outcome));
}

TEST(ResultBody, FilesAreWhereTheyBelongWhateverTheOrderOfCollecting) {
  collect::Outcome outcome;
  KeptFiles files;
  const collect::FileSink sink = files.sink();
  std::string large;
  for (int i = 0; i < 200'000; ++i) large += static_cast<char>(i * 7);
  keep(outcome, sink, "a", "first");
  keep(outcome, sink, "b", "");
  keep(outcome, sink, "c", large);
  EXPECT_EQ(files.bytes(), 5 + large.size());
  ResultBody body(outcome, std::move(files));
  const auto json = nlohmann::json::parse(text_of(body));
  ASSERT_EQ(json["files"].size(), 3U);
  const auto content = [&](std::size_t i) {
    return decode_base64(json["files"][i]["content_base64"].get<std::string>());
  };
  EXPECT_EQ(json["files"][0]["path"], "c");
  EXPECT_EQ(content(0), large);
  EXPECT_EQ(content(1), "");
  EXPECT_EQ(content(2), "first");
}

TEST(ResultBody, TextThatOnlyBeginsAsAMarkDoesStaysAsItIs) {
  collect::Outcome outcome;
  KeptFiles files;
  keep(outcome, files.sink(), "a", "first");
  const std::string mark = encode_base64(*outcome.files.front().content);
  outcome.stdout_bytes = mark.substr(0, mark.size() - 3) + "?" + mark.substr(0, 45);
  ResultBody body(outcome, std::move(files));
  const auto json = nlohmann::json::parse(text_of(body));
  EXPECT_EQ(json["stdout"], outcome.stdout_bytes);
  EXPECT_EQ(decode_base64(json["files"][0]["content_base64"].get<std::string>()), "first");
}

TEST(ResultBody, AFileThatWasKeptAndThenRefusedIsLeftOut) {
  collect::Outcome outcome;
  KeptFiles files;
  keep(outcome, files.sink(), "a", "first");
  outcome.files.clear();
  ResultBody body(outcome, std::move(files));
  EXPECT_TRUE(nlohmann::json::parse(text_of(body))["files"].empty());
}

TEST(ResultBody, AFileThatGotShorterIsAnError) {
  collect::Outcome outcome;
  KeptFiles files;
  const UniqueFd fd = file_with("content");
  collect::CollectedFile file;
  file.size = 7;
  ASSERT_TRUE(files.sink()(file, fd.get()));
  outcome.files.push_back(std::move(file));
  ASSERT_EQ(::ftruncate(fd.get(), 2), 0);
  ResultBody body(outcome, std::move(files));
  ASSERT_TRUE(body.next());
  EXPECT_FALSE(body.next());
}

}  // namespace
}  // namespace sbx::daemon
