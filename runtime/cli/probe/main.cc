// sbx-probe NAME [ARGUMENT]: prints {"probe": …, "errno": …, "value": …} and exits 0; 2 for an
// unknown name. A hostile act never comes back: then there is no line.
//
// sbx-probe wait …: any of these after the end of file on standard input.
// sbx-probe each NAME ARGUMENT [NAME ARGUMENT]…: each in a process of its own, one line each; one
// that did not come back says so: {"probe": …, "died": STATUS}.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

constexpr unsigned kActSeconds = 20;

// A JSON string of what may be any bytes.
void print_string(const char* text) {
  (void)std::putchar('"');
  for (const char* at = text; *at != '\0'; ++at) {
    const auto byte = static_cast<unsigned char>(*at);
    const bool plain = byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
    if (plain) {
      (void)std::putchar(byte);
    } else {
      (void)std::printf("\\u%04x", byte);
    }
  }
  (void)std::putchar('"');
}

int act_and_tell(const char* name, const char* argument) {
  Answer answer;
  if (!perform(name, argument, answer)) return 2;
  (void)std::printf("{\"probe\": ");
  print_string(name);
  (void)std::printf(", \"errno\": %d, \"value\": ", answer.error);
  print_string(answer.value);
  (void)std::printf("}\n");
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int act_on_each(int count, char** words) {
  for (int i = 0; i + 1 < count; i += 2) {
    const pid_t pid = ::fork();
    if (pid < 0) return 1;
    if (pid == 0) {
      (void)::alarm(kActSeconds);
      ::_exit(act_and_tell(words[i], words[i + 1]));
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0) continue;
    (void)std::printf("{\"probe\": ");
    print_string(words[i]);
    (void)std::printf(", \"died\": %d}\n", status);
    (void)std::fflush(stdout);
  }
  return 0;
}

void wait_for_end_of_input() {
  char byte = 0;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

}  // namespace

bool perform(const char* name, const char* argument, Answer& answer) {
  for (const Call* call = kCalls; call->name != nullptr; ++call) {
    if (std::strcmp(call->name, name) != 0) continue;
    make_call(*call, argument, answer);
    return true;
  }
  for (const Act* act :
       {kActs, kKernel, kNetwork, kExecution, kLooks, kViews, kDeeds, kLingering, kPlants}) {
    for (; act->name != nullptr; ++act) {
      if (std::strcmp(act->name, name) != 0) continue;
      act->run(argument, answer);
      return true;
    }
  }
  return false;
}

}  // namespace sbx::probe

int main(int argc, char** argv) {
  using namespace sbx::probe;
  if (argc > 1 && std::strcmp(argv[1], "wait") == 0) {
    wait_for_end_of_input();
    --argc;
    ++argv;
  }
  if (argc > 1 && std::strcmp(argv[1], "nothing") == 0) return 0;
  if (argc > 1 && std::strcmp(argv[1], "each") == 0) return act_on_each(argc - 2, argv + 2);
  return act_and_tell(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
}
