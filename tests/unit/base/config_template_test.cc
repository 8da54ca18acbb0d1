#include "runtime/base/config_template.h"

#include <gtest/gtest.h>

#include "runtime/base/toml.h"

namespace sbx {
namespace {

TEST(ConfigTemplate, WritesKeysTablesAndComments) {
  ConfigTemplate file("Read from here,\nelse from there.");
  file.add("socket", "Where to listen.\nEmpty: nowhere.", "\"\"");
  file.add("bare", "", "1");
  file.add("sessions.max", "How many.", "8");
  file.add("sessions.idle", "How long.", "60");
  file.begin_table("ceilings", "The most.");
  file.add_unset("ceilings.nofile", "descriptors");
  file.add("ceilings.network", "which", "\"none\"");
  EXPECT_EQ(file.text(),
            "# Read from here,\n# else from there.\n"
            "\n# Where to listen.\n# Empty: nowhere.\nsocket = \"\"\n"
            "\nbare = 1\n"
            "\n[sessions]\n\n# How many.\nmax = 8\n\n# How long.\nidle = 60\n"
            "\n# The most.\n[ceilings]\n\n# descriptors\n# nofile = (none)\n"
            "\n# which\nnetwork = \"none\"\n");
  const auto root = parse_toml(file.text(), "template");
  ASSERT_TRUE(root) << to_string(root.error());
  ASSERT_NE(root->find("ceilings"), nullptr);
  EXPECT_EQ(root->find("ceilings")->items.size(), 1U);
}

}  // namespace
}  // namespace sbx
