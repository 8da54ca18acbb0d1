// agentctl. Wiring only: what was typed goes to its verb.
#include <clocale>
#include <string>
#include <vector>

#include "agentd/cli/api_client.h"
#include "agentd/cli/arguments.h"
#include "agentd/cli/exit_codes.h"
#include "agentd/cli/output.h"
#include "agentd/cli/verbs.h"
#include "agentd/config/places.h"
#include "runtime/base/service.h"

namespace agentd::cli {
namespace {

int print_alone(const std::string& text) {
  print(text);
  return finish_output() ? kSucceeded : kMachinery;
}

int refuse(const sbx::Error& error) {
  return complain({.wrong_use = true, .text = error.detail, .fix = error.fix});
}

int dispatch(const Arguments& arguments) {
  if (arguments.verb == Verb::kHelp) return print_alone(help_text(arguments.about));
  if (arguments.verb == Verb::kVersion) return print_alone("agentctl " SBX_VERSION "\n");
  const auto socket = config::find_agentd_socket(arguments.socket);
  if (!socket) return refuse(socket.error());
  ApiClient client(*socket);
  switch (arguments.verb) {
    case Verb::kShow:
      return show(client, arguments);
    case Verb::kHistory:
      return history(client, arguments);
    case Verb::kCancel:
      return cancel(client, arguments);
    case Verb::kDoctor:
      return doctor(client, *socket);
    case Verb::kAsk:
    case Verb::kHelp:
    case Verb::kVersion:
      break;
  }
  return ask(client, arguments);
}

}  // namespace
}  // namespace agentd::cli

int main(int argc, char** argv) {
  if (!sbx::prepare_process()) return agentd::cli::kMachinery;
  // How wide characters are; numbers and messages stay as they are. Every Debian has it.
  (void)std::setlocale(LC_CTYPE, "C.UTF-8");
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto arguments = agentd::cli::parse_arguments(words);
  return arguments ? agentd::cli::dispatch(*arguments) : agentd::cli::refuse(arguments.error());
}
