#include "agentd/cli/present.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "agentd/cli/exit_codes.h"
#include "agentd/cli/output.h"
#include "agentd/cli/save.h"
#include "agentd/render/json_view.h"
#include "agentd/render/png_pixels.h"
#include "agentd/render/record_text.h"
#include "agentd/render/sixel.h"
#include "agentd/render/terminal.h"
#include "http/uri.h"
#include "runtime/base/escape.h"

namespace agentd::cli {
namespace {

using Json = nlohmann::ordered_json;
using render::ImageProtocol;
using render::member;
using render::text_at;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

ImageProtocol choose_protocol(const std::string& wanted) {
  if (const auto named = render::protocol_from(wanted)) return *named;
  if (::isatty(STDOUT_FILENO) == 0) return ImageProtocol::kNone;
  const ImageProtocol known = render::protocol_of_environment(environment);
  if (known != ImageProtocol::kNone || ::isatty(STDIN_FILENO) == 0) return known;
  const bool plain =
      environment("TERM").empty() || environment("TERM") == "dumb" || !environment("TMUX").empty();
  return !plain && render::answers_sixel(STDIN_FILENO) ? ImageProtocol::kSixel
                                                       : ImageProtocol::kNone;
}

// "" when this terminal cannot show it; a PNG that is not to be shown is told about.
std::string picture(ImageProtocol protocol, const std::string& file) {
  if (protocol == ImageProtocol::kNone || !render::is_png(file)) return {};
  if (const std::string why = render::why_not_inline(file); !why.empty()) {
    tell(fmt::format("not shown: {}\n", why));
    return {};
  }
  switch (protocol) {
    case ImageProtocol::kNone:
      return {};
    case ImageProtocol::kKitty:
      return render::kitty_image(file);
    case ImageProtocol::kIterm2:
      return render::iterm2_image(file);
    case ImageProtocol::kSixel:
      break;
  }
  const auto pixels = render::png_pixels(file);
  return pixels ? render::sixel_image(*pixels) : std::string();
}

OrTrouble<std::string> fetch(ApiClient& client, const Json& record, const std::string& name) {
  return client.bytes("/v1/requests/" + text_at(record, "id") + "/artifacts/" +
                      sbx::http::percent_encode(name, "/"));
}

void tell_error(const sbx::Error& error) {
  tell(fmt::format("agentctl: {}\n", sbx::escape_for_terminal(to_string(error))));
}

// How an artifact is shown: only the picture of the result is, and nothing beside JSON.
ImageProtocol protocol_for(const Json& record, const std::string& name,
                           const Arguments& arguments) {
  const Json& result = member(record, "result");
  const bool is_picture = text_at(result, "type") == "chart" && text_at(result, "artifact") == name;
  return is_picture && !arguments.json ? choose_protocol(arguments.image) : ImageProtocol::kNone;
}

// Saves one artifact, and shows it. False: said on stderr.
bool present_artifact(ApiClient& client, const Json& record, const std::string& name,
                      const SaveDirectory& directory, const Arguments& arguments,
                      std::string_view remark) {
  const auto fetched = fetch(client, record, name);
  if (const auto* trouble = std::get_if<Trouble>(&fetched)) {
    tell(fmt::format("agentctl: {}\n", sbx::escape_for_terminal(trouble->text)));
    return false;
  }
  const std::string& content = std::get<std::string>(fetched);
  const auto path = directory.save(name, content);
  if (!path) {
    tell_error(path.error());
    return false;
  }
  const std::string shown = picture(protocol_for(record, name, arguments), content);
  print(shown);
  const std::string line = fmt::format("saved: {}{}\n", *path, remark);
  (shown.empty() && !arguments.json ? print(line) : tell(line));
  return true;
}

bool save_and_show(ApiClient& client, const Json& record, const std::vector<std::string>& names,
                   const Arguments& arguments) {
  const std::string named = text_at(member(record, "result"), "artifact");
  const auto directory = SaveDirectory::open(
      arguments.save.empty() ? "agentd-" + text_at(record, "id").substr(0, 11) : arguments.save);
  if (!directory) {
    tell_error(directory.error());
    return false;
  }
  bool good = true;
  for (const std::string& name : names) {
    const std::string_view remark = name == named && names.size() > 1 ? " (the result)" : "";
    good = present_artifact(client, record, name, *directory, arguments, remark) && good;
  }
  return good;
}

bool present_artifacts(ApiClient& client, const Json& record, const Arguments& arguments) {
  const std::string named = text_at(member(record, "result"), "artifact");
  std::vector<std::string> names;
  for (const Json& artifact : member(record, "artifacts")) {
    std::string name = text_at(artifact, "name");
    if (!arguments.save.empty() || name == named) names.push_back(std::move(name));
  }
  if (names.empty() || save_and_show(client, record, names, arguments)) return true;
  tell(fmt::format("agentctl: fix: agentd has it still: agentctl show {} --save DIR\n",
                   sbx::escape_for_terminal(text_at(record, "id"))));
  return false;
}

}  // namespace

int exit_code_of(const std::string& state) {
  if (state == "succeeded") return kSucceeded;
  if (render::is_under_way(state)) return kUnderWay;
  return state == "failed" ? kMachinery : kGaveUp;
}

int present(ApiClient& client, const Json& record, const Arguments& arguments) {
  const int code = exit_code_of(text_at(record, "state"));
  if (arguments.json) {
    const bool saved = arguments.save.empty() || present_artifacts(client, record, arguments);
    if (!arguments.save.empty()) tell(render::left_out(record));
    print(record.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
    return finish_output() && saved ? code : kMachinery;
  }
  print(render::result_text(record));
  const bool saved = present_artifacts(client, record, arguments);
  flush_output();
  tell(render::left_out(record) + render::attempt_lines(record) + render::footer(record));
  return finish_output() && saved ? code : kMachinery;
}

}  // namespace agentd::cli
