#include "agentd/history/history.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "agentd/history/artifact_files.h"
#include "runtime/base/sys.h"
#include "tests/support/process.h"

namespace agentd::history {
namespace {

class HistoryTest : public ::testing::Test {
 protected:
  History open() {
    auto database = store::Database::open({.path = directory_.path() + "/agentd.db"});
    EXPECT_TRUE(database);
    auto history = History::open(*std::move(database));
    EXPECT_TRUE(history);
    return *std::move(history);
  }

  Entry entry(const std::string& id, Owner owner = 7, bool ended = true, std::uint64_t bytes = 0) {
    return {.id = id,
            .created_ms = 1,
            .owner = owner,
            .ended = ended,
            .summary = redactor_.clean_json({{"id", id}}),
            .record = redactor_.clean_json({{"record", id}}),
            .events = redactor_.clean_json({id}),
            .artifact_bytes = bytes};
  }

  static std::string ids(const History::Page& page) {
    std::string text;
    for (const std::string& summary : page.summaries) {
      text += nlohmann::json::parse(summary)["id"].get<std::string>() + " ";
    }
    return text + page.next;
  }

  sbx::test::TemporaryDirectory directory_;
  redact::Redactor redactor_;
};

TEST_F(HistoryTest, KeepsRecordsBeyondTheProcess) {
  {
    History history = open();
    ASSERT_TRUE(history.save(entry("a", 7, false)));
    ASSERT_TRUE(history.save(entry("a", 7, true)));
  }
  History history = open();
  const auto found = history.find("a");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->record, R"({"id":"a","record":"a"})");
  EXPECT_EQ((*found)->owner, Owner(7));
  EXPECT_TRUE((*found)->ended);
  EXPECT_FALSE(*history.find("b"));
}

TEST_F(HistoryTest, ARecordThatSaysNothingBesidesIsItsSummary) {
  History history = open();
  Entry bare = entry("a", 7, true);
  bare.record = redactor_.clean_json(nlohmann::ordered_json::object());
  ASSERT_TRUE(history.save(bare));
  EXPECT_EQ((*history.find("a"))->record, R"({"id":"a"})");
}

// The tables of agentd before it did without an index of what is under way.
TEST_F(HistoryTest, AnEarlierFileKeepsItsRecordsInTheirOrder) {
  auto database = store::Database::open({.path = directory_.path() + "/agentd.db"});
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->execute(R"(
CREATE TABLE requests(number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
  created_ms INTEGER NOT NULL, owner INTEGER NOT NULL, ended INTEGER NOT NULL,
  summary TEXT NOT NULL, record TEXT NOT NULL, events TEXT NOT NULL,
  artifact_bytes INTEGER NOT NULL);
CREATE INDEX requests_by_owner ON requests(owner, number);
CREATE INDEX unfinished_requests ON requests(id) WHERE ended = 0;
INSERT INTO requests VALUES(4, 'z', 1, 7, 1, '{"id":"z"}', '{"record":"z"}', '[]', 10),
  (9, 'a', 2, 7, 0, '{"id":"a"}', '{"record":"a"}', '[]', 0);
)"));
  for (int i = 0; i < 2; ++i) {
    History history = open();
    EXPECT_EQ(*history.unfinished(), std::vector<std::string>{"a"});
    EXPECT_EQ(ids(*history.list(7, false, "", 10)), "a z ");
    EXPECT_EQ((*history.find("z"))->record, R"({"id":"z","record":"z"})");
  }
  History history = open();
  ASSERT_TRUE(history.save(entry("m")));
  EXPECT_EQ(ids(*history.list(7, false, "", 10)), "m a z ");
  EXPECT_EQ(*history.prune(10, 5), std::vector<std::string>{"z"});
  EXPECT_FALSE(*database->has("index", "requests_by_owner"));
}

TEST_F(HistoryTest, PagesNewestFirstAndOnlyOnesOwn) {
  History history = open();
  for (const char* id : {"a", "b", "c", "d"}) ASSERT_TRUE(history.save(entry(id)));
  ASSERT_TRUE(history.save(entry("other", 8)));
  ASSERT_TRUE(history.save(entry("tcp", Owner())));
  EXPECT_EQ(ids(*history.list(7, false, "", 2)), "d c c");
  EXPECT_EQ(ids(*history.list(7, false, "c", 2)), "b a ");
  EXPECT_EQ(ids(*history.list(7, true, "", 10)), "tcp other d c b a ");
  EXPECT_EQ(ids(*history.list(Owner(), false, "", 10)), "tcp ");
  EXPECT_EQ(ids(*history.list(7, false, "unknown", 10)), "");
}

TEST_F(HistoryTest, TheOldestGoFirstAndWhatIsUnderWayStays) {
  History history = open();
  ASSERT_TRUE(history.save(entry("running", 7, false)));
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(history.save(entry(id, 7, true, 10)));
  EXPECT_EQ(*history.unfinished(), std::vector<std::string>{"running"});
  EXPECT_EQ(*history.prune(10, 1000), std::vector<std::string>{});
  EXPECT_EQ(*history.prune(3, 1000), std::vector<std::string>{"a"});
  EXPECT_EQ(*history.prune(10, 15), std::vector<std::string>{"b"});
  EXPECT_EQ(*history.prune(0, 0), std::vector<std::string>{"c"});
  EXPECT_EQ(*history.unfinished(), std::vector<std::string>{"running"});
}

TEST_F(HistoryTest, WhatIsSavedAfterTheFirstPruneCountsOnce) {
  History history = open();
  ASSERT_TRUE(history.save(entry("a", 7, true, 10)));
  EXPECT_EQ(*history.prune(2, 30), std::vector<std::string>{});
  ASSERT_TRUE(history.save(entry("b", 7, false)));
  ASSERT_TRUE(history.save(entry("b", 7, true, 20)));
  EXPECT_EQ(*history.prune(2, 30), std::vector<std::string>{}) << "2 requests, 30 bytes";
  ASSERT_TRUE(history.save(entry("b", 7, true, 21)));
  EXPECT_EQ(*history.prune(2, 30), std::vector<std::string>{"a"}) << "31 bytes";
  ASSERT_TRUE(history.save(entry("c")));
  ASSERT_TRUE(history.save(entry("d")));
  EXPECT_EQ(*history.prune(2, 30), std::vector<std::string>{"b"}) << "3 requests";
}

TEST_F(HistoryTest, ArtifactsAreNumberedFilesThatGoTogether) {
  const auto files = ArtifactFiles::open(directory_.path());
  ASSERT_TRUE(files);
  ASSERT_TRUE(files->write("rq_1", {"one", std::string("t\0o", 3)}));
  const auto second = files->read("rq_1", 1);
  ASSERT_TRUE(second);
  EXPECT_EQ(*sbx::sys::read_all(second->get(), 10), std::string("t\0o", 3));
  EXPECT_FALSE(files->read("rq_1", 2));
  EXPECT_FALSE(files->write("rq_1", {"again"})) << "never over what is there";
  EXPECT_TRUE(files->write("rq_2", {}));
  files->remove("rq_1");
  EXPECT_FALSE(files->read("rq_1", 0));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path() + "/artifacts"));
}

}  // namespace
}  // namespace agentd::history
