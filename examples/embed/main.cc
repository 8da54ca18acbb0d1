// formula EXPRESSION...: works out formulas that strangers typed, in Python, each in a sandbox of
// its own. Prints one line each: the value, or why there is none.
//
// SBX_ROOTFS=host uses the host's /usr instead of the image `default`.
#include <sbx/sandbox.h>

#include <cstdlib>
#include <iostream>
#include <string>

namespace {

// The expression is data to our three lines of Python, never part of them; and were it to break out
// of eval, it would still be inside the sandbox.
constexpr const char* kProgram =
    "import math, sys\n"
    "names = vars(math) | {'__builtins__': {'sum': sum, 'range': range, 'min': min, 'max': max}}\n"
    "print(eval(sys.argv[1], names))\n";

int fail(const sbx::Error& error) {
  std::cerr << sbx::to_string(error) << "\n";
  if (!error.fix.empty()) std::cerr << "fix: " << error.fix << "\n";
  return 125;
}

sbx::Result<sbx::Sandbox> open_sandbox() {
  auto policy = sbx::policy::load_policy("default");
  if (!policy) return std::move(policy).error();
  policy->limits.wall_seconds = std::chrono::seconds(5);
  policy->limits.memory = 64 * sbx::policy::kMiB;
  auto config = sbx::policy::load_runtime_config();
  if (!config) return std::move(config).error();
  sbx::SandboxOptions options;
  options.policy = *std::move(policy);
  options.config = *std::move(config);
  if (const char* rootfs = std::getenv("SBX_ROOTFS")) options.rootfs = rootfs;
  return sbx::Sandbox::open(std::move(options));
}

// The last line of a traceback says enough.
std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

void print(const std::string& expression, const sbx::collect::Outcome& outcome) {
  std::cout << expression << " = ";
  if (outcome.ok()) {
    std::cout << outcome.stdout_bytes;  // with its newline
    return;
  }
  // A note says what the sandbox did and why ("… exceeded the 64M memory limit …").
  std::cout << sbx::collect::status_name(outcome.status) << ": "
            << (outcome.notes.empty() ? last_line(outcome.stderr_bytes) : outcome.notes[0].text)
            << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  auto sandbox = open_sandbox();
  if (!sandbox) return fail(sandbox.error());
  for (int i = 1; i < argc; ++i) {
    sbx::plan::Request request;
    request.language = "python";
    request.code = kProgram;
    request.args = {argv[i]};
    const auto outcome = sandbox->run(request);
    if (!outcome) return fail(outcome.error());
    print(argv[i], *outcome);
  }
  return 0;
}
