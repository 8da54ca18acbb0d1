// Keys in files, however their text is encoded. Python's own codecs made the samples' rules.
#include "agentd/service/clean_artifacts.h"

#include <gtest/gtest.h>

#include "runtime/base/sha256.h"

namespace agentd::service {
namespace {

constexpr std::string_view kKey = "a-secret-of-agentd";
constexpr std::string_view kTold = "[redacted:own-secret]";

record::Artifact cleaned(std::string content) {
  const redact::Redactor redactor({redact::Secret(std::string(kKey))});
  std::vector<record::Artifact> artifacts(1);
  artifacts[0].size = content.size();
  artifacts[0].content = std::move(content);
  return clean_artifacts(std::move(artifacts), redactor).front();
}

// Each character of ASCII in so many bytes.
std::string widened(std::string_view text, std::size_t unit, bool big_endian) {
  std::string wide;
  for (const char c : text) {
    std::string bytes(unit, '\0');
    bytes[big_endian ? unit - 1 : 0] = c;
    wide += bytes;
  }
  return wide;
}

struct Form {
  std::string mark;
  std::size_t unit = 0;
  bool big_endian = false;
};

std::vector<Form> forms() {
  using std::string_literals::operator""s;
  return {{"", 2, false}, {"", 2, true}, {"\xFF\xFE", 2, false},      {"\xFE\xFF", 2, true},
          {"", 4, false}, {"", 4, true}, {"\xFF\xFE\0\0"s, 4, false}, {"\0\0\xFE\xFF"s, 4, true}};
}

TEST(CleanArtifacts, TextOfWideCharactersIsRedactedAndKeepsItsEncoding) {
  for (const Form& form : forms()) {
    const auto text = [&](std::string_view key) {
      return form.mark + widened("x " + std::string(key) + "\n", form.unit, form.big_endian);
    };
    const record::Artifact artifact = cleaned(text(kKey));
    EXPECT_EQ(artifact.content, text(kTold)) << form.unit << form.big_endian;
    EXPECT_TRUE(artifact.redacted);
    EXPECT_EQ(artifact.size, artifact.content.size());
    EXPECT_EQ(artifact.sha256, sbx::sha256_of(artifact.content));
    EXPECT_EQ(cleaned(text("harmless")).content, text("harmless"));
    EXPECT_FALSE(cleaned(text("harmless")).redacted);
  }
}

TEST(CleanArtifacts, OtherCharactersOfUtf16ComeThroughAsTheyWere) {
  // U+00FC, U+6771, U+1F600 as a pair.
  const std::string others("\xFC\x00\x71\x67\x3D\xD8\x00\xDE", 8);
  EXPECT_EQ(cleaned(others + widened(kKey, 2, false)).content, others + widened(kTold, 2, false));
}

TEST(CleanArtifacts, BytesOfAnOlderEncodingAreRedactedInPlace) {
  const record::Artifact artifact = cleaned("gr\xFC\xDF " + std::string(kKey) + "\r\n\xE9");
  EXPECT_EQ(artifact.content, "gr\xFC\xDF " + std::string(kTold) + "\r\n\xE9");
  EXPECT_TRUE(artifact.redacted);
}

TEST(CleanArtifacts, WhatIsNoTextStaysAsItIs) {
  const std::string key(kKey);
  const std::string wide = widened(kKey, 2, false);
  for (const std::string& binary :
       {key + '\0', wide + "x", wide + std::string(2, '\0'), wide + std::string("\x00\xD8", 2),
        wide + std::string("\x00\xDC", 2), "\xFF\x01" + key, std::string(1, '\0'), std::string()}) {
    EXPECT_EQ(cleaned(binary).content, binary);
    EXPECT_FALSE(cleaned(binary).redacted);
  }
}

}  // namespace
}  // namespace agentd::service
