#include "agentd/redact/redactor.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "agentd/redact/quote.h"
#include "runtime/base/base64.h"
#include "runtime/base/sys.h"

namespace agentd::redact {
namespace {

const std::string kHere = SBX_SOURCE_DIR "/tests/unit/agentd/redact/";

std::string file(const std::string& path) {
  auto text = sbx::sys::read_file(path, 4U << 20);
  EXPECT_TRUE(text) << path;
  return text ? *text : std::string();
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

struct Sample {
  std::string name;
  std::string text;
};

// The lines of a file that are no comment, without the mark.
std::vector<Sample> samples(const std::string& name) {
  std::vector<Sample> all;
  std::istringstream lines(file(kHere + name));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with("# ")) continue;
    line = replaced(line, "\xC2\xA6", "");
    const std::size_t tab = line.find('\t');
    all.push_back(tab == std::string::npos ? Sample{"", line}
                                           : Sample{line.substr(0, tab), line.substr(tab + 1)});
  }
  return all;
}

TEST(Redactor, FindsEveryKeyOfTheCorpusWhole) {
  const Redactor redactor;
  for (const Sample& sample : samples("secrets.txt")) {
    for (const std::string& text : {sample.text, replaced(sample.text, "\\n", "\n")}) {
      // Nothing of the value may be left, also where a name or quote stands around it.
      const std::string clean = redactor.clean(text).text();
      const std::string wanted = "[redacted:" + sample.name + "]";
      EXPECT_NE(clean.find(wanted), std::string::npos) << text << "\n" << clean;
      EXPECT_LE(clean.size(), wanted.size() + 2) << clean;
    }
  }
}

TEST(Redactor, FindsThemInsideOtherText) {
  const Redactor redactor;
  for (const Sample& sample : samples("secrets.txt")) {
    for (const auto& [before, after] :
         std::vector<std::pair<std::string, std::string>>{{"KEY=", "\n"},
                                                          {"(", ")"},
                                                          {"{\"k\": \"", "\"}"},
                                                          {"line\\n", "\\nline"},
                                                          {"a%3D", "%26b"},
                                                          {"\x1b[31m", "\x1b[0m"},
                                                          {"über ", " \xff"}}) {
      const std::string clean = redactor.clean(before + sample.text + after).text();
      EXPECT_NE(clean.find("[redacted:" + sample.name + "]"), std::string::npos)
          << before << sample.text << "\n"
          << clean;
    }
  }
}

TEST(Redactor, LeavesNearMissesAlone) {
  const Redactor redactor;
  for (const Sample& sample : samples("near_misses.txt")) {
    EXPECT_EQ(redactor.clean(sample.text).text(), sample.text);
    const std::string lines = replaced(sample.text, "\\n", "\n");
    EXPECT_EQ(redactor.clean(lines).text(), lines);
  }
}

// Prose and code that people really wrote: this repository, but for the corpora of keys.
TEST(Redactor, HasNoHitInOrdinaryProseAndCode) {
  const Redactor redactor;
  std::size_t bytes = 0;
  for (const char* folder : {"docs", "runtime", "http", "policy", "scripts", "bench", "examples"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(std::string(SBX_SOURCE_DIR "/") + folder)) {
      const std::string extension = entry.path().extension();
      if (!entry.is_regular_file() || extension == ".jsonl") continue;
      const std::string text = file(entry.path());
      bytes += text.size();
      for (const Redactor::Hit& hit : redactor.find(text)) {
        ADD_FAILURE() << entry.path() << ": " << hit.name << ": "
                      << text.substr(hit.begin, hit.end - hit.begin);
      }
    }
  }
  EXPECT_GT(bytes, 500'000U);
}

constexpr char kOwn[] = "local/Secret+Key=with 9 odd~chars%41";

TEST(Redactor, FindsItsOwnSecretsInEveryForm) {
  const Redactor redactor({Secret(kOwn)});
  const auto hides = [&](const std::string& text) {
    const std::string clean = redactor.clean(text).text();
    EXPECT_NE(clean.find("[redacted:own-secret]"), std::string::npos) << text;
    return clean;
  };
  EXPECT_EQ(hides(std::string("a") + kOwn + "b"), "a[redacted:own-secret]b");
  std::string percent;
  std::string hex;
  std::string escaped;
  for (const char c : std::string(kOwn)) {
    char buffer[8];
    (void)std::snprintf(buffer, sizeof buffer, "%02X", static_cast<unsigned char>(c));
    percent += std::string("%") + buffer;
    hex += buffer;
    escaped += std::string("\\u00") + buffer;
  }
  EXPECT_EQ(hides(percent), "[redacted:own-secret]");
  EXPECT_EQ(hides(hex), "[redacted:own-secret]");
  EXPECT_EQ(hides(escaped), "[redacted:own-secret]");
  hides("local%2fSecret%2BKey%3Dwith%209%20odd~chars%2541");
  hides(replaced(hex, "6C", "6c"));
  std::string spaced;
  for (std::size_t i = 0; i < hex.size(); i += 2) spaced += hex.substr(i, 2) + ' ';
  EXPECT_EQ(hides(spaced), "[redacted:own-secret] ");
  EXPECT_EQ(hides(replaced(spaced, " ", ":")), "[redacted:own-secret]:");
  hex.insert(20, "\n");
  hides(hex);
}

// Each byte of it by `write`.
template <typename Write>
std::string written(std::string_view secret, Write write) {
  std::string text;
  for (const char c : secret) text += write(static_cast<unsigned char>(c));
  return text;
}

std::string formatted(const char* format, unsigned value) {
  char buffer[32];
  (void)std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

constexpr char kApiKey[] = "q8Zk3mVt7+Lw/9sRb2YxNf6_HjC0pUe-gA1dKiOo5vXs=";

TEST(Redactor, FindsItsOwnSecretsInTheFormsOfPagesShellsAndMails) {
  const Redactor redactor({Secret(kApiKey)});
  const std::string json = replaced(kApiKey, "/", "\\/");
  const std::string wrapped = std::string(kApiKey).insert(20, "\n    ");
  for (const char* format :
       {"&#%u;", "&#x%X;", "&#%04u;", "&amp;#%u;", "\\%03o", "\\\\%03o", "%%25%02X", "%%2525%02X",
        "=%02X", "\\\\u%04x", "\\U%08x", "\\x%02x"}) {
    const std::string all = written(kApiKey, [&](unsigned char c) { return formatted(format, c); });
    EXPECT_EQ(redactor.clean("a " + all + " z").text(), "a [redacted:own-secret] z") << all;
    const std::string some = written(kApiKey, [&](unsigned char c) {
      return std::isalnum(c) != 0 ? std::string(1, static_cast<char>(c)) : formatted(format, c);
    });
    EXPECT_EQ(redactor.clean("a " + some + " z").text(), "a [redacted:own-secret] z") << some;
  }
  const std::string spaced =
      written(kApiKey, [](unsigned char c) { return std::string(1, static_cast<char>(c)) + " "; });
  for (const std::string& text :
       {json, replaced(json, "\\/", "\\\\/"), wrapped, replaced(wrapped, "\n", "=\r\n"),
        replaced(wrapped, "\n", "\\\n"), replaced(wrapped, "\n", "\\n"), spaced,
        replaced(replaced(kApiKey, "+", "&plus;"), "/", "&sol;"),
        replaced(replaced(kApiKey, "+", "\\+"), "=", "\\=")}) {
    const std::string clean = redactor.clean("a " + text + "\nz").text();
    EXPECT_EQ(replaced(clean, " \n", "\n"), "a [redacted:own-secret]\nz") << text;
  }
}

TEST(Redactor, FindsItsOwnSecretsInBase64Twice) {
  const Redactor redactor({Secret(kApiKey)});
  for (std::size_t before = 0; before < 7; ++before) {
    for (std::size_t again = 0; again < 4; ++again) {
      const std::string once = sbx::encode_base64(std::string(before, 'k') + kApiKey + "zz");
      for (const std::string& form : {once, replaced(replaced(once, "+", "-"), "/", "_")}) {
        const std::string twice = sbx::encode_base64(std::string(again, 'k') + form);
        const std::string clean = redactor.clean(twice).text();
        EXPECT_NE(clean.find("[redacted:own-secret]"), std::string::npos) << before << " " << again;
        EXPECT_LT(clean.size(), 21 + 50U) << clean;
      }
    }
  }
}

// By Python's base64.b32encode, of "q8Zk3mVt7+Lw/9s" behind 0 to 4 letters.
TEST(Redactor, FindsItsOwnSecretsInBase32AtAnyOffset) {
  const Redactor redactor({Secret("q8Zk3mVt7+Lw/9s")});
  for (std::string form : {"OE4FU2ZTNVLHINZLJR3S6OLTPJ5A====", "NNYTQWTLGNWVM5BXFNGHOLZZON5HU===",
                           "NNVXCOC2NMZW2VTUG4VUY5ZPHFZXU6Q=", "NNVWW4JYLJVTG3KWOQ3SWTDXF44XG6T2",
                           "NNVWW23RHBNGWM3NKZ2DOK2MO4XTS432PI======"}) {
    EXPECT_NE(redactor.clean(form).text().find("[redacted:own-secret]"), std::string::npos) << form;
    for (char& c : form) c = static_cast<char>(std::tolower(c));
    form.insert(form.size() / 2, "\n");
    EXPECT_NE(redactor.clean(form).text().find("[redacted:own-secret]"), std::string::npos) << form;
  }
}

TEST(Redactor, WhatIsNearlyAnOwnSecretStays) {
  const Redactor redactor({Secret(kApiKey)});
  for (const char* text :
       {"q8Zk3mVt7&#44;Lw/9sRb2YxNf6_HjC0pUe-gA1dKiOo5vXs=", "&#113;8Zk3", "\\161\\70", "=71=38=5A",
        "&&&&amp;amp;amp;", "%25%25%25252525", "\\\\\\\\\\\\\\\\\\\\", "\\UFFFFFFFF", "\\U80000071",
        "\\U00000171", "&#xFFFFFFFF;", "&#99999999;", "&#x100000071;"}) {
    EXPECT_EQ(redactor.clean(text).text(), text);
  }
}

TEST(Redactor, AnOwnSecretThatBeginsInsideAShapeIsHiddenToItsEnd) {
  const Redactor redactor({Secret(kOwn)});
  EXPECT_EQ(redactor.clean("Bearer 0123456789abcdefghijklmn" + std::string(kOwn) + "!").text(),
            "[redacted:bearer-token]!");
}

TEST(Redactor, FindsItsOwnSecretsInBase64AtAnyOffset) {
  const Redactor redactor({Secret(kOwn)});
  const std::string core = sbx::encode_base64(kOwn).substr(4, 30);
  for (std::size_t before = 0; before < 7; ++before) {
    for (std::size_t after = 0; after < 4; ++after) {
      const std::string text =
          sbx::encode_base64(std::string(before, 'k') + kOwn + std::string(after, 'z'));
      for (std::string form : {text, replaced(replaced(text, "+", "-"), "/", "_")}) {
        EXPECT_NE(redactor.clean(form).text(), form) << before << " " << after;
        form.insert(form.size() / 2, "\\n");
        EXPECT_NE(redactor.clean(form).text(), form) << "wrapped";
        EXPECT_EQ(redactor.clean(form).text().find(core), std::string::npos);
      }
    }
  }
}

TEST(Redactor, DoesNotLookForOwnSecretsThatAreTooShort) {
  const Redactor redactor({Secret("abc"), Secret("")});
  EXPECT_EQ(redactor.clean("abcabc").text(), "abcabc");
}

TEST(Redactor, CleansEveryStringOfAJsonValueAlsoKeys) {
  const Redactor redactor({Secret(kOwn)});
  nlohmann::ordered_json json = {{"n", 1}, {"list", {kOwn, {{"deep", kOwn}}}}, {kOwn, nullptr}};
  EXPECT_EQ(redactor.clean_json(json).text(),
            R"({"n":1,"list":["[redacted:own-secret]",{"deep":"[redacted:own-secret]"}],)"
            R"("[redacted:own-secret]":null})");
}

TEST(Redactor, MakesUtf8OfAnyBytes) {
  EXPECT_EQ(Redactor().clean("a\xff\xc3z").text(), "a\xEF\xBF\xBD\xEF\xBF\xBDz");
}

TEST(Redactor, CleanTextStaysAsItIs) {
  const Redactor redactor({Secret(kOwn)});
  for (const Sample& sample : samples("secrets.txt")) {
    const std::string once = redactor.clean(sample.text).text();
    EXPECT_EQ(redactor.clean(once).text(), once);
  }
}

TEST(Redactor, OfAPrivateKeyThatAQuoteCutsNoLineIsLeft) {
  std::string body;
  for (int i = 0; body.size() < 16U * 64; ++i) body += static_cast<char>('A' + i * 7 % 26);
  std::string key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n";
  for (std::size_t at = 0; at < body.size(); at += 64) key += body.substr(at, 64) + '\n';
  key += "-----END RSA PRIVATE KEY-----\n";
  const std::string text = "the key: " + key + "and more words";
  const Redactor redactor;
  for (std::size_t most = 0; most <= text.size(); ++most) {
    const std::string quoted = redactor.clean(first_words(text, most)).text();
    EXPECT_EQ(quoted.find(body.substr(0, 16)), std::string::npos) << quoted;
    EXPECT_EQ(quoted.find(body.substr(64, 16)), std::string::npos) << quoted;
  }
}

// Text made to cost much: beginnings of keys, again and again. Four times as much text would take
// sixteen times as long if each beginning were looked at to the end; no absolute bound fits every
// machine and a sanitizer too. Of the CPU: others may have it meanwhile.
TEST(Redactor, TakesLinearTimeAlsoOnHostileText) {
  const Redactor redactor({Secret(std::string(40, 'a') + "b")});
  for (const char* piece : {"eyJ-",
                            "sk-",
                            "-----BEGIN PRIVATE KEY-----\n",
                            "aaaa",
                            "AKIA ",
                            "%61",
                            "Bearer eyJ",
                            "1:AA",
                            "\\u0061",
                            "&#97;",
                            "&amp;",
                            "\\",
                            "\\141",
                            "=61",
                            "%25",
                            "a\n",
                            "a \n\n ",
                            "YWFh",
                            "MFQW",
                            "-----BEGIN PRIVATE KEY-----x"}) {
    const auto cost = [&](std::size_t size) {
      std::string text;
      while (text.size() < size) text += piece;
      const std::clock_t begin = std::clock();
      (void)redactor.find(text);
      return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    };
    const double little = cost(std::size_t{1} << 17U);
    EXPECT_LT(cost(std::size_t{1} << 19U), 10 * little + 0.2) << piece;
  }
}

TEST(Secrets, AreGoneWhereTheyWereMovedFrom) {
  Secret a("0123456789");
  Secret b(std::move(a));
  EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move): that is the promise
  EXPECT_EQ(b.reveal(), "0123456789");
  a = b;
  b = std::move(a);
  EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move)
}

TEST(Redactor, CleanJsonIsWrittenAsTheLibraryWouldWriteIt) {
  std::string controls;
  for (char c = 0; c < ' '; ++c) controls += c;
  const nlohmann::ordered_json json = {
      {controls + "\"\\/\x7F", "über € 😀"},
      {"numbers", {0, -7, 18446744073709551615U, 1.5, 1e300, 0.1, true, false, nullptr}},
      {"none", nlohmann::ordered_json::array()},
      {"nothing", nlohmann::ordered_json::object()},
      {"", {{{"a", ""}}, nlohmann::ordered_json::array({1})}}};
  EXPECT_EQ(Redactor().clean_json(json).text(), json.dump());
}

TEST(Redactor, NamesThatBecomeTheSameAreOneName) {
  const Redactor redactor({Secret("a-secret-of-agentd"), Secret("another-secret")});
  const nlohmann::ordered_json json = {
      {"a-secret-of-agentd", 1}, {"b", "another-secret"}, {"another-secret", 2}};
  EXPECT_EQ(redactor.clean_json(json).text(),
            R"({"[redacted:own-secret]":2,"b":"[redacted:own-secret]"})");
}

TEST(Redactor, CleanObjectsMakeOne) {
  const Redactor redactor;
  const Clean one = redactor.clean_json({{"a", 1}});
  const Clean two = redactor.clean_json({{"b", 2}});
  EXPECT_EQ(Clean::merged(one, two).text(), R"({"a":1,"b":2})");
}

}  // namespace
}  // namespace agentd::redact
