#include "runtime/daemon/run_request.h"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/base64.h"
#include "runtime/base/escape.h"
#include "runtime/base/sha256.h"
#include "runtime/daemon/json_fields.h"
#include "runtime/policy/language.h"
#include "runtime/policy/limits.h"

namespace sbx::daemon {
namespace {

using http::Problem;

constexpr std::size_t kMaxFileName = 255;  // NAME_MAX

using Names = std::vector<std::string>;

// Reads the members of one document into a RunRequest. Each reader returns false with problem()
// set; the first problem ends the reading.
class Reader {
 public:
  Reader(const RequestRules& rules, RunPlace place) : rules_(rules), place_(place) {}

  bool read(JsonValue& body);
  [[nodiscard]] Problem take_problem() { return std::move(problem_); }
  [[nodiscard]] RunRequest take() { return std::move(result_); }

 private:
  using ReadMember = bool (Reader::*)(JsonValue&);
  struct Field {
    std::string_view name;
    JsonKind kind;
    ReadMember read;
    bool session_only = false;
  };
  static const Field kFields[];

  bool fail(Problem problem) {
    problem_ = std::move(problem);
    return false;
  }
  [[nodiscard]] Names field_names() const;
  [[nodiscard]] const Field* find_field(std::string_view name) const;

  bool read_language(JsonValue& value);
  bool read_code(JsonValue& value);
  bool read_argv(JsonValue& value) { return read_strings(value, "argv", result_.request.argv); }
  bool read_args(JsonValue& value) { return read_strings(value, "args", result_.request.args); }
  bool read_stdin(JsonValue& value);
  bool read_files(JsonValue& value);
  bool read_env(JsonValue& value);
  bool read_profile(JsonValue& value);
  bool read_limits(JsonValue& value);
  bool read_collect(JsonValue& value);
  bool read_wait(JsonValue& value);

  bool read_strings(JsonValue& value, const std::string& field, std::vector<std::string>& to);
  bool read_file(JsonValue& file, const std::string& field);
  bool check_file_name(const std::string& name, const std::string& field);
  bool read_limit(const JsonValue& value);
  bool check_program();
  bool settle_limits();

  const RequestRules& rules_;
  RunPlace place_;
  RunRequest result_;
  bool has_code_ = false;
  std::optional<JsonValue> limits_;
  std::set<std::string> file_names_;
  Problem problem_;
};

const Reader::Field Reader::kFields[] = {
    {"language", JsonKind::kString, &Reader::read_language},
    {"argv", JsonKind::kArray, &Reader::read_argv},
    {"code", JsonKind::kString, &Reader::read_code},
    {"args", JsonKind::kArray, &Reader::read_args},
    {"stdin", JsonKind::kString, &Reader::read_stdin},
    {"files", JsonKind::kArray, &Reader::read_files},
    {"env", JsonKind::kObject, &Reader::read_env},
    {"limits", JsonKind::kObject, &Reader::read_limits},
    {"profile", JsonKind::kString, &Reader::read_profile},
    {"collect", JsonKind::kString, &Reader::read_collect},
    {"wait", JsonKind::kBool, &Reader::read_wait, true},
};

Names Reader::field_names() const {
  Names names;
  for (const Field& field : kFields) {
    if (!field.session_only || place_ == RunPlace::kSession) names.emplace_back(field.name);
  }
  return names;
}

const Reader::Field* Reader::find_field(std::string_view name) const {
  const auto* field = std::find_if(std::begin(kFields), std::end(kFields),
                                   [&](const Field& each) { return each.name == name; });
  const bool there =
      field != std::end(kFields) && (!field->session_only || place_ == RunPlace::kSession);
  return there ? field : nullptr;
}

bool Reader::read(JsonValue& body) {
  if (body.kind != JsonKind::kObject) {
    return fail(
        {.status = 400,
         .code = "wrong_type",
         .detail = fmt::format("The body must be an object, not {}.", json_kind_name(body.kind))});
  }
  result_.policy = rules_.profiles.front();
  for (JsonValue& item : body.items) {
    const Field* const field = find_field(item.key);
    if (field == nullptr) return fail(unknown_field(item.key, field_names()));
    if (item.kind != field->kind) return fail(wrong_type(item.key, field->kind, item.kind));
    if (!(this->*field->read)(item)) return false;
  }
  return check_program() && settle_limits();
}

bool Reader::check_program() {
  const bool has_language = !result_.request.language.empty();
  const bool has_argv = !result_.request.argv.empty();
  if (has_language && has_argv) {
    return fail({.status = 422,
                 .code = "conflicting_fields",
                 .detail = "Give either language with code, or argv.",
                 .field = "argv"});
  }
  if (has_language && !has_code_) return fail(missing_field("code", "A language needs code."));
  if (has_argv && has_code_) {
    return fail({.status = 422,
                 .code = "conflicting_fields",
                 .detail = "Code needs a language, which argv is not.",
                 .field = "code"});
  }
  if (has_language || has_argv) return true;
  return fail(missing_field("language", "Give language with code, or argv."));
}

bool Reader::read_language(JsonValue& value) {
  if (const policy::Language* language = policy::find_language(value.text)) {
    result_.request.language = language->name;
    return true;
  }
  Names known;
  for (const policy::Language& language : policy::languages()) known.push_back(language.name);
  return fail({.status = 422,
               .code = "unknown_language",
               .detail = fmt::format("There is no language '{}'.", shown_text(value.text)),
               .field = "language",
               .allowed = std::move(known)});
}

bool Reader::read_code(JsonValue& value) {
  has_code_ = true;
  result_.request.code = std::move(value.text);
  return true;
}

bool Reader::read_stdin(JsonValue& value) {
  result_.request.stdin_text = std::move(value.text);
  return true;
}

bool Reader::read_strings(JsonValue& value, const std::string& field,
                          std::vector<std::string>& to) {
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    JsonValue& item = value.items[i];
    const std::string name = fmt::format("{}[{}]", field, i);
    if (item.kind != JsonKind::kString) {
      return fail(wrong_type(name, JsonKind::kString, item.kind));
    }
    if (item.text.find('\0') != std::string::npos) {
      return fail(invalid_value(name, "An argument cannot hold a NUL."));
    }
    to.push_back(std::move(item.text));
  }
  if (field == "argv" && (to.empty() || to.front().empty())) {
    return fail(invalid_value(field, "argv names a program first."));
  }
  return true;
}

bool Reader::read_files(JsonValue& value) {
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    if (!read_file(value.items[i], fmt::format("files[{}]", i))) return false;
  }
  return true;
}

