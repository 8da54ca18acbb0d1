// sbx-probe NAME [ARGUMENT]: prints {"probe": …, "errno": …, "value": …} and exits 0; 2 for an
// unknown name. A hostile act never comes back: then there is no line.
#include <cstdio>
#include <cstring>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

const Act* find(const Act* table, const char* name) {
  for (const Act* act = table; act->name != nullptr; ++act) {
    if (std::strcmp(act->name, name) == 0) return act;
  }
  return nullptr;
}

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

}  // namespace
}  // namespace sbx::probe

int main(int argc, char** argv) {
  using namespace sbx::probe;
  const char* const name = argc > 1 ? argv[1] : "";
  const char* const argument = argc > 2 ? argv[2] : "";
  if (std::strcmp(name, "nothing") == 0) return 0;
  const Act* act = find(kActs, name);
  if (act == nullptr) act = find(kLooks, name);
  if (act == nullptr) return 2;
  Answer answer;
  act->run(argument, answer);
  (void)std::printf("{\"probe\": ");
  print_string(name);
  (void)std::printf(", \"errno\": %d, \"value\": ", answer.error);
  print_string(answer.value);
  (void)std::printf("}\n");
  return 0;
}
