#include "runtime/policy/language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <regex.h>

#include <optional>

#include "runtime/policy/language_file.h"
#include "tests/unit/policy/policy_files.h"

namespace sbx::policy {
namespace {

using test::error_of;

// Group `group` of the first match, with the flags that the patterns are written for.
std::optional<std::string> match(const std::string& pattern, const std::string& text,
                                 std::size_t group) {
  regex_t compiled;
  EXPECT_EQ(::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NEWLINE), 0) << pattern;
  regmatch_t groups[2];
  std::optional<std::string> found;
  if (::regexec(&compiled, text.c_str(), 2, groups, 0) == 0) {
    found.emplace(text.c_str() + groups[group].rm_so, text.c_str() + groups[group].rm_eo);
  }
  ::regfree(&compiled);
  return found;
}

std::optional<std::string> missing_module(const Language& language, const std::string& text) {
  return match(language.missing_module_pattern, text, 1);
}

bool is_syntax_error(const Language& language, const std::string& text) {
  return match(language.syntax_error_pattern, text, 0).has_value();
}
using ::testing::HasSubstr;

TEST(Languages, AreFoundByNameAndAlias) {
  for (const auto& [word, name] : {std::pair{"python", "python"},
                                   {"javascript", "javascript"},
                                   {"node", "javascript"},
                                   {"js", "javascript"},
                                   {"bash", "bash"},
                                   {"sh", "bash"}}) {
    const Language* language = find_language(word);
    ASSERT_NE(language, nullptr) << word;
    EXPECT_EQ(language->name, name);
  }
  EXPECT_EQ(find_language("Python"), nullptr);
  EXPECT_EQ(find_language(""), nullptr);
}

TEST(Languages, AreFoundByTheExtensionOfAFile) {
  EXPECT_EQ(language_of_file("a.py"), find_language("python"));
  EXPECT_EQ(language_of_file("dir.py/a.b.js"), find_language("javascript"));
  EXPECT_EQ(language_of_file("run.sh"), find_language("bash"));
  EXPECT_EQ(language_of_file("a.mjs"), nullptr) << "main.js would be read as CommonJS";
  EXPECT_EQ(language_of_file("py"), nullptr);
  EXPECT_EQ(language_of_file(".py"), nullptr);
  EXPECT_EQ(language_of_file("a.py.txt"), nullptr);
}

TEST(Languages, StartTheFileThatTheyName) {
  for (const Language& language : languages()) {
    EXPECT_EQ(language.argv.back(), "/code/" + language.file) << language.name;
    EXPECT_FALSE(language.image.empty()) << language.name;
  }
}

TEST(Languages, PythonLosesNoOutputAndWritesNoBytecode) {
  const auto& env = find_language("python")->env;
  EXPECT_THAT(env, ::testing::Contains(::testing::Pair("PYTHONUNBUFFERED", "1")));
  EXPECT_THAT(env, ::testing::Contains(::testing::Pair("PYTHONDONTWRITEBYTECODE", "1")));
}

// The messages below are the interpreters' own: CPython 3.11, Node 18 and 20, bash 5.2.
struct Message {
  const char* language;
  const char* text;
  const char* module;
};

TEST(Languages, FindTheMissingModuleInRealMessages) {
  const Message messages[] = {
      {"python",
       "Traceback (most recent call last):\n  File \"/code/main.py\", line 1, in <module>\n"
       "    import nope\nModuleNotFoundError: No module named 'nope'\n",
       "nope"},
      {"python", "ModuleNotFoundError: No module named 'numpy.nope'\n", "numpy.nope"},
      {"javascript",
       "node:internal/modules/cjs/loader:1210\n  throw err;\n  ^\n\n"
       "Error: Cannot find module 'left-pad'\nRequire stack:\n- /code/main.js\n",
       "left-pad"},
      {"javascript", "Error: Cannot find module '@scope/x/y'\n", "@scope/x/y"},
      {"javascript",
       "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'left-pad' imported from /code/main.js\n",
       "left-pad"},
      {"bash", "/code/main.sh: line 1: frob: command not found\n", "frob"},
  };
  for (const Message& message : messages) {
    EXPECT_EQ(missing_module(*find_language(message.language), message.text), message.module)
        << message.text;
  }
}

TEST(Languages, TakeTheProgramsOwnMissingFilesForWhatTheyAre) {
  EXPECT_EQ(missing_module(*find_language("javascript"), "Error: Cannot find module './zz'\n"),
            std::nullopt);
  EXPECT_EQ(missing_module(*find_language("javascript"),
                           "Error: Cannot find module '/code/zz.mjs' imported from /code/main.js"),
            std::nullopt);
  EXPECT_EQ(missing_module(*find_language("bash"),
                           "/code/main.sh: line 1: ./frob: No such file or directory\n"),
            std::nullopt);
  EXPECT_EQ(missing_module(*find_language("python"), ""), std::nullopt);
}

TEST(Languages, RecogniseSyntaxErrorsInRealMessages) {
  const std::pair<const char*, const char*> messages[] = {
      {"python",
       "  File \"/code/main.py\", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n"},
      {"python",
       "IndentationError: expected an indented block after function definition on line 1\n"},
      {"python", "TabError: inconsistent use of tabs and spaces in indentation\n"},
      {"javascript",
       "/code/main.js:1\nlet a = ;\n        ^\n\nSyntaxError: Unexpected token ';'\n    at "
       "wrapSafe "
       "(node:internal/modules/cjs/loader:1464:18)\n"},
      {"bash", "/code/main.sh: line 2: syntax error: unexpected end of file\n"},
      {"bash", "/code/main.sh: line 1: syntax error near unexpected token `)'\n"},
      {"bash", "/code/main.sh: line 1: unexpected EOF while looking for matching `\"'\n"},
  };
  for (const auto& [language, text] : messages) {
    EXPECT_TRUE(is_syntax_error(*find_language(language), text)) << text;
  }
  EXPECT_FALSE(is_syntax_error(*find_language("python"), "ValueError: SyntaxError: in the text\n"));
  EXPECT_FALSE(is_syntax_error(*find_language("bash"), "/code/main.sh: line 1: x: not found\n"));
}

constexpr char kLanguage[] =
    "name = \"lua\"\naliases = []\nextensions = [\".lua\"]\nfile = \"main.lua\"\n"
    "argv = [\"/usr/bin/lua\", \"/code/main.lua\"]\nimage = \"debian\"\n"
    "missing_module_pattern = \"module '([^']+)' not found\"\nsyntax_error_pattern = \"near\"\n";

std::string with(std::string from, std::string to) {
  std::string text = kLanguage;
  return text.replace(text.find(from), from.size(), to);
}

TEST(LanguageFile, AFourthIsAFileWithoutCode) {
  const auto lua =
      parse_language(std::string(kLanguage) + "[env]\nLUA_PATH = \"/x\"\n", "lua.toml");
  ASSERT_TRUE(lua) << error_of(lua);
  EXPECT_EQ(lua->name, "lua");
  EXPECT_EQ(missing_module(*lua, "lua: module 'x' not found:"), "x");
  EXPECT_THAT(lua->env, ::testing::ElementsAre(::testing::Pair("LUA_PATH", "/x")));
}

TEST(LanguageFile, MistakesNameFileLineAndKey) {
  EXPECT_THAT(error_of(parse_language(std::string(kLanguage) + "colour = 1\n", "l")),
              HasSubstr("l:9: key 'colour': unknown key"));
  EXPECT_EQ(error_of(parse_language(with("\"lua\"", "\"Lua!\""), "l")),
            "l:1: key 'name': must be of a-z 0-9");
  EXPECT_EQ(error_of(parse_language(with("aliases = []\n", ""), "l")),
            "l: key 'aliases' is missing");
  EXPECT_EQ(error_of(parse_language(with("\"main.lua\"", "\"a/b\""), "l")),
            "l:4: key 'file': must be the name of a file below /code");
  EXPECT_EQ(error_of(parse_language(with("/usr/bin/lua", "lua"), "l")),
            "l:5: key 'argv': must begin with an absolute path");
  EXPECT_EQ(error_of(parse_language(with("([^']+)", "([^']+"), "l")),
            "l:7: key 'missing_module_pattern': Unmatched ( or \\(");
  EXPECT_EQ(error_of(parse_language(with("([^']+)", "[^']+"), "l")),
            "l:7: key 'missing_module_pattern': must have a group");
  EXPECT_EQ(error_of(parse_language(with("([^']+)", "([^']{9})"), "l")),
            "l:7: key 'missing_module_pattern': must not use { }");
  EXPECT_EQ(error_of(parse_language(with("([^']+)", "([^']+++++++++)"), "l")),
            "l:7: key 'missing_module_pattern': has more than 8 times +");
  EXPECT_EQ(error_of(parse_language(with("near", std::string(257, 'x')), "l")),
            "l:8: key 'syntax_error_pattern': is longer than 256 bytes");
  EXPECT_EQ(error_of(parse_language(std::string(kLanguage) + "[env]\nA = 1\n", "l")),
            "l:10: key 'env.A': must be a string, not an integer");
}

}  // namespace
}  // namespace sbx::policy
