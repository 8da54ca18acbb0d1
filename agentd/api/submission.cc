#include "agentd/api/submission.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "agentd/envelope/code_block.h"
#include "agentd/loop/spending.h"
#include "agentd/prompts/file_preview.h"
#include "agentd/providers/recordings.h"
#include "http/json_fields.h"
#include "runtime/base/base64.h"
#include "runtime/base/escape.h"
#include "runtime/base/sha256.h"

namespace agentd::api {
namespace {

using record::Mode;
using sbx::http::invalid_value;
using sbx::http::JsonKind;
using sbx::http::JsonValue;
using sbx::http::missing_field;
using sbx::http::Problem;
using sbx::http::unknown_field;
using sbx::http::wrong_type;
using service::Submitted;
using std::chrono::milliseconds;

// The least that is taken of a figure, and why in words.
struct Least {
  double value = 0;
  std::string_view words{};
};
constexpr Least kLeastRun{static_cast<double>(loop::kMinRun.count()) / 1000, "1: no run gets less"};
// The run's second, and one for what comes before it.
constexpr Least kLeastRequest{2, "2: a run needs 1, and a reply comes before it"};
constexpr Least kLeastCost{1e-6, "0.000001: costs are counted in such parts"};

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\v\f") == std::string_view::npos;
}

// Reads the members of one document. Each reader returns false with the problem set; the first one
// ends the reading.
class Reader {
 public:
  Reader(Mode mode, const record::Budget& ceilings) : mode_(mode), ceilings_(ceilings) {
    result_.record.mode = mode;
    result_.record.budget = ceilings;
    if (mode == Mode::kCode) {
      result_.record.language = "python";
    } else {
      result_.record.budget.attempts = kMaxIterations;
    }
  }

  bool read(const JsonValue& body);
  [[nodiscard]] Problem take_problem() { return std::move(problem_); }
  [[nodiscard]] Submitted take() { return std::move(result_); }

 private:
  struct File {
    std::string name;
    std::string content;
  };

