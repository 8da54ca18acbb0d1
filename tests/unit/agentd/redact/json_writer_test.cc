#include "agentd/redact/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace agentd::redact {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kItem = JsonWriter::kItem;

const Redactor& redactor() {
  static const Redactor kRedactor({Secret("a-secret-of-agentd")});
  return kRedactor;
}

TEST(JsonWriter, WritesWhatTheLibraryWouldWrite) {
  const Json json = {{"text", "über \"€\"\n"},
                     {"label", nullptr},
                     {"n", -7},
                     {"bytes", 18446744073709551615U},
                     {"flag", true},
                     {"lists", {Json::array(), {1, "b"}}},
                     {"nothing", Json::object()},
                     {"more", {{"a", {1.5, nullptr}}}}};
  JsonWriter to(redactor());
  to.begin_object(kItem);
  to.text("text", "über \"€\"\n");
  to.text_or_null("label", "");
  to.integer("n", -7);
  to.size("bytes", std::numeric_limits<std::uint64_t>::max());
  to.boolean("flag", true);
  to.begin_list("lists");
  to.begin_list(kItem);
  to.end_list();
  to.begin_list(kItem);
  to.integer(kItem, 1);
  to.text_or_null(kItem, "b");
  to.end_list();
  to.end_list();
  to.begin_object("nothing");
  to.end_object();
  to.tree("more", {{"a", {1.5, nullptr}}});
  to.end_object();
  EXPECT_EQ(to.take().text(), json.dump());
}

TEST(JsonWriter, WritesNumbersAsTheLibraryWould) {
  for (const double number :
       {0.0, 1.0, -3.0, 0.1, 0.032627, 0.000072, 1e-6, 180.0, 60.5, 1e14, 123456.789012, 1e300,
        std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    JsonWriter to(redactor());
    to.number(kItem, number);
    EXPECT_EQ(to.take().text(), Json(number).dump());
  }
}

TEST(JsonWriter, RedactsEveryStringAndTheNamesInATree) {
  JsonWriter to(redactor());
  to.begin_list(kItem);
  to.text(kItem, "it is a-secret-of-agentd.");
  to.text_or_null(kItem, "a-secret-of-agentd");
  to.tree(kItem, {{"a-secret-of-agentd", "a-secret-of-agentd"}});
  to.clean(kItem, redactor().clean_json("a-secret-of-agentd"));
  to.end_list();
  EXPECT_EQ(to.take().text(), R"(["it is [redacted:own-secret].","[redacted:own-secret]",)"
                              R"({"[redacted:own-secret]":"[redacted:own-secret]"},)"
                              R"("[redacted:own-secret]"])");
}

}  // namespace
}  // namespace agentd::redact
