// agentctl show, history, cancel.
#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "agentd/cli/exit_codes.h"
#include "agentd/cli/output.h"
#include "agentd/cli/present.h"
#include "agentd/cli/verbs.h"
#include "agentd/render/record_text.h"
#include "http/uri.h"
#include "runtime/base/escape.h"

namespace agentd::cli {

using Json = nlohmann::ordered_json;

int show(ApiClient& client, const Arguments& arguments) {
  if (const auto trouble = cannot_save(arguments)) return complain(*trouble);
  const auto record = client.get("/v1/requests/" + sbx::http::percent_encode(arguments.text));
  if (const auto* trouble = std::get_if<Trouble>(&record)) return complain(*trouble);
  return present(client, std::get<Json>(record), arguments);
}

int history(ApiClient& client, const Arguments& arguments) {
  const auto page = client.get(fmt::format("/v1/requests?limit={}", arguments.limit));
  if (const auto* trouble = std::get_if<Trouble>(&page)) return complain(*trouble);
  const Json& json = std::get<Json>(page);
  if (arguments.json) {
    print(json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n');
  } else {
    print(render::history_lines(json));
  }
  return finish_output() ? kSucceeded : kMachinery;
}

int cancel(ApiClient& client, const Arguments& arguments) {
  const auto done = client.remove("/v1/requests/" + sbx::http::percent_encode(arguments.text));
  if (const auto* trouble = std::get_if<Trouble>(&done)) return complain(*trouble);
  print(sbx::escape_for_terminal(arguments.text) + ": cancelling\n");
  return finish_output() ? kSucceeded : kMachinery;
}

}  // namespace agentd::cli
