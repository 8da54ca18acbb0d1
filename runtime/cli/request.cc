#include "runtime/cli/request.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "runtime/base/sys.h"
#include "runtime/policy/language.h"

namespace sbx::cli {
namespace {

constexpr std::size_t kMaxNameBytes = 255;  // NAME_MAX

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

std::string known_languages() {
  std::string text;
  for (const policy::Language& language : policy::languages()) {
    if (!text.empty()) text += ", ";
    text += language.name;
  }
  return text;
}

// "-l is needed" and "-l is wrong" read differently; both list what exists.
Result<std::string> choose_language(const Arguments& arguments) {
  const std::string fix = "known with -l: " + known_languages();
  if (!arguments.language.empty()) {
    const policy::Language* const language = policy::find_language(arguments.language);
    if (language == nullptr) return invalid("unknown language " + arguments.language, fix);
    return language->name;
  }
  if (arguments.source != Source::kFile) return std::string("python");
  const policy::Language* const language = policy::language_of_file(base_name(arguments.program));
  if (language == nullptr) {
    return invalid("cannot tell the language of " + arguments.program + " from its name", fix);
  }
  return language->name;
}

bool is_directory(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_regular_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// Whatever went wrong with a file that the caller named is the caller's to mend: exit 2.
Error as_invalid(Error error, const std::string& what) {
  error.code = ErrorCode::kInvalid;
  error.operation.clear();
  error.detail = what;
  return error;
}

Error too_long() {
  return invalid(
      fmt::format("the program's text is over {}", policy::size_text(policy::kMaxCodeBytes)),
      "give data with --input instead");
}

Result<std::string> read_code(int fd) {
  Result<std::string> text = sys::read_all(fd, policy::kMaxCodeBytes);
  if (!text && text.error().code == ErrorCode::kInvalid) return too_long();
  return text;
}

// A FIFO that has a name may be one that nobody writes to: its first byte is waited for as long as
// the run may take. Pipes without one (<(...), /dev/stdin) have somebody at their other end.
Result<void> await_fifo(int fd, const std::string& path, std::chrono::milliseconds patience) {
  struct stat status{};
  if (::fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode)) return {};
  if (sys::has_magic(fd, PIPEFS_MAGIC)) return {};
  SBX_ASSIGN(const bool written, sys::ready_in_time(fd, POLLIN, patience));
  if (written) return {};
  return invalid(fmt::format("{} is a FIFO, and nobody has written to it for {:g} s", path,
                             static_cast<double>(patience.count()) / 1000),
                 "let a program write to it, or give a file");
}

// O_NONBLOCK is for the opening alone.
bool block_again(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

Result<std::string> read_code_file(const std::string& path, std::chrono::milliseconds patience) {
  Result<UniqueFd> fd = sys::open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
  if (!fd) return as_invalid(std::move(fd).error(), path);
  if (is_directory(fd->get())) return invalid(path + " is a directory, not a program");
  SBX_TRY(await_fifo(fd->get(), path, patience));
  if (!block_again(fd->get())) return as_invalid(sys_error("fcntl"), path);
  Result<std::string> text = read_code(fd->get());
  if (!text && text.error().code != ErrorCode::kInvalid) {
    return as_invalid(std::move(text).error(), path);
  }
  return text;
}

Result<std::string> read_code_from_stdin() {
  Result<std::string> text = read_code(STDIN_FILENO);
  if (!text && text.error().code != ErrorCode::kInvalid) {
    return as_invalid(std::move(text).error(), "standard input");
  }
  return text;
}

Result<void> take_program(const Arguments& arguments, const policy::Limits& limits,
                          plan::Request& request) {
  switch (arguments.source) {
    case Source::kNone:
      return invalid("no program was given", "sbx-run FILE, -c CODE, -, or -- CMD; see --help");
    case Source::kCommand:
      request.argv = arguments.args;
      return {};
    case Source::kCode:
      if (arguments.program.size() > policy::kMaxCodeBytes) return too_long();
      request.code = arguments.program;
      break;
    case Source::kFile: {
      SBX_ASSIGN(request.code, read_code_file(arguments.program, limits.wall_seconds));
      break;
    }
    case Source::kStandardInput: {
      SBX_ASSIGN(request.code, read_code_from_stdin());
      break;
    }
  }
  request.args = arguments.args;
  return {};
}

Result<plan::InputFile> read_input(const InputSpelling& input, std::uint64_t room,
                                   const policy::Limits& limits) {
  // O_NONBLOCK: a FIFO must be refused, not waited for.
  Result<UniqueFd> fd = sys::open(input.path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
  if (!fd) return as_invalid(std::move(fd).error(), "--input " + input.path);
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return invalid("--input " + input.path + " is not a regular file");
  }
  const Error over =
      invalid(fmt::format("--input {} is {} bytes; the inputs together may have {}", input.path,
                          status.st_size, policy::size_text(limits.input)),
              "a profile with a larger `input` limit allows more");
  if (static_cast<std::uint64_t>(status.st_size) > room) return over;
  Result<std::string> content = sys::read_all(fd->get(), room);
  if (!content) {
    if (content.error().code == ErrorCode::kInvalid) return over;  // it grew meanwhile
    return as_invalid(std::move(content).error(), "--input " + input.path);
  }
  return plan::InputFile{input.name, *std::move(content)};
}

Result<void> take_inputs(const Arguments& arguments, const policy::Limits& limits,
                         plan::Request& request) {
  std::uint64_t room = limits.input;
  for (const std::string& text : arguments.inputs) {
    SBX_ASSIGN(const InputSpelling input, parse_input(text));
    const bool duplicate =
        std::any_of(request.files.begin(), request.files.end(),
                    [&input](const plan::InputFile& file) { return file.name == input.name; });
    if (duplicate) {
      return invalid("two inputs are named " + input.name, "give one another name: PATH:NAME");
    }
    SBX_ASSIGN(plan::InputFile file, read_input(input, room, limits));
    room -= file.content.size();
    request.files.push_back(std::move(file));
  }
  return {};
}

Result<void> take_environment(const Arguments& arguments, plan::Request& request) {
  for (const std::string& text : arguments.env) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid("--env " + text + " is not K=V", "for example: --env MODE=fast");
    }
    request.env.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return {};
}

Result<void> allow_layer(policy::Policy& policy, const std::string& name) {
  const auto layer = policy::layer_from_name(name);
  if (layer && !policy::layer_is_indispensable(*layer)) {
    policy.allow_missing |= policy::layer_bit(*layer);
    return {};
  }
  std::string known;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(policy::Layer::kCount); ++i) {
    const auto candidate = static_cast<policy::Layer>(i);
    if (!policy::layer_required(candidate) || policy::layer_is_indispensable(candidate)) continue;
    if (!known.empty()) known += ", ";
    known += policy::layer_name(candidate);
  }
  return invalid("--allow-missing " + name +
                     (layer ? ": without it nothing would be isolated" : ": no such layer"),
                 "known: " + known);
}

}  // namespace

