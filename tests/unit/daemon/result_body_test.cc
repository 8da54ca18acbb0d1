#include "runtime/daemon/result_body.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/base64.h"
#include "runtime/base/sys.h"

namespace sbx::daemon {
namespace {

using namespace std::string_literals;

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

// Not under the sanitizer, which itself opens pipes to see what memory is an object's.
#if !defined(__has_feature)
#define __has_feature(feature) 0
#endif
#if !__has_feature(undefined_behavior_sanitizer)
TEST(KeptFiles, WantOfOurOwnDescriptorsIsTheResultsTrouble) {
  KeptFiles files;
  const collect::FileSink sink = files.sink();
  collect::CollectedFile file;
  EXPECT_FALSE(sink(file, -1));
  EXPECT_FALSE(files.shortage()) << "that is the file's";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{64, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const UniqueFd fd = file_with("x");
  std::vector<UniqueFd> taken;
  while (auto copy = sys::duplicate_above(fd.get(), 0)) taken.push_back(*std::move(copy));
  const bool kept = sink(file, fd.get()).has_value();
  taken.clear();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(kept);
  ASSERT_TRUE(files.shortage());
  EXPECT_EQ(files.shortage()->code, ErrorCode::kHost);
  EXPECT_FALSE(files.shortage()->fix.empty());
  EXPECT_EQ(files.count(), 0U);
}
#endif

TEST(ResultBody, WithoutFilesIsTheOutcomesJson) {
  collect::Outcome outcome;
  outcome.id = "x";
  ResultBody body(outcome, KeptFiles());
  EXPECT_EQ(text_of(body), to_json(outcome));
}

// What is decoded in pieces must be what it is as a whole: characters of each length, ill-formed
// ones, and a cut in the middle of one, at each place of a piece's end.
TEST(ResultBody, OutputIsWhatTheWholeOutcomesJsonHas) {
  const std::string odd = "a\0\x01\"\\\n\x7f"s + std::string("\u20ac\U0001d11e\u00e4\u2028");
  for (const std::string& unit :
       {std::string("plain "), odd, std::string("\x80"), std::string("\xf0\x9d\x84"),
        std::string("\xe2\x82\xe2\x82\xac\xff"), std::string("\xf4\x90\x80\x80\xed\xa0\x80")}) {
    for (std::size_t shift = 0; shift < 9; ++shift) {
      collect::Outcome outcome;
      outcome.id = "x";
      outcome.stdout_bytes = std::string(shift, '-');
      while (outcome.stdout_bytes.size() < 20'000) outcome.stdout_bytes += unit;
      outcome.stderr_bytes = outcome.stdout_bytes.substr(0, 10'000);
      outcome.stderr_dropped = 7;
      outcome.stderr_head = 5000 + shift;
      const std::string expected = to_json(outcome);
      ResultBody body(std::move(outcome), KeptFiles());
      EXPECT_TRUE(text_of(body) == expected) << unit << shift;
    }
  }
}

TEST(ResultBody, HoldsTheOutputAsItIsAndNotAsJson) {
  collect::Outcome outcome;
  outcome.stdout_bytes = std::string(1'000'000, '\0');
  ResultBody body(std::move(outcome), KeptFiles());
  EXPECT_LT(body.bytes(), 1'010'000U);
  EXPECT_GT(body.bytes(), 1'000'000U);
  EXPECT_GT(text_of(body).size(), 6'000'000U);
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
  auto piece = body.next();
  while (piece && *piece) piece = body.next();
  EXPECT_FALSE(piece);
}

}  // namespace
}  // namespace sbx::daemon
