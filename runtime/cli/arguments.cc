// The only file that knows CLI11. It parses the options up to the first word that is none of them;
// what follows is handed on verbatim, so that a program's own arguments never meet our parser.
#include "runtime/cli/arguments.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <string_view>

namespace sbx::cli {
namespace {

struct LimitOption {
  const char* spelling;
  const char* limit;  // contract name
};
constexpr std::array kLimitOptions = {
    LimitOption{"-t,--timeout", "wall_seconds"},
    LimitOption{"--cpu-time", "cpu_seconds"},
    LimitOption{"--memory", "memory"},
    LimitOption{"--cpus", "cpus"},
    LimitOption{"--pids", "pids"},
    LimitOption{"--net", "network"},
};

struct VerbName {
  std::string_view name;
  Verb verb;
};
constexpr std::array kVerbs = {VerbName{"doctor", Verb::kDoctor},
                               VerbName{"selftest", Verb::kSelftest},
                               VerbName{"explain", Verb::kExplain}};

// Every option takes exactly one value, whatever that value looks like.
template <typename Action>
void add_value(CLI::App& app, const char* spelling, Action action) {
  app.add_option_function<std::string>(spelling, std::move(action))
      ->expected(1)
      ->allow_extra_args(false)
      ->trigger_on_parse()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

struct Parsed {
  Arguments arguments;
  std::vector<std::string_view> given;  // options of one value
  std::string twice;                    // one that came again
  std::optional<std::string> code;
  std::vector<std::string> rest;  // from the first word that is no option; "--" kept
};

// One that is given once: of two values, nobody knows which was meant.
template <typename Action>
void add_single(CLI::App& app, Parsed& parsed, const char* spelling, Action action) {
  add_value(app, spelling, [&parsed, spelling, action](const std::string& text) {
    const std::string_view all = spelling;
    const std::string_view name = all.substr(all.rfind(',') + 1);  // npos + 1 is 0
    const auto& given = parsed.given;
    if (std::find(given.begin(), given.end(), name) != given.end()) parsed.twice = name;
    parsed.given.push_back(name);
    action(text);
  });
}

void add_options(CLI::App& app, Parsed& parsed) {
  Arguments& out = parsed.arguments;
  for (const LimitOption& option : kLimitOptions) {
    add_single(app, parsed, option.spelling, [&out, limit = option.limit](const std::string& text) {
      out.limits.emplace_back(limit, text);
    });
  }
  add_single(app, parsed, "-c", [&parsed](const std::string& text) { parsed.code = text; });
  add_single(app, parsed, "-l,--language",
             [&out](const std::string& text) { out.language = text; });
  add_value(app, "--input", [&out](const std::string& text) { out.inputs.push_back(text); });
  add_value(app, "--env", [&out](const std::string& text) { out.env.push_back(text); });
  add_single(app, parsed, "--output-dir",
             [&out](const std::string& text) { out.output_dir = text; });
  add_single(app, parsed, "--stdin", [&out](const std::string& text) { out.stdin_file = text; });
  add_single(app, parsed, "--profile", [&out](const std::string& text) { out.profile = text; });
  add_single(app, parsed, "--rootfs", [&out](const std::string& text) { out.rootfs = text; });
  add_value(app, "--allow-missing",
            [&out](const std::string& text) { out.allow_missing.push_back(text); });
  app.add_flag_callback("--json", [&out] { out.json = true; });
  app.add_flag_callback("--learn", [&out] { out.learn = true; });
  app.add_flag_callback("-h,--help", [&out] { out.verb = Verb::kHelp; });
  app.add_flag_callback("--version", [&out] { out.verb = Verb::kVersion; });
  app.add_flag_callback("--print-config", [&out] { out.verb = Verb::kPrintConfig; });
}

// Options from `words`, the rest into parsed.rest. May be called again for words after a verb.
Result<void> parse_options(std::vector<std::string> words, Parsed& parsed) {
  CLI::App app;
  app.set_help_flag();
  app.prefix_command();
  add_options(app, parsed);
  try {
    std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
    app.parse(std::move(words));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();  // "--memory: 1 required TEXT missing"
    return invalid(text.substr(0, text.find(':')) + " needs a value",
                   "sbx-run --help lists the options");
  } catch (const CLI::ParseError& error) {
    return invalid(error.what(), "sbx-run --help lists the options");
  }
  if (!parsed.twice.empty()) return invalid(parsed.twice + " is given twice", "give it once");
  parsed.rest = app.remaining();
  return {};
}

bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-';
}

std::optional<Verb> verb_from(const std::string& word) {
  for (const VerbName& candidate : kVerbs) {
    if (candidate.name == word) return candidate.verb;
  }
  return std::nullopt;
}

// Decides what the words after the options mean.
Result<void> take_program(Parsed& parsed) {
  Arguments& out = parsed.arguments;
  std::vector<std::string>& rest = parsed.rest;
  const bool marked = !rest.empty() && rest.front() == "--";
  if (marked) rest.erase(rest.begin());
  if (!marked && !rest.empty() && looks_like_option(rest.front())) {
    return invalid("unknown option " + rest.front(),
                   "sbx-run --help lists the options; a program's own come after FILE or --");
  }
  if (parsed.code) {
    out.source = Source::kCode;
    out.program = std::move(*parsed.code);
  } else if (marked) {
    if (rest.empty()) return invalid("-- needs a command after it", "sbx-run -- /bin/true");
    out.source = Source::kCommand;
  } else if (!rest.empty()) {
    out.source = rest.front() == "-" ? Source::kStandardInput : Source::kFile;
    out.program = rest.front();
    rest.erase(rest.begin());
  }
  out.args = std::move(rest);
  return {};
}

// `explain` takes what a run takes; the other verbs take no program.
Result<void> check_verb(const Arguments& arguments) {
  if (arguments.verb == Verb::kExplain && arguments.json) {
    return invalid("explain has no --json: it is text for people",
                   "sbx-run --json gives limits and layers with each result");
  }
  if (arguments.verb != Verb::kDoctor && arguments.verb != Verb::kSelftest) return {};
  if (arguments.source == Source::kNone) return {};
  const char* const name = arguments.verb == Verb::kDoctor ? "doctor" : "selftest";
  return invalid(std::string(name) + " takes no program",
                 "to run a file of that name: sbx-run ./" + std::string(name));
}

Result<void> check_run(const Arguments& arguments) {
  if (arguments.source == Source::kCommand && !arguments.language.empty()) {
    return invalid("-l is for a program's text, not for a command after --");
  }
  return {};
}

}  // namespace

std::string_view limit_option(std::string_view limit) {
  const auto* const option =
      std::find_if(kLimitOptions.begin(), kLimitOptions.end(),
                   [&](const LimitOption& candidate) { return candidate.limit == limit; });
  if (option == kLimitOptions.end()) return limit;
  const std::string_view spelling = option->spelling;
  return spelling.substr(spelling.rfind(',') + 1);  // npos + 1: there is one spelling only
}

Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
  Parsed parsed;
  SBX_TRY(parse_options(words, parsed));
  std::optional<Verb> verb;
  if (!parsed.code && !parsed.rest.empty()) verb = verb_from(parsed.rest.front());
  if (verb) {
    const std::vector<std::string> after(parsed.rest.begin() + 1, parsed.rest.end());
    SBX_TRY(parse_options(after, parsed));
  }
  if (verb) parsed.arguments.about = *verb;
  // --help, --version and --print-config win over everything else that was typed.
  if (parsed.arguments.verb != Verb::kRun) return std::move(parsed.arguments);
  if (verb) parsed.arguments.verb = *verb;
  SBX_TRY(take_program(parsed));
  SBX_TRY(check_verb(parsed.arguments));
  SBX_TRY(check_run(parsed.arguments));
  return std::move(parsed.arguments);
}

}  // namespace sbx::cli
