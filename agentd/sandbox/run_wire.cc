#include "agentd/sandbox/run_wire.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "agentd/sandbox/json_members.h"
#include "runtime/base/base64.h"
#include "runtime/base/utf8.h"

namespace agentd::sandbox {
namespace {

using Json = nlohmann::ordered_json;
using Kind = SandboxFailure::Kind;

// What is looked at here. The rest, which is most of an answer without files, is read over.
constexpr std::string_view kUsed[] = {
    "id",      "status", "exit_code",      "signal",         "duration_seconds",
    "stdout",  "stderr", "stdout_dropped", "stderr_dropped", "files",
    "refused", "notes",  "limits_hit",     "error"};
constexpr std::string_view kUsedWhereBytesWereDropped[] = {"limits", "stdout_base64",
                                                           "stderr_base64"};

constexpr std::size_t kMostlyFiles = 64U << 10;  // an answer that is larger is not copied for that

// nullopt: a content came damaged.
std::optional<std::vector<OutputFile>> files_of(const Json& list) {
  std::vector<OutputFile> files;
  for (const Json& json : list) {
    OutputFile file{.path = json.at("path").get<std::string>(),
                    .size = json.at("size").get<std::uint64_t>(),
                    .sha256 = json.at("sha256").get<std::string>(),
                    .media_type = json.at("media_type").get<std::string>()};
    if (const auto content = json.find("content_base64"); content != json.end()) {
      auto decoded = sbx::decode_base64(content->get_ref<const std::string&>());
      if (!decoded) return std::nullopt;
      file.content = *std::move(decoded);
    }
    files.push_back(std::move(file));
  }
  return files;
}

// Where in the text of a stream its middle is missing: behind the half of the limit, rounded up, of
// the program's bytes. What is not said is as if nothing behind it were known to be whole.
std::size_t cut_of(const Json& json, const std::string& stream, const std::string& text) {
  const Json limits = json.value("limits", Json::object());
  const auto limit = limits.find(stream + "_bytes");
  if (limit == limits.end() || !limit->is_number_unsigned()) return text.size();
  const auto bytes = limit->get<std::uint64_t>();
  std::size_t head = bytes - bytes / 2;
  if (const auto raw = json.find(stream + "_base64"); raw != json.end()) {
    const auto decoded = sbx::decode_base64(raw->get_ref<const std::string&>());
    if (!decoded) return text.size();
    std::string shown;  // the two parts were decoded apart, too
    (void)sbx::append_replacing(shown, std::string_view(*decoded).substr(0, head));
    head = shown.size();
  }
  return std::min(head, text.size());
}

void find_cuts(std::string_view body, RunResult& result) {
  if (result.out_dropped == 0 && result.err_dropped == 0) return;
  const Json json = Json::parse(json_members(body, kUsedWhereBytesWereDropped));
  if (result.out_dropped > 0) result.out_cut = cut_of(json, "stdout", result.out);
  if (result.err_dropped > 0) result.err_cut = cut_of(json, "stderr", result.err);
}

RunResult result_of(const Json& json) {
  RunResult result{.id = json.at("id").get<std::string>(),
                   .status = json.at("status").get<std::string>(),
                   .exit_code = json.at("exit_code").get<int>(),
                   .duration_seconds = json.at("duration_seconds").get<double>(),
                   .out = json.at("stdout").get<std::string>(),
                   .out_dropped = json.at("stdout_dropped").get<std::uint64_t>(),
                   .err = json.at("stderr").get<std::string>(),
                   .err_dropped = json.at("stderr_dropped").get<std::uint64_t>(),
                   .limits_hit = json.at("limits_hit").get<std::vector<std::string>>()};
  if (!json.at("signal").is_null()) result.signal = json.at("signal").get<int>();
  for (const Json& entry : json.at("refused")) {
    result.refused.push_back(
        {entry.at("path").get<std::string>(), entry.at("reason").get<std::string>()});
  }
  for (const Json& note : json.at("notes")) {
    result.notes.push_back({note.at("code").get<std::string>(), note.at("text").get<std::string>(),
                            note.at("source").get<std::string>()});
  }
  return result;
}

std::string json_string(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string text_at(const Json& json, const char* name) {
  if (!json.is_object()) return {};
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

SandboxFailure failure_of(const Json& json) {
  const Json error = json.value("error", Json());
  return {.kind = Kind::kFailed,
          .detail = fmt::format("sandbox error: {}: {}", text_at(error, "step"),
                                text_at(error, "detail")),
          .fix = text_at(error, "fix")};
}

}  // namespace

std::string_view to_string(Kind kind) {
  constexpr std::string_view kNames[] = {"unreachable", "busy",      "refused", "failed",
                                         "lost",        "cancelled", "silent"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Not by way of a tree of values, which would hold each file once more.
std::string run_body(const RunRequest& request) {
  std::string body;
  std::size_t files = 0;
  for (const InputFile& file : request.files) files += file.content_base64.size();
  body.reserve(files + request.code.size() + 1024);
  body += R"({"language":)" + json_string(request.language);
  body += R"(,"code":)" + json_string(request.code);
  body += fmt::format(R"(,"limits":{{"wall_seconds":{})",
                      static_cast<double>(request.wall.count()) / 1000);
  if (request.stdout_bytes > 0) body += fmt::format(R"(,"stdout_bytes":{})", request.stdout_bytes);
  body += R"(},"collect":"content")";
  for (std::size_t i = 0; i < request.files.size(); ++i) {
    const InputFile& file = request.files[i];
    body += i == 0 ? R"(,"files":[)" : ",";
    body += R"({"name":)" + json_string(file.name);
    body += R"(,"content_base64":")";  // needs no escape
    body += file.content_base64;
    body += "\"}";
  }
  body += request.files.empty() ? "}" : "]}";
  return body;
}

RunOutcome parse_run(std::string_view body) {
  try {
    const Json json =
        body.size() > kMostlyFiles ? Json::parse(body) : Json::parse(json_members(body, kUsed));
    RunResult result = result_of(json);
    find_cuts(body, result);
    auto files = files_of(json.at("files"));
    if (!files) {
      return SandboxFailure{.kind = Kind::kLost,
                            .detail = "the sandbox's answer holds a file that is no base64"};
    }
    result.files = *std::move(files);
    if (result.status == "sandbox_error") return failure_of(json);
    if (result.status == "cancelled") {
      return SandboxFailure{.kind = Kind::kFailed, .detail = "the sandbox cancelled the run"};
    }
    return result;
  } catch (const Json::exception& error) {
    return SandboxFailure{
        .kind = Kind::kLost,
        .detail = fmt::format("the sandbox's answer is no result: {}", error.what())};
  }
}

SandboxFailure silence(std::optional<std::chrono::steady_clock::time_point> answered_at) {
  SandboxFailure failure{.kind = Kind::kSilent,
                         .detail = "sbxd takes connections and does not answer",
                         .fix = "see whether sbxd is stopped or hangs, and start it again"};
  if (answered_at) {
    const auto ago = std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::steady_clock::now() - *answered_at);
    failure.detail += fmt::format("; it last did {} s ago", ago.count());
  }
  return failure;
}

SandboxFailure parse_problem(int status, std::string_view body) {
  const Json json = Json::parse(body, nullptr, false);
  std::string detail = text_at(json, "detail");
  if (const std::string field = text_at(json, "field"); !field.empty())
    detail += " (" + field + ")";
  const bool busy = status == 429 || status == 503;
  return {.kind = busy ? Kind::kBusy : Kind::kRefused,
          .detail = fmt::format("the sandbox answered {}: {}", status, detail),
          .fix = text_at(json, "fix")};
}

}  // namespace agentd::sandbox
