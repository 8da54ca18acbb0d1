// Takes the options up to the first word that is none of them, or to the end of -c CODE; what
// follows is handed on verbatim, so that a program's own arguments never meet this parser.
//
// SECURITY: with `sbx-run -c "$CODE" "$@"` and `sbx-run FILE "$@"`, "$@" may be a stranger's.
// Nothing of it may be taken as an option, and an empty value (`--input=`) may not take the word
// after it: either would let it open the network or name a file of the host. CLI11, which the other
// programs use, does both.
#include "runtime/cli/arguments.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sbx::cli {
namespace {

struct VerbName {
  std::string_view name;
  Verb verb;
};
constexpr std::array kVerbs = {VerbName{"doctor", Verb::kDoctor},
                               VerbName{"selftest", Verb::kSelftest},
                               VerbName{"explain", Verb::kExplain}};

enum class Takes {
  kNothing,
  kOne,   // given once: of two values, nobody knows which was meant
  kEach,  // one value each time
};

struct Option {
  std::string_view name;  // as messages have it
  char letter;            // 0: none
  Takes takes;
  std::string_view limit;  // contract name; or empty:
  void (*set)(Arguments&, const std::string& value);
};

constexpr Option limit(std::string_view name, std::string_view limit_name, char letter = 0) {
  return {name, letter, Takes::kOne, limit_name, nullptr};
}

constexpr std::array kOptions = {
    limit("--timeout", "wall_seconds", 't'),
    limit("--cpu-time", "cpu_seconds"),
    limit("--memory", "memory"),
    limit("--cpus", "cpus"),
    limit("--pids", "pids"),
    limit("--net", "network"),
    Option{"-c",
           'c',
           Takes::kOne,
           {},
           [](Arguments& out, const std::string& text) {
             out.source = Source::kCode;
             out.program = text;
           }},
    Option{"--language",
           'l',
           Takes::kOne,
           {},
           [](Arguments& out, const std::string& text) { out.language = text; }},
    Option{"--input",
           0,
           Takes::kEach,
           {},
           [](Arguments& out, const std::string& text) { out.inputs.push_back(text); }},
    Option{"--env",
           0,
           Takes::kEach,
           {},
           [](Arguments& out, const std::string& text) { out.env.push_back(text); }},
    Option{"--output-dir",
           0,
           Takes::kOne,
           {},
           [](Arguments& out, const std::string& text) { out.output_dir = text; }},
    Option{"--stdin",
           0,
           Takes::kOne,
           {},
           [](Arguments& out, const std::string& text) { out.stdin_file = text; }},
    Option{"--profile",
           0,
           Takes::kOne,
           {},
           [](Arguments& out, const std::string& text) { out.profile = text; }},
    Option{"--rootfs",
           0,
           Takes::kOne,
           {},
           [](Arguments& out, const std::string& text) { out.rootfs = text; }},
    Option{"--allow-missing",
           0,
           Takes::kEach,
           {},
           [](Arguments& out, const std::string& text) { out.allow_missing.push_back(text); }},
    Option{"--json",
           0,
           Takes::kNothing,
           {},
           [](Arguments& out, const std::string&) { out.json = true; }},
    Option{"--learn",
           0,
           Takes::kNothing,
           {},
           [](Arguments& out, const std::string&) { out.learn = true; }},
    Option{"--help",
           'h',
           Takes::kNothing,
           {},
           [](Arguments& out, const std::string&) { out.verb = Verb::kHelp; }},
    Option{"--version",
           0,
           Takes::kNothing,
           {},
           [](Arguments& out, const std::string&) { out.verb = Verb::kVersion; }},
    Option{"--print-config",
           0,
           Takes::kNothing,
           {},
           [](Arguments& out, const std::string&) { out.verb = Verb::kPrintConfig; }},
};

constexpr const char* kListed = "sbx-run --help lists the options";

// What was typed, and how far it has been read.
class Words {
 public:
  explicit Words(const std::vector<std::string>& words) : next_(words.begin()), end_(words.end()) {}
  [[nodiscard]] bool at_end() const { return next_ == end_; }
  [[nodiscard]] const std::string& peek() const { return *next_; }
  const std::string& take() { return *next_++; }
  [[nodiscard]] std::vector<std::string> rest() const { return {next_, end_}; }

