// agentctl. Wiring only: what was typed goes to its verb.
#include <sys/signalfd.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <string>
#include <vector>

#include "agentd/cli/api_client.h"
#include "agentd/cli/arguments.h"
#include "agentd/cli/exit_codes.h"
#include "agentd/cli/output.h"
#include "agentd/cli/verbs.h"
#include "agentd/config/places.h"
#include "runtime/base/unique_fd.h"

namespace agentd::cli {
namespace {

// Ctrl-C and SIGTERM come by a descriptor from here on.
sbx::UniqueFd take_interrupts() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGINT);
  ::sigaddset(&set, SIGTERM);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return {};
  return sbx::UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

int print_alone(const std::string& text) {
  print(text);
  return finish_output() ? kSucceeded : kMachinery;
}

int dispatch(const Arguments& arguments) {
  const std::string socket = config::find_agentd_socket(arguments.socket);
  ApiClient client(socket);
  switch (arguments.verb) {
    case Verb::kHelp:
      return print_alone(help_text(arguments.about));
    case Verb::kVersion:
      return print_alone("agentctl " SBX_VERSION "\n");
    case Verb::kShow:
      return show(client, arguments);
    case Verb::kHistory:
      return history(client, arguments);
    case Verb::kCancel:
      return cancel(client, arguments);
    case Verb::kDoctor:
      return doctor(client, socket);
    case Verb::kAsk:
      break;
  }
  const sbx::UniqueFd interrupts = take_interrupts();
  return interrupts ? ask(client, arguments, interrupts.get())
                    : complain({.text = "signalfd failed"});
}

}  // namespace
}  // namespace agentd::cli

int main(int argc, char** argv) {
  // How wide characters are; numbers and messages stay as they are. Every Debian has it.
  (void)std::setlocale(LC_CTYPE, "C.UTF-8");
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto arguments = agentd::cli::parse_arguments(words);
  if (arguments) return agentd::cli::dispatch(*arguments);
  return agentd::cli::complain(
      {.wrong_use = true, .text = arguments.error().detail, .fix = arguments.error().fix});
}