bool Reader::read_file(JsonValue& file, const std::string& field) {
  if (file.kind != JsonKind::kObject) return fail(wrong_type(field, JsonKind::kObject, file.kind));
  for (const JsonValue& item : file.items) {
    if (item.key != "name" && item.key != "content_base64") {
      return fail(unknown_field(field + "." + item.key, {"name", "content_base64"}));
    }
    if (item.kind != JsonKind::kString) {
      return fail(wrong_type(field + "." + item.key, JsonKind::kString, item.kind));
    }
  }
  JsonValue* const name = file.find("name");
  if (name == nullptr) return fail(missing_field(field + ".name", "A file needs a name."));
  if (!check_file_name(name->text, field + ".name")) return false;
  const JsonValue* const content = file.find("content_base64");
  if (content == nullptr) {
    return fail(missing_field(field + ".content_base64", "A file needs its content."));
  }
  auto bytes = decode_base64(content->text);
  if (!bytes) {
    return fail(invalid_value(field + ".content_base64",
                              "Not base64: padded, of the standard alphabet, without blanks."));
  }
  result_.request.files.push_back({std::move(name->text), *std::move(bytes)});
  return true;
}

bool Reader::check_file_name(const std::string& name, const std::string& field) {
  const bool is_component = !name.empty() && name != "." && name != ".." &&
                            name.size() <= kMaxFileName && name.find('/') == std::string::npos &&
                            name.find('\0') == std::string::npos;
  if (!is_component) {
    return fail(invalid_value(
        field, fmt::format("A name is 1 to {} bytes, without '/' and NUL, and not '.' or '..'.",
                           kMaxFileName)));
  }
  // The plan refuses it too, where it could not say of which of them.
  if (has_control_character(name)) {
    return fail(invalid_value(field, "A name has no control characters."));
  }
  if (file_names_.insert(name).second) return true;
  return fail(invalid_value(field, "Two files have this name."));
}

bool Reader::read_env(JsonValue& value) {
  for (JsonValue& item : value.items) {
    const std::string field = "env." + shown_text(item.key);
    if (item.kind != JsonKind::kString) {
      return fail(wrong_type(field, JsonKind::kString, item.kind));
    }
    const bool is_name = !item.key.empty() && item.key.find('=') == std::string::npos &&
                         item.key.find('\0') == std::string::npos;
    if (!is_name || has_control_character(item.key)) {
      return fail(
          invalid_value(field, "A variable's name has no '=', no NUL and no control character."));
    }
    if (item.text.find('\0') != std::string::npos) {
      return fail(invalid_value(field, "A variable's value has no NUL."));
    }
    result_.request.env.emplace_back(std::move(item.key), std::move(item.text));
  }
  return true;
}

