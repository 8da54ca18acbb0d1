#include "agentd/loop/clean_run.h"

#include <gtest/gtest.h>

#include "agentd/record/record.h"
#include "tests/agent/support/fakes.h"

namespace agentd::loop {
namespace {

constexpr std::string_view kOwn = "tok-of-agentd-73510982";

bool holds_a_part(const std::string& text) {
  for (std::size_t at = 0; at + 6 <= kOwn.size(); ++at) {
    if (text.find(kOwn.substr(at, 6)) != std::string::npos) return true;
  }
  return false;
}

class CleanRun : public ::testing::Test {
 protected:
  redact::Redactor redactor_{{redact::Secret(std::string(kOwn))}};
};

TEST_F(CleanRun, OfAKeyAcrossTheCutOfTheSandboxNothingIsLeft) {
  for (std::size_t kept = 0; kept <= kOwn.size(); ++kept) {
    const std::string head = std::string(20'000, 'a') + std::string(kOwn.substr(0, kept));
    const std::string tail = std::string(kOwn.substr(kept)) + std::string(20'000, 'b');
    sandbox::RunResult run = test::ok_run(head + "??" + tail);
    run.out.erase(head.size(), 2);
    run.out_dropped = 2;
    run.out_cut = head.size();
    run.err = run.out;
    run.err_dropped = 2;
    run.err_cut = run.out_cut;
    clean_run(run, redactor_);
    EXPECT_FALSE(holds_a_part(run.out)) << kept;
    EXPECT_FALSE(holds_a_part(run.err)) << kept;
    EXPECT_EQ(run.out.size() + run.out_dropped, head.size() + 2 + tail.size());
    EXPECT_EQ(run.out.find('b'), run.out_cut) << "the cut is where it is said to be";
  }
}

// The longest that is looked for: each byte as &amp;…amp;#x00000041; and blanks behind it.
TEST(CleanRunOfAWideForm, NothingIsLeftAtTheCut) {
  const std::string key = "sk-" + std::string(161, 'Q');
  std::string wide;
  for (const char c : key) {
    wide += '&';
    for (int nested = 0; nested < 8; ++nested) wide += "amp;";
    wide += c == 'Q'   ? "#x00000051;"
            : c == 's' ? "#x00000073;"
            : c == 'k' ? "#x0000006B;"
                       : "#x0000002d;";
    wide += std::string(30, ' ') + '\n';
  }
  const redact::Redactor redactor({redact::Secret(key)});
  ASSERT_EQ(redactor.clean(wide).text(), "[redacted:own-secret]" + std::string(30, ' ') + '\n');
  for (const std::size_t kept : {std::size_t{1}, wide.size() / 2, wide.size() - 33}) {
    const std::string head = std::string(20'000, 'A') + wide.substr(0, kept);
    sandbox::RunResult run = test::ok_run(head + wide.substr(kept) + std::string(20'000, 'B'));
    run.out_dropped = 1;
    run.out_cut = head.size();
    clean_run(run, redactor);
    EXPECT_EQ(run.out.find_first_not_of("AB \n"), std::string::npos) << kept;
  }
}

TEST(CleanRunOfALongKey, HalfOfWhatIsThereStays) {
  const redact::Redactor redactor({redact::Secret("sk-" + std::string(1500, 'Q'))});
  sandbox::RunResult run = test::ok_run({});
  run.err = std::string(32 << 10, 'A') + std::string(32 << 10, 'B');
  run.err_dropped = 1;
  run.err_cut = 32 << 10;
  clean_run(run, redactor);
  EXPECT_EQ(run.err, std::string(16 << 10, 'A') + std::string(16 << 10, 'B'));
  EXPECT_EQ(run.err_dropped, 1U + (32 << 10));
}

TEST_F(CleanRun, AShortStreamThatWasCutMayLoseAllOfIt) {
  sandbox::RunResult run = test::ok_run("ab");
  run.out_dropped = 7;
  run.out_cut = 1;
  clean_run(run, redactor_);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.out_dropped, 9U);
  EXPECT_EQ(run.out_cut, 0U);
}

TEST_F(CleanRun, WhatWasNotCutKeepsItsStdoutAndLosesKeysElsewhere) {
  sandbox::RunResult run = test::ok_run("out " + std::string(kOwn));
  run.err = "err " + std::string(kOwn);
  run.notes = {{"missing_module", "no " + std::string(kOwn), "program"}};
  run.refused = {{std::string(kOwn), "a link"}};
  clean_run(run, redactor_);
  EXPECT_TRUE(holds_a_part(run.out)) << "a result may be in it; it is cleaned as JSON";
  EXPECT_EQ(run.err, "err [redacted:own-secret]");
  EXPECT_EQ(run.notes[0].text, "no [redacted:own-secret]");
  EXPECT_EQ(run.refused[0].path, "[redacted:own-secret]");
}

TEST_F(CleanRun, ARecordIsCutBetweenKeys) {
  constexpr std::size_t kHalf = 32U << 10;
  for (std::size_t before = kHalf - kOwn.size(); before <= kHalf; ++before) {
    const sandbox::RunResult run =
        test::ok_run(std::string(before, 'a') + std::string(kOwn) + std::string(100'000, 'b') +
                     std::string(kOwn) + std::string(before, 'c'));
    EXPECT_FALSE(holds_a_part(record::run_of(run, redactor_).out)) << before;
  }
}

}  // namespace
}  // namespace agentd::loop
