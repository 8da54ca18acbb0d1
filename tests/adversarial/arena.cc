#include "tests/adversarial/arena.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "runtime/cli/probe_program.h"

namespace sbx::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgramDirectory = SBX_TEST_PROGRAMS;

void make_bare_image(const std::string& directory) {
  const fs::path rootfs = fs::path(directory) / "bare/1/rootfs";
  for (const char* name : {"dev", "proc", "tmp", "code", "input", "output", "work", "etc"}) {
    fs::create_directories(rootfs / name);
  }
  fs::create_symlink("1", fs::path(directory) / "bare/current");
}

}  // namespace

Arena::Arena() {
  // What others could write, no image may lie in or below.
  if (::chmod(images_.path().c_str(), 0755) != 0) throw std::runtime_error("chmod");
  make_bare_image(image_directory());
}

Result<std::unique_ptr<Arena>> Arena::open(const std::string& rootfs) {
  std::unique_ptr<Arena> arena(new Arena);
  policy::RuntimeConfig config = arena->ground_.config();
  if (rootfs == "bare") config.image_dir = arena->image_directory();
  SBX_ASSIGN(arena->sandbox_, BreakableSandbox::open(config, rootfs));
  return arena;
}

plan::Request Arena::probe(const std::string& act, const std::string& argument) {
  plan::Request request;
  const auto bytes = cli::probe_program();
  request.files.push_back(
      {"sbx-probe", std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
  request.argv = {"/input/sbx-probe", act, argument};
  return request;
}

plan::Request Arena::program(const std::string& name, std::vector<std::string> arguments) {
  plan::Request request;
  request.files.push_back({name, read_text(std::string(kProgramDirectory) + "/" + name)});
  request.argv = std::move(arguments);
  request.argv.insert(request.argv.begin(), "/input/" + name);
  return request;
}

Result<collect::Outcome> Arena::run(const plan::Request& request, const Weakening& weakening,
                                    RunHooks hooks) {
  return sandbox_->run(request, weakening, std::move(hooks));
}

cli::Observation Arena::attack(const std::string& act, const std::string& argument,
                               const Weakening& weakening) {
  RunHooks hooks;
  hooks.collect = collect::CollectMode::kNone;
  const auto outcome = run(probe(act, argument), weakening, std::move(hooks));
  if (outcome) return cli::observe(*outcome);
  cli::Observation seen;
  seen.trouble = to_string(outcome.error());
  return seen;
}

std::vector<cli::Observation> Arena::each(const std::vector<Trial>& trials,
                                          const Weakening& weakening) {
  plan::Request request = probe("each");
  request.argv.pop_back();
  for (const Trial& trial : trials) {
    request.argv.insert(request.argv.end(), {trial.act, trial.argument});
  }
  RunHooks hooks;
  hooks.collect = collect::CollectMode::kNone;
  const auto outcome = run(request, weakening, std::move(hooks));
  std::istringstream lines(outcome ? outcome->stdout_bytes : "");
  std::vector<cli::Observation> all;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    std::string line;
    std::getline(lines, line);
    all.push_back(cli::parse_probe_line(line));
    if (!outcome) all.back().trouble = to_string(outcome.error());
    if (!outcome || !outcome->ok()) all.back().answered = false;
  }
  return all;
}

pid_t Arena::init_pid() const {
  const std::string spawner = std::to_string(sandbox_->spawner_pid());
  std::ifstream children("/proc/" + spawner + "/task/" + spawner + "/children");
  pid_t pid = -1;
  return children >> pid ? pid : -1;
}

Things Arena::close() {
  sandbox_.reset();
  return ground_.leaked();
}

void AdversarialTest::SetUp() {
  auto opened = Arena::open(rootfs_);
  if (!opened && opened.error().code == ErrorCode::kHost) {
    GTEST_SKIP() << to_string(opened.error()) << "; " << opened.error().fix;
  }
  ASSERT_TRUE(opened) << to_string(opened.error());
  arena_ = *std::move(opened);
}

void AdversarialTest::TearDown() {
  if (!arena_) return;
  const Things left = arena_->close();
  EXPECT_TRUE(left.empty()) << "left over:\n" << to_text(left);
}

}  // namespace sbx::test