 private:
  std::vector<std::string>::const_iterator next_;
  std::vector<std::string>::const_iterator end_;
};

struct Parsed {
  Arguments arguments;
  std::vector<const Option*> given;
  std::string unknown;  // the first one
};

// "-" is a program, and "--" stands before one.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word != "--";
}

template <typename Predicate>
const Option* find_option(Predicate predicate) {
  const auto* const option = std::find_if(kOptions.begin(), kOptions.end(), predicate);
  return option == kOptions.end() ? nullptr : option;
}

Result<void> give(const Option& option, const std::string& value, Parsed& parsed) {
  auto& given = parsed.given;
  if (option.takes == Takes::kOne &&
      std::find(given.begin(), given.end(), &option) != given.end()) {
    return invalid(std::string(option.name) + " is given twice", "give it once");
  }
  given.push_back(&option);
  if (option.limit.empty()) {
    option.set(parsed.arguments, value);
  } else {
    parsed.arguments.limits.emplace_back(option.limit, value);
  }
  return {};
}

// Its value is the next word, whatever that looks like.
Result<void> give_next(const Option& option, Words& words, Parsed& parsed) {
  if (words.at_end()) return invalid(std::string(option.name) + " needs a value", kListed);
  return give(option, words.take(), parsed);
}

// --name, --name VALUE, --name=VALUE.
Result<void> take_long(const std::string& word, Words& words, Parsed& parsed) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const Option* const option =
      find_option([&](const Option& candidate) { return candidate.name == name; });
  if (option == nullptr) {
    if (parsed.unknown.empty()) parsed.unknown = name;
    return {};
  }
  if (option->takes == Takes::kNothing) {
    if (equals != std::string::npos) return invalid(name + " takes no value", kListed);
    return give(*option, {}, parsed);
  }
  if (equals != std::string::npos) return give(*option, word.substr(equals + 1), parsed);
  return give_next(*option, words, parsed);
}

// -x, -x VALUE, -xVALUE; letters without a value may be followed by others: -hc CODE.
Result<void> take_short(const std::string& word, Words& words, Parsed& parsed) {
  for (std::size_t at = 1; at < word.size(); ++at) {
    const Option* const option =
        find_option([&](const Option& candidate) { return candidate.letter == word[at]; });
    if (option == nullptr) {
      if (parsed.unknown.empty()) parsed.unknown = word;
      return {};
    }
    if (option->takes != Takes::kNothing) {
      const std::string value = word.substr(at + 1);
      return value.empty() ? give_next(*option, words, parsed) : give(*option, value, parsed);
    }
    SBX_TRY(give(*option, {}, parsed));
  }
  return {};
}

// Up to the first word that is no option, or through CODE. Called again for the words after a verb.
Result<void> take_options(Words& words, Parsed& parsed) {
  while (parsed.arguments.source != Source::kCode && !words.at_end() &&
         looks_like_option(words.peek())) {
    const std::string& word = words.take();
    SBX_TRY(word[1] == '-' ? take_long(word, words, parsed) : take_short(word, words, parsed));
  }
  return {};
}

std::optional<Verb> verb_from(const std::string& word) {
  for (const VerbName& candidate : kVerbs) {
    if (candidate.name == word) return candidate.verb;
  }
  return std::nullopt;
}

std::string_view name_of(Verb verb) {
  const auto* const found =
      std::find_if(kVerbs.begin(), kVerbs.end(),
                   [&](const VerbName& candidate) { return candidate.verb == verb; });
  return found == kVerbs.end() ? std::string_view() : found->name;
}

