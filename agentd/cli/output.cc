#include "agentd/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace agentd::cli {

void print(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stdout);  // ferror() keeps it for finish_output()
}

void tell(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

bool finish_output() {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  if (flushed && std::ferror(stdout) == 0) return true;
  std::string why = "agentctl: the output could not be written";
  if (errno != 0) why += ": " + std::generic_category().message(errno);
  tell(why + '\n');
  return false;
}

}  // namespace agentd::cli