bool Reader::read_profile(JsonValue& value) {
  Names known;
  for (const policy::Policy& profile : rules_.profiles) {
    if (profile.profile == value.text) {
      result_.policy = profile;
      return true;
    }
    known.push_back(profile.profile);
  }
  return fail({.status = 422,
               .code = "unknown_profile",
               .detail = fmt::format("There is no profile '{}'.", shown_text(value.text)),
               .field = "profile",
               .allowed = std::move(known)});
}

bool Reader::read_collect(JsonValue& value) {
  constexpr std::pair<std::string_view, collect::CollectMode> kModes[] = {
      {"content", collect::CollectMode::kContent},
      {"list", collect::CollectMode::kList},
      {"none", collect::CollectMode::kNone}};
  for (const auto& [name, mode] : kModes) {
    if (name != value.text) continue;
    result_.collect = mode;
    return true;
  }
  return fail(invalid_value("collect", "There is no such way to collect files.",
                            {"content", "list", "none"}));
}

bool Reader::read_wait(JsonValue& value) {
  result_.wait = value.text == "true";
  return true;
}

// The profile may come behind them.
bool Reader::read_limits(JsonValue& value) {
  limits_ = std::move(value);
  return true;
}

bool Reader::settle_limits() {
  rules_.ceilings.apply(result_.policy.limits);
  if (!limits_) return true;
  return std::all_of(limits_->items.begin(), limits_->items.end(),
                     [&](const JsonValue& item) { return read_limit(item); });
}

bool Reader::read_limit(const JsonValue& value) {
  if (place_ == RunPlace::kSession && (value.key == "work" || value.key == "work_inodes")) {
    return fail(
        invalid_value("limits." + value.key, "It is the session's quota, set when it was made."));
  }
  auto problem = set_limit(result_.policy.limits, value, rules_.ceilings);
  return !problem || fail(*std::move(problem));
}

std::string hash_of_words(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) {
    all += word;
    all += '\0';
  }
  return sha256_of(all);
}

std::string program_hash(const plan::Request& request) {
  return request.argv.empty() ? sha256_of(request.code) : hash_of_words(request.argv);
}

std::string inputs_hash(const std::vector<plan::InputFile>& files) {
  std::vector<std::string> words;
  for (const plan::InputFile& file : files) {
    words.push_back(file.name);
    words.push_back(sha256_of(file.content));
  }
  return words.empty() ? std::string() : hash_of_words(words);
}

}  // namespace

OrProblem<RunRequest> parse_run_request(std::string_view body, const RequestRules& rules,
                                        RunPlace place) {
  auto parsed = parse_strict_json(body);
  if (auto* problem = std::get_if<Problem>(&parsed)) return std::move(*problem);
  Reader reader(rules, place);
  if (!reader.read(std::get<JsonValue>(parsed))) return reader.take_problem();
  RunRequest request = reader.take();
  request.program_sha256 = program_hash(request.request);
  request.inputs_sha256 = inputs_hash(request.request.files);
  return request;
}

Problem invalid_request(const Error& error) {
  return {.status = 422,
          .code = "invalid_value",
          .detail = error.detail,
          .field = error.operation,  // the part of the request, where it is one
          .fix = fix_for_clients(error.fix)};
}

std::string fix_for_clients(std::string_view fix) {
  constexpr std::string_view kOption = "abcdefghijklmnopqrstuvwxyz-";
  std::string words;
  for (std::size_t at = fix.find("--"); at != std::string_view::npos; at = fix.find("--")) {
    words += fix.substr(0, at);
    fix.remove_prefix(at + 2);
    std::string name(fix.substr(0, fix.find_first_not_of(kOption)));
    fix.remove_prefix(name.size());
    std::replace(name.begin(), name.end(), '-', '_');
    const auto& limits = policy::limit_fields();
    const bool is_limit = std::any_of(limits.begin(), limits.end(),
                                      [&](const auto& field) { return field.name == name; });
    // --input PATH:NAME is none, although there is a limit of that name.
    const bool has_value = fix.size() > 1 && fix[0] == ' ' && fix[1] >= 'A' && fix[1] <= 'Z';
    if (!is_limit || has_value) return {};
    words += "limits." + name;
  }
  return words.append(fix);
}

OrProblem<bool> wants_stream(const http::Query& query) {
  const auto value = query.find("stream");
  if (!value || value == "0" || value == "1") return value == "1";
  return Problem{.status = 422,
                 .code = "invalid_value",
                 .detail = "stream is 0 or 1.",
                 .field = "stream",
                 .allowed = {"0", "1"}};
}

}  // namespace sbx::daemon