  bool fail(Problem problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool kind(const JsonValue& value, const std::string& field, JsonKind wanted) {
    return value.kind == wanted || fail(wrong_type(field, wanted, value.kind));
  }
  [[nodiscard]] std::vector<std::string> known() const;

  bool read_member(const JsonValue& value);
  bool read_text(const JsonValue& value);
  bool read_language(const JsonValue& value);
  bool read_label(const JsonValue& value);
  bool read_iterations(const JsonValue& value);
  bool read_files(const JsonValue& value);
  bool read_file(const JsonValue& value, const std::string& field);
  bool check_name(const std::string& name, const std::string& field);
  bool read_budget(const JsonValue& value);
  bool read_ceiling(const JsonValue& value);
  bool number(const JsonValue& value, const std::string& field, double most, bool whole, double& to,
              Least least = {});
  void finish();

  Mode mode_;
  const record::Budget& ceilings_;
  Submitted result_;
  bool has_text_ = false;
  std::vector<File> files_;
  std::size_t file_bytes_ = 0;  // of all
  std::set<std::string> names_;
  Problem problem_;
};

std::vector<std::string> Reader::known() const {
  if (mode_ == Mode::kTools) return {"task", "files", "budget", "label", "max_iterations"};
  return {"text", "language", "files", "budget", "label"};
}

bool Reader::read(const JsonValue& body) {
  if (!kind(body, "body", JsonKind::kObject)) return false;
  for (const JsonValue& member : body.items) {
    if (!read_member(member)) return false;
  }
  const std::string text = mode_ == Mode::kTools ? "task" : "text";
  if (!has_text_) return fail(missing_field(text, "Say what is wanted."));
  finish();
  return true;
}

bool Reader::read_member(const JsonValue& value) {
  const std::vector<std::string> names = known();
  if (std::find(names.begin(), names.end(), value.key) == names.end()) {
    return fail(unknown_field(value.key, names));
  }
  if (value.key == "text" || value.key == "task") return read_text(value);
  if (value.key == "language") return read_language(value);
  if (value.key == "label") return read_label(value);
  if (value.key == "max_iterations") return read_iterations(value);
  return value.key == "files" ? read_files(value) : read_budget(value);
}

bool Reader::read_text(const JsonValue& value) {
  if (!kind(value, value.key, JsonKind::kString)) return false;
  if (is_blank(value.text)) {
    return fail({.status = 422,
                 .code = "text_empty",
                 .detail = "The text is empty: say what is wanted.",
                 .field = value.key});
  }
  if (value.text.size() > kMaxTextBytes) {
    return fail({.status = 413,
                 .code = "text_too_long",
                 .detail = fmt::format("The text has {} bytes; at most {} are taken.",
                                       value.text.size(), kMaxTextBytes),
                 .field = value.key,
                 .fix = "attach long text as a file"});
  }
  result_.record.text = value.text;
  has_text_ = true;
  return true;
}

bool Reader::read_language(const JsonValue& value) {
  if (!kind(value, value.key, JsonKind::kString)) return false;
  envelope::Language language{};
  if (!envelope::language_from(value.text, language)) {
    return fail({.status = 422,
                 .code = "unknown_language",
                 .detail = "Programs are written in one of the allowed languages.",
                 .field = value.key,
                 .allowed = {"python", "javascript"}});
  }
  result_.record.language = to_string(language);
  return true;
}

bool Reader::read_label(const JsonValue& value) {
  if (!kind(value, value.key, JsonKind::kString)) return false;
  if (value.text.size() > kMaxLabel) {
    return fail(invalid_value(value.key, fmt::format("A label has at most {} bytes.", kMaxLabel)));
  }
  result_.record.label = value.text;
  return true;
}

bool Reader::read_iterations(const JsonValue& value) {
  double read = 0;
  if (!number(value, value.key, kMaxIterations, true, read)) return false;
  result_.record.budget.attempts = static_cast<int>(read);
  return true;
}

bool Reader::number(const JsonValue& value, const std::string& field, double most, bool whole,
                    double& to, Least least) {
  if (whole && !kind(value, field, JsonKind::kInteger)) return false;
  if (value.kind != JsonKind::kInteger && value.kind != JsonKind::kFloat) {
    return fail(wrong_type(field, JsonKind::kFloat, value.kind));
  }
  to = std::strtod(value.text.c_str(), nullptr);
  if (!(to > 0)) return fail(invalid_value(field, field + " must be above 0."));
  if (to < least.value) {
    return fail(invalid_value(field, fmt::format("{} must be at least {}.", field, least.words)));
  }
  if (to <= most) return true;
  return fail(
      {.status = 422,
       .code = "above_ceiling",
       .detail = fmt::format("{} of {} is above the ceiling of {:.15g}.", field, value.text, most),
       .field = field,
       .allowed = {fmt::format("{:.15g}", most)}});
}

bool Reader::read_budget(const JsonValue& value) {
  if (!kind(value, value.key, JsonKind::kObject)) return false;
  return std::all_of(value.items.begin(), value.items.end(),
                     [this](const JsonValue& item) { return read_ceiling(item); });
}

bool Reader::read_ceiling(const JsonValue& value) {
  const std::string field = "budget." + value.key;
  record::Budget& budget = result_.record.budget;
  const auto whole_milliseconds = [](double seconds) {
    return milliseconds(static_cast<milliseconds::rep>(std::ceil(seconds * 1000)));
  };
  const auto seconds_of = [](milliseconds time) {
    return static_cast<double>(time.count()) / 1000;
  };
  double read = 0;
  if (value.key == "attempts" && mode_ == Mode::kCode) {
    if (!number(value, field, ceilings_.attempts, true, read)) return false;
    budget.attempts = static_cast<int>(read);
  } else if (value.key == "tokens") {
    if (!number(value, field, static_cast<double>(ceilings_.tokens), true, read)) return false;
    budget.tokens = static_cast<std::int64_t>(read);
  } else if (value.key == "cost_usd") {
    if (!number(value, field, dollars(ceilings_.cost), false, read, kLeastCost)) return false;
    budget.cost = {static_cast<std::int64_t>(std::floor(read * 1e6 + 1e-6))};
  } else if (value.key == "sandbox_seconds") {
    if (!number(value, field, seconds_of(ceilings_.sandbox), false, read, kLeastRun)) return false;
    budget.sandbox = whole_milliseconds(read);
  } else if (value.key == "wall_seconds") {
    if (!number(value, field, seconds_of(ceilings_.wall), false, read, kLeastRequest)) return false;
    budget.wall = whole_milliseconds(read);
  } else {
    std::vector<std::string> names = {"tokens", "cost_usd", "sandbox_seconds", "wall_seconds"};
    if (mode_ == Mode::kCode) names.insert(names.begin(), "attempts");
    return fail(unknown_field(field, std::move(names)));
  }
  return true;
}

bool Reader::read_files(const JsonValue& value) {
  if (!kind(value, value.key, JsonKind::kArray)) return false;
  if (value.items.size() > kMaxFiles) {
    return fail(invalid_value(value.key, fmt::format("At most {} files are taken.", kMaxFiles)));
  }
  for (std::size_t i = 0; i < value.items.size(); ++i) {
    if (!read_file(value.items[i], fmt::format("files[{}]", i))) return false;
  }
  return true;
}

bool Reader::read_file(const JsonValue& value, const std::string& field) {
  if (!kind(value, field, JsonKind::kObject)) return false;
  for (const JsonValue& member : value.items) {
    if (member.key != "name" && member.key != "content_base64") {
      return fail(unknown_field(field + "." + member.key, {"name", "content_base64"}));
    }
    if (!kind(member, field + "." + member.key, JsonKind::kString)) return false;
  }
  const JsonValue* name = value.find("name");
  const JsonValue* content = value.find("content_base64");
  if (name == nullptr || content == nullptr) {
    return fail(missing_field(field, "A file has name and content_base64."));
  }
  if (!check_name(name->text, field + ".name")) return false;
  auto decoded = sbx::decode_base64(content->text);
  if (!decoded) {
    return fail(invalid_value(field + ".content_base64",
                              "This is not base64 as in RFC 4648, with padding and in one line."));
  }
  result_.held_bytes += content->text.size();
  file_bytes_ += decoded->size();
  if (file_bytes_ > kMaxFileBytes) {
    return fail({.status = 413,
                 .code = "files_too_large",
                 .detail = fmt::format("The files are larger than {} bytes.", kMaxFileBytes),
                 .field = "files"});
  }
  result_.submission.files.push_back({name->text, content->text});
  files_.push_back({name->text, *std::move(decoded)});
  return true;
}

// What sbxd refuses is refused before a model is asked.
bool Reader::check_name(const std::string& name, const std::string& field) {
  const bool plain = !name.empty() && name.size() <= kMaxFileName && name != "." && name != ".." &&
                     name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
  if (!plain) {
    return fail(invalid_value(field, "A file's name is one component of at most 255 bytes."));
  }
  if (sbx::has_control_character(name)) {
    return fail(invalid_value(field, "A file's name has no control characters."));
  }
  if (!names_.insert(name).second) {
    auto twice = invalid_value(field, fmt::format("Two files are named \"{}\".", name));
    twice.fix = "give each a name of its own: the directory it is from is no part of it";
    return fail(std::move(twice));
  }
  return true;
}

void Reader::finish() {
  std::vector<prompts::AttachedFile> attached;
  std::vector<providers::RequestFile> hashed;
  for (const File& file : files_) {
    std::string sha256 = sbx::sha256_of(file.content);
    attached.push_back({file.name, file.content});
    hashed.push_back({file.name, sha256});
    result_.record.files.push_back({file.name, file.content.size(), std::move(sha256)});
  }
  result_.submission.files_description = prompts::describe_files(attached);
  const std::string_view language =
      mode_ == Mode::kTools ? std::string_view("agent") : result_.record.language;
  result_.submission.request_sha256 =
      providers::request_sha256(language, result_.record.text, std::move(hashed));
}

}  // namespace

sbx::http::OrProblem<Submitted> parse_submission(std::string_view body, Mode mode,
                                                 const record::Budget& ceilings) {
  auto parsed = sbx::http::parse_strict_json(body);
  if (auto* problem = std::get_if<Problem>(&parsed)) return std::move(*problem);
  Reader reader(mode, ceilings);
  if (!reader.read(std::get<JsonValue>(parsed))) return reader.take_problem();
  return reader.take();
}

}  // namespace agentd::api
