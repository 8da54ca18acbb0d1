#include "agentd/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace agentd::cli {
namespace {

int why_lost = 0;  // errno of what stdout did not take first; ferror() keeps only that there is one

void keep(bool written) {
  if (!written && why_lost == 0) why_lost = errno;
}

}  // namespace

void print(std::string_view text) {
  keep(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

void flush_output() {
  keep(std::fflush(stdout) == 0);
}

void tell(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

bool finish_output() {
  flush_output();
  if (why_lost == 0 && std::ferror(stdout) == 0) return true;
  std::string why = "agentctl: the output could not be written";
  if (why_lost != 0) why += ": " + std::generic_category().message(why_lost);
  tell(why + '\n');
  return false;
}

}  // namespace agentd::cli
