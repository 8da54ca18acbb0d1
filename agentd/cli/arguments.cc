// The only file that knows CLI11.
#include "agentd/cli/arguments.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace agentd::cli {
namespace {

constexpr const char* kSeeHelp = "agentctl --help shows what there is";

std::string complaint_of_nothing(const std::string& value) {
  return value.empty() ? "its value is empty" : "";
}

// Every option takes exactly one value, whatever that value looks like, but an empty one.
CLI::Option* one_value(CLI::Option* option) {
  return option->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->check(complaint_of_nothing);
}

void add_result_options(CLI::App& verb, Arguments& out) {
  verb.add_flag("--json", out.json);
  one_value(verb.add_option("--save", out.save));
  one_value(verb.add_option("--image", out.image))
      ->check(CLI::IsMember({"auto", "kitty", "iterm2", "sixel", "none"}));
}

void add_verbs(CLI::App& app, Arguments& out) {
  const auto verb = [&app, &out](const char* name, Verb meant) {
    CLI::App* added = app.add_subcommand(name);
    added->set_help_flag();
    added->parse_complete_callback([&out, meant] { out.verb = meant; });
    return added;
  };
  CLI::App* ask = verb("ask", Verb::kAsk);
  ask->add_option("text", out.text)->required();
  ask->add_option("--file", out.files)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  ask->add_flag("--js", out.javascript);
  add_result_options(*ask, out);
  CLI::App* show = verb("show", Verb::kShow);
  show->add_option("id", out.text)->required();
  add_result_options(*show, out);
  CLI::App* history = verb("history", Verb::kHistory);
  history->add_flag("--json", out.json);
  one_value(history->add_option("--limit", out.limit))->check(CLI::Range(1, 200));
  CLI::App* cancel = verb("cancel", Verb::kCancel);
  cancel->add_option("id", out.text)->required();
  verb("doctor", Verb::kDoctor);
}

// An option of one value that was given more often: which of them was meant, nobody knows.
sbx::Result<void> refuse_twice(const CLI::App& app) {
  for (const CLI::Option* const option : app.get_options()) {
    const bool one = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeLast &&
                     option->get_items_expected_max() == 1;
    if (!one || option->count() < 2) continue;
    return sbx::invalid(option->get_name() + " is given twice", "give it once");
  }
  return {};
}

// That of the page which is asked for.
Verb first_verb(const std::vector<std::string>& words) {
  constexpr std::array<std::pair<std::string_view, Verb>, 5> kVerbs = {{
      {"ask", Verb::kAsk},
      {"show", Verb::kShow},
      {"history", Verb::kHistory},
      {"cancel", Verb::kCancel},
      {"doctor", Verb::kDoctor},
  }};
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--socket") {
      ++i;  // its value is none
      continue;
    }
    for (const auto& [name, verb] : kVerbs) {
      if (words[i] == name) return verb;
    }
  }
  return Verb::kHelp;
}

}  // namespace

sbx::Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
  Arguments out;
  CLI::App app;
  bool help = false;
  bool version = false;
  app.set_help_flag();
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);
  one_value(app.add_option("--socket", out.socket));
  add_verbs(app, out);
  // Help and version win over everything else that was typed, right or wrong.
  const auto typed = [&words](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (words.empty() || typed("--help") || typed("-h")) {
    out.about = first_verb(words);
    return out;
  }
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // taken from the back
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    return sbx::invalid(error.what(), kSeeHelp);
  }
  SBX_TRY(refuse_twice(app));
  for (const CLI::App* const verb : app.get_subcommands()) SBX_TRY(refuse_twice(*verb));
  if (version) {
    out.verb = Verb::kVersion;
  } else if (app.get_subcommands().empty()) {
    return sbx::invalid("no verb was given", kSeeHelp);
  }
  return out;
}

}  // namespace agentd::cli
