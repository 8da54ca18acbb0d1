// Free ids, by what is written in /etc.
#include "runtime/cli/doctor_ids.h"

#include <gtest/gtest.h>

namespace sbx::cli {
namespace {

constexpr std::uint32_t kNone = 0;

struct Row {
  const char* about;
  IdFiles files;
  std::vector<IdRange> taken;
  std::uint32_t first;
};

TEST(FreeSubordinateIds, AreInNoLineOfAnyFile) {
  const Row rows[] = {
      {"nobody has any", {}, {}, 100000},
      {"one user", {"a:100000:65536\n", "a:100000:65536\n", "", "", ""}, {}, 165536},
      {"a gap before him", {"a:231072:65536\n", "", "", "", ""}, {}, 100000},
      {"a gap that is one too small", {"a:165535:65536\n", "", "", "", ""}, {}, 231071},
      {"a gap that is just enough", {"a:165536:65536\n", "", "", "", ""}, {}, 100000},
      {"users here, groups there",
       {"a:100000:65536\n", "b:165536:65536\n", "", "", ""},
       {},
       231072},
      {"unsorted", {"c:231072:65536\na:100000:65536\nb:165536:65536", "", "", "", ""}, {}, 296608},
      {"one within another", {"a:100000:200000\nb:110000:10\n", "", "", "", ""}, {}, 300000},
      {"overlapping", {"a:100000:65536\nb:150000:65536\n", "", "", "", ""}, {}, 215536},
      {"a gap in the middle",
       {"a:100000:100\n", "b:165636:1\nc:231173:65536\n", "", "", ""},
       {},
       100100},
      {"damaged lines",
       {"\na\na:100000\na:x:65536\na:100000:y\n:::\na:-5:9\na:99999999999999999999:1\nb:100000:7\n",
        "", "", "", ""},
       {},
       100007},
      {"blanks and a carriage return", {"a: 100000 :65536\r\n", "", "", "", ""}, {}, 165536},
      {"none at all", {"a:130000:0\n", "", "", "", ""}, {}, 100000},
      {"more than there are", {"a:100000:18446744073709551615\n", "", "", "", ""}, {}, kNone},
      {"ids of users and groups",
       {"", "", "a:x:100000:100001::/:/bin/sh\n", "b:x:100002:\n", ""},
       {},
       100003},
      {"of the product", {}, {{100000, 131072}}, 231072},
      {"of the product, high", {}, {{1879048192, 131072}}, 100000},
      {"all but too few", {"a:100000:599934465\n", "", "", "", ""}, {}, kNone},
      {"all but just enough", {"a:100000:599934464\n", "", "", "", ""}, {}, 600034464},
      {"all, by two", {"a:100000:300000000\n", "b:300000000:300100000\n", "", "", ""}, {}, kNone},
      {"a minimum", {"", "", "", "", "# SUB_UID_MIN 7\nSUB_UID_MIN\t\t 200000\n"}, {}, 200000},
      {"the higher minimum",
       {"", "", "", "", "SUB_UID_MIN 200000\nSUB_GID_MIN 300000\n"},
       {},
       300000},
      {"a minimum among real ids", {"", "", "", "", "SUB_UID_MIN 1000\n"}, {}, 100000},
      {"a maximum", {"a:100000:1\n", "", "", "", "SUB_GID_MAX 165536\n"}, {}, kNone},
      {"a maximum that is just enough",
       {"a:100000:1\n", "", "", "", "SUB_GID_MAX 165537\n"},
       {},
       100001},
      {"a maximum above the usual, and the product there",
       {"a:100000:1878948192\n", "", "", "", "SUB_UID_MAX 4000000000\nSUB_GID_MAX 4000000000\n"},
       {{1879048192, 131072}},
       1879179264},
      {"a maximum that is no number", {"", "", "", "", "SUB_UID_MAX many\n"}, {}, 100000},
      {"a maximum that is no id",
       {"a:100000:4294840000\n", "", "", "", "SUB_UID_MAX 9999999999\nSUB_GID_MAX 9999999999\n"},
       {},
       kNone},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(free_subordinate_ids(row.files, row.taken).value_or(kNone), row.first) << row.about;
  }
}

}  // namespace
}  // namespace sbx::cli
