// agentctl ask.
#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "agentd/cli/exit_codes.h"
#include "agentd/cli/interrupts.h"
#include "agentd/cli/output.h"
#include "agentd/cli/present.h"
#include "agentd/cli/save.h"
#include "agentd/cli/verbs.h"
#include "agentd/render/json_view.h"
#include "agentd/render/record_text.h"
#include "runtime/base/base64.h"
#include "runtime/base/escape.h"
#include "runtime/base/sys.h"

namespace agentd::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxFiles = 10U << 20;  // of all together: agentd takes no more
constexpr std::chrono::seconds kAgainAfter{1};
constexpr const char* kFewer = "files are at most 10 MiB together";

// {name, content_base64} of a file of the caller's. `room` is what is left for it and the next
// ones.
sbx::Result<Json> attach(const std::string& path, std::size_t& room) {
  auto content = sbx::sys::read_file(path, kMaxFiles);
  if (!content) return unreadable_file(path, content.error());
  if (content->size() > room) return sbx::invalid(path + " is too large with the others", kFewer);
  room -= content->size();
  return Json{{"name", path.substr(path.rfind('/') + 1)},
              {"content_base64", sbx::encode_base64(*content)}};
}

sbx::Result<Json> request_body(const Arguments& arguments) {
  Json body{{"text", arguments.text}, {"language", arguments.javascript ? "javascript" : "python"}};
  std::size_t room = kMaxFiles;
  for (const std::string& path : arguments.files) {
    SBX_ASSIGN(Json file, attach(path, room));
    body["files"].push_back(std::move(file));
  }
  return body;
}

// One line for each state. How it ended without success says the footer, where there is one.
void draw_state(const Json& event, bool footer) {
  const std::string state = render::text_at(event, "state");
  if (footer && (state == "gave_up" || state == "failed")) return;
  tell(sbx::escape_for_terminal(render::text_at(event, "text")) + '\n');
}

// `text` keeps us from a request that agentd has taken.
Trouble lost_sight(std::string text, const std::string& id) {
  return {.text = std::move(text), .fix = "agentctl show " + id + " shows what became of it"};
}

// The id of the request, which has ended. A signal leaves, or cancels it where there is one.
OrTrouble<std::string> work_off(ApiClient& client, const Json& body, bool footer) {
  const Interrupts interrupts;
  auto accepted = client.submit(body, interrupts.fd());
  if (auto* trouble = std::get_if<Trouble>(&accepted)) return std::move(*trouble);
  std::string id = render::text_at(std::get<Json>(accepted), "id");
  const auto followed = client.follow(id, interrupts.fd(),
                                      [footer](const Json& event) { draw_state(event, footer); });
  if (const auto* trouble = std::get_if<Trouble>(&followed)) return lost_sight(trouble->text, id);
  return id;
}

// Of a request that has ended. Where agentd does not give it, it is asked once more.
OrTrouble<Json> record_of(ApiClient& client, const std::string& id) {
  const std::string target = "/v1/requests/" + id;
  auto record = client.get(target);
  if (std::holds_alternative<Trouble>(record)) {
    tell("agentctl: there was no record of " + id + "; asked once more\n");
    std::this_thread::sleep_for(kAgainAfter);
    record = client.get(target);
  }
  if (const auto* trouble = std::get_if<Trouble>(&record)) return lost_sight(trouble->text, id);
  return record;
}

}  // namespace

sbx::Error unreadable_file(const std::string& path, const sbx::Error& error) {
  struct stat info{};
  switch (error.sys_errno) {
    case ENOENT:
    case ENOTDIR:
      return sbx::invalid("there is no file " + path, "see whether its name is right");
    case EACCES:
    case EPERM:
      return sbx::invalid(path + " is not readable for you",
                          "make it readable, or take a copy that is");
    case 0:
      break;
    default:
      return sbx::invalid(path + ": " + std::generic_category().message(error.sys_errno));
  }
  if (::stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) {
    return sbx::invalid(path + " is too large", kFewer);
  }
  return sbx::invalid(path + (S_ISDIR(info.st_mode) ? " is a directory" : " is not a regular file"),
                      "name each file with a --file of its own");
}

std::optional<Trouble> cannot_save(const Arguments& arguments) {
  if (arguments.save.empty()) return std::nullopt;
  const auto checked = check_directory(arguments.save);
  if (checked) return std::nullopt;
  return Trouble{.wrong_use = true, .text = checked.error().detail, .fix = checked.error().fix};
}

int complain(const Trouble& trouble) {
  tell(fmt::format("agentctl: {}\n", sbx::escape_for_terminal(trouble.text)));
  if (!trouble.fix.empty()) {
    tell(fmt::format("agentctl: fix: {}\n", sbx::escape_for_terminal(trouble.fix)));
  }
  return trouble.wrong_use ? kWrongUse : kMachinery;
}

int ask(ApiClient& client, const Arguments& arguments) {
  const auto body = request_body(arguments);
  if (!body) {
    return complain({.wrong_use = true, .text = body.error().detail, .fix = body.error().fix});
  }
  if (const auto trouble = cannot_save(arguments)) return complain(*trouble);
  const auto info = client.info();
  if (const auto* trouble = std::get_if<Trouble>(&info)) return complain(*trouble);
  tell(render::provider_line(std::get<Json>(info)));
  const auto ended = work_off(client, *body, !arguments.json);
  if (const auto* trouble = std::get_if<Trouble>(&ended)) return complain(*trouble);
  const auto record = record_of(client, std::get<std::string>(ended));
  if (const auto* trouble = std::get_if<Trouble>(&record)) return complain(*trouble);
  return present(client, std::get<Json>(record), arguments);
}

}  // namespace agentd::cli
