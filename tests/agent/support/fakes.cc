#include "tests/agent/support/fakes.h"

#include <cstdlib>

namespace agentd::test {
namespace {

store::Database open_database(const std::string& directory) {
  auto database = store::Database::open({.path = directory + "/agentd.db"});
  if (!database) std::abort();
  return *std::move(database);
}

ledger::Book open_book(store::Database database) {
  auto book =
      ledger::Book::open(std::move(database), {.owner = "test",
                                               .is_alive = [](const std::string&) { return true; },
                                               .now = [] { return 0; }});
  if (!book) std::abort();
  return *std::move(book);
}

}  // namespace

providers::Completion reply_with(const std::string& code, providers::Usage usage) {
  return {.text = "```python\n" + code + "\n```",
          .finish = providers::Finish::kStop,
          .finish_reason = "stop",
          .usage = usage};
}

sandbox::SandboxInfo shipped_info() {
  constexpr std::uint64_t kMiB = 1U << 20;
  sandbox::SandboxInfo info{.version = "0.1.0"};
  info.languages = {
      {.name = "bash", .aliases = {"sh"}, .file = "/code/main.sh"},
      {.name = "javascript",
       .aliases = {"node", "js"},
       .file = "/code/main.js",
       .syntax_error_pattern = "^SyntaxError: "},
      {.name = "python",
       .file = "/code/main.py",
       .packages = {{"numpy", "1.24.2"}, {"pandas", "1.5.3"}, {"matplotlib", "3.6.3"}},
       .syntax_error_pattern = "^(SyntaxError|IndentationError|TabError): "}};
  info.wall_seconds = 30;
  info.cpus = 0.5;
  info.memory = 256 * kMiB;
  info.pids = 64;
  info.input = 64 * kMiB;
  info.output = 64 * kMiB;
  info.work = 64 * kMiB;
  info.tmp = 64 * kMiB;
  info.stdout_bytes = kMiB / 16;
  info.stdout_most = kMiB;
  return info;
}

sandbox::InfoOutcome known(sandbox::SandboxInfo info) {
  return std::make_shared<const sandbox::SandboxInfo>(std::move(info));
}

sandbox::RunResult ok_run(const std::string& out, double seconds) {
  return {.id = "run", .status = "ok", .duration_seconds = seconds, .out = out};
}

sandbox::RunResult failed_run(const std::string& err, double seconds) {
  return {.id = "run", .status = "exit", .exit_code = 1, .duration_seconds = seconds, .err = err};
}

TestLedger::TestLedger(sbx::async::Loop& loop)
    : database(open_database(directory.path())),
      book(open_book(database)),
      queue(loop, database),
      ledger(book, queue) {}

sbx::async::Task<void> TestLedger::written() {
  (void)co_await ledger.make_up();
  auto nothing = [] { return true; };
  (void)co_await queue.run(nothing);
}

}  // namespace agentd::test