// Decides what the words after the options mean. After CODE they are its arguments, all of them.
Result<void> take_program(Words& words, Parsed& parsed) {
  Arguments& out = parsed.arguments;
  if (!parsed.unknown.empty()) {
    return invalid("unknown option " + parsed.unknown,
                   "sbx-run --help lists the options; a program's own come after FILE, CODE or --");
  }
  if (out.source != Source::kCode && !words.at_end()) {
    const std::string& first = words.take();
    if (first == "--") {
      if (words.at_end()) return invalid("-- needs a command after it", "sbx-run -- /bin/true");
      out.source = Source::kCommand;
    } else {
      out.source = first == "-" ? Source::kStandardInput : Source::kFile;
      out.program = first;
    }
  }
  out.args = words.rest();
  return {};
}

struct VerbOptions {
  Verb verb;
  std::vector<std::string_view> taken;
};

// `explain` takes what a run takes, but for what tells of its result; the other verbs take no
// program and few options.
Result<void> check_verb(const Parsed& parsed) {
  const Verb verb = parsed.arguments.verb;
  if (verb == Verb::kExplain && parsed.arguments.json) {
    return invalid("explain has no --json: it is text for people",
                   "sbx-run --json gives limits and layers with each result");
  }
  if (verb == Verb::kExplain && parsed.arguments.learn) {
    return invalid("explain has no --learn: nothing is run that could be learned from",
                   "leave out explain");
  }
  static const VerbOptions kFew[] = {
      {Verb::kDoctor, {"--json", "--rootfs"}},
      {Verb::kSelftest, {"--json", "--rootfs", "--profile", "--allow-missing"}}};
  for (const auto& [of, taken] : kFew) {
    if (of != verb) continue;
    const std::string name(name_of(verb));
    if (parsed.arguments.source != Source::kNone) {
      return invalid(name + " takes no program", "to run a file of that name: sbx-run ./" + name);
    }
    for (const Option* const option : parsed.given) {
      if (std::find(taken.begin(), taken.end(), option->name) == taken.end()) {
        return invalid(name + " has no " + std::string(option->name),
                       "sbx-run " + name + " --help lists its options");
      }
    }
  }
  return {};
}

Result<void> check_run(const Parsed& parsed) {
  const Arguments& arguments = parsed.arguments;
  const bool named = std::any_of(parsed.given.begin(), parsed.given.end(),
                                 [](const Option* option) { return option->name == "--language"; });
  if (named && arguments.language.empty()) {
    return invalid("--language needs a name", "leave it out to have it guessed from the file's");
  }
  if (arguments.source == Source::kCommand && !arguments.language.empty()) {
    return invalid("-l is for a program's text, not for a command after --");
  }
  return {};
}

}  // namespace

std::string_view limit_option(std::string_view limit) {
  const Option* const option =
      find_option([&](const Option& candidate) { return candidate.limit == limit; });
  return option == nullptr ? limit : option->name;
}

Result<Arguments> parse_arguments(const std::vector<std::string>& typed) {
  Parsed parsed;
  Words words(typed);
  SBX_TRY(take_options(words, parsed));
  std::optional<Verb> verb;
  if (parsed.arguments.source != Source::kCode && !words.at_end()) verb = verb_from(words.peek());
  if (verb) {
    parsed.arguments.about = *verb;
    (void)words.take();
    SBX_TRY(take_options(words, parsed));
  }
  // --help, --version and --print-config win over everything else that was typed.
  if (parsed.arguments.verb != Verb::kRun) return std::move(parsed.arguments);
  if (verb) parsed.arguments.verb = *verb;
  SBX_TRY(take_program(words, parsed));
  SBX_TRY(check_verb(parsed));
  SBX_TRY(check_run(parsed));
  return std::move(parsed.arguments);
}

}  // namespace sbx::cli