Result<policy::Policy> make_policy(const Arguments& arguments,
                                   const std::optional<std::string>& profile_text) {
  SBX_ASSIGN(policy::Policy policy, profile_text
                                        ? policy::parse_policy(*profile_text, arguments.profile)
                                        : policy::load_policy(arguments.profile));
  for (const auto& [limit, text] : arguments.limits) {
    auto set = policy::set_limit(policy.limits, limit, text);
    if (set) continue;
    Error error = std::move(set).error();
    if (error.detail.starts_with(limit)) {  // said as it was typed
      error.detail.replace(0, limit.size(), limit_option(limit));
    }
    return unexpected(std::move(error));
  }
  for (const std::string& name : arguments.allow_missing) SBX_TRY(allow_layer(policy, name));
  return policy;
}

Result<plan::Request> make_request(const Arguments& arguments, const policy::Limits& limits) {
  plan::Request request;
  if (arguments.source != Source::kCommand) {
    SBX_ASSIGN(request.language, choose_language(arguments));
  }
  SBX_TRY(take_environment(arguments, request));
  SBX_TRY(take_inputs(arguments, limits, request));
  SBX_TRY(take_program(arguments, limits, request));  // last: it may block on a pipe
  return request;
}

Result<StandardInput> open_standard_input(const Arguments& arguments) {
  StandardInput input;
  if (arguments.stdin_file) {
    // Not waited for when it is a FIFO that nobody writes to: it is read in the run's own time.
    Result<UniqueFd> fd = sys::open(*arguments.stdin_file, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    if (!fd) return as_invalid(std::move(fd).error(), "--stdin " + *arguments.stdin_file);
    if (is_directory(fd->get()))
      return invalid("--stdin " + *arguments.stdin_file + " is a directory");
    input.owned = *std::move(fd);
    input.fd = input.owned.get();
    return input;
  }
  if (arguments.source != Source::kStandardInput && ::isatty(STDIN_FILENO) == 0) {
    input.fd = STDIN_FILENO;
  }
  return input;
}

Result<InputSpelling> parse_input(const std::string& text) {
  InputSpelling input{text, std::string(base_name(text))};
  const bool whole_exists = ::access(text.c_str(), F_OK) == 0;
  if (const std::size_t colon = text.rfind(':'); colon != std::string::npos) {
    const InputSpelling named{text.substr(0, colon), text.substr(colon + 1)};
    const bool has_slash = named.name.find('/') != std::string::npos;
    // With a slash behind it, the colon is rather one of a path: not where it ends a file's name.
    const bool apart = has_slash ? !whole_exists && is_regular_file(named.path)
                                 : !whole_exists || ::access(named.path.c_str(), F_OK) == 0;
    if (apart) input = named;
  }
  const std::string usage = "--input PATH:NAME, with a NAME without slashes";
  if (input.path.empty() || input.name.empty()) {
    return invalid("--input " + text + " does not give a file name", usage);
  }
  if (input.name == "." || input.name == ".." || input.name.size() > kMaxNameBytes ||
      input.name.find('/') != std::string::npos) {
    return invalid("--input " + text + ": '" + input.name + "' is no name for a file", usage);
  }
  return input;
}

}  // namespace sbx::cli
