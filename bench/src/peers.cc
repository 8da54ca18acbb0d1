// sbx-bench-peers: the attacks of `sbx-run selftest` against sbx-run, bubblewrap and crun, side by
// side. bench/peers builds and runs it; README.md says what the table means.
//
// All three run as the same throw-away user, so that whatever an attack reaches is nobody's. Exit:
// 0 measured; 1 not; 2 usage; 77 not to be had here.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "bench/src/cgroup_view.h"
#include "runtime/cli/probe_program.h"
#include "runtime/cli/selftest_control.h"
#include "tests/integration/fixture.h"

namespace sbx::bench {
namespace {

namespace fs = std::filesystem;
using cli::AttackCase;
using cli::Observation;
using nlohmann::ordered_json;
using Words = std::vector<std::string>;

constexpr int kSkipped = 77;
constexpr cli::AttackClass kClasses[] = {cli::AttackClass::kSystemCalls, cli::AttackClass::kViews,
                                         cli::AttackClass::kNetwork, cli::AttackClass::kSettingUp};
const fs::path kImage = "/var/lib/sbx/images/default/current/rootfs";
const char* const kTopLinks[] = {"bin", "lib", "lib64", "sbin"};

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// A directory that the three see as their root, or parts of it: the same image for all.
class Scene {
 public:
  Scene() {
    const fs::path top = directory_.path();
    for (const char* const name : {"input", "bundle", "state", "root"}) {
      fs::create_directory(top / name);
    }
    for (const char* const name : {"proc", "sys", "dev", "tmp", "usr", "etc", "input", "var"}) {
      fs::create_directory(top / "root" / name);
    }
    for (const std::string name : kTopLinks) {
      fs::create_symlink("usr/" + name, top / "root" / name);
    }
    for (const char* const name : {"bundle", "state"}) {
      require(::chown((top / name).c_str(), test::kTestUser, test::kTestUser) == 0, "chown");
    }
    const auto program = cli::probe_program();
    const std::string probe = directory_.write(
        "input/sbx-probe", {reinterpret_cast<const char*>(program.data()), program.size()});
    require(::chmod(probe.c_str(), 0755) == 0, "chmod");
  }

  [[nodiscard]] std::string at(const std::string& name) const {
    return directory_.path() + "/" + name;
  }
  [[nodiscard]] test::ProcessOptions user() const { return test::user_options(directory_); }

 private:
  test::TemporaryDirectory directory_;
};

Words probe_words(const AttackCase& attack, const std::string& argument) {
  return {"/input/sbx-probe", std::string(attack.act), argument};
}

class Peer {
 public:
  explicit Peer(std::string name) : name_(std::move(name)) {}
  virtual ~Peer() = default;
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] virtual Observation attack(const Words& probe) = 0;

 private:
  std::string name_;
};

// What the probe said, where nothing else speaks for it.
Observation observe_output(const test::Finished& finished) {
  Observation seen = cli::parse_probe_line(finished.out);
  if (!seen.answered) {
    seen.trouble = finished.signal != 0 ? "killed by signal " + std::to_string(finished.signal)
                                        : "no answer: " + finished.err;
  }
  return seen;
}

class SbxRun final : public Peer {
 public:
  SbxRun(const Scene& scene, const test::UserGround& user)
      : Peer("sbx-run"), scene_(scene), user_(user) {}

  Observation attack(const Words& probe) override {
    Words words{user_.program(), "--json", "--input", scene_.at("input/sbx-probe"), "--"};
    words.insert(words.end(), probe.begin(), probe.end());
    test::Finished finished = test::run_process(words, scene_.user());
    const auto result = nlohmann::json::parse(finished.out, nullptr, false);
    if (!result.is_object()) return observe_output(finished);
    if (result["status"] == "security") {
      Observation seen;
      for (const auto& denial : result["denials"]) {
        if (denial["tier"] == "hostile") seen.hostile_syscall = denial["syscall"];
      }
      return seen;
    }
    finished.out = result["stdout"];
    Observation seen = observe_output(finished);
    for (const auto& denial : result["denials"]) seen.denied.push_back(denial["syscall"]);
    return seen;
  }

 private:
  const Scene& scene_;
  const test::UserGround& user_;
};

// As its manual's examples and Flatpak's defaults combine it: every namespace, a session of its
// own.
class Bubblewrap final : public Peer {
 public:
  explicit Bubblewrap(const Scene& scene) : Peer("bwrap"), scene_(scene) {}

  Observation attack(const Words& probe) override {
    Words words{"/usr/bin/bwrap", "--unshare-all", "--die-with-parent", "--new-session"};
    for (const char* const name : {"usr", "etc"}) {
      words.insert(words.end(), {"--ro-bind", kImage / name, std::string("/") + name});
    }
    for (const std::string name : kTopLinks) {
      words.insert(words.end(), {"--symlink", "usr/" + name, "/" + name});
    }
    words.insert(words.end(), {"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind",
                               scene_.at("input"), "/input", "--"});
    words.insert(words.end(), probe.begin(), probe.end());
    return observe_output(test::run_process(words, scene_.user()));
  }

 private:
  const Scene& scene_;
};

// What `crun spec --rootless` writes, with the program, the image and the probe put in.
class Crun final : public Peer {
 public:
  explicit Crun(const Scene& scene) : Peer("crun"), scene_(scene) {
    test::ProcessOptions options = scene.user();
    options.directory = scene.at("bundle");
    const test::Finished spec = test::run_process({"/usr/bin/crun", "spec", "--rootless"}, options);
    require(spec.exit_code == 0, "crun spec: " + spec.err);
    config_ = ordered_json::parse(test::read_text(path()));
    config_["process"]["terminal"] = false;
    config_["root"]["path"] = scene.at("root");
    const ordered_json one_id = {{{"containerID", 0}, {"hostID", test::kTestUser}, {"size", 1}}};
    config_["linux"]["uidMappings"] = one_id;
    config_["linux"]["gidMappings"] = one_id;
    bind(kImage / "usr", "/usr");
    bind(kImage / "etc", "/etc");
    bind(scene.at("input"), "/input");
    config_["mounts"].push_back({{"destination", "/tmp"}, {"type", "tmpfs"}, {"source", "tmpfs"}});
  }

  Observation attack(const Words& probe) override {
    config_["process"]["args"] = probe;
    std::ofstream(path()) << config_.dump(2);
    return observe_output(test::run_process(
        {"/usr/bin/crun", "--cgroup-manager=disabled", "--root", scene_.at("state"), "run",
         "--bundle", scene_.at("bundle"), "sbx-bench-" + std::to_string(::getpid())},
        scene_.user()));
  }

 private:
  [[nodiscard]] std::string path() const { return scene_.at("bundle/config.json"); }
  void bind(const std::string& source, const std::string& target) {
    config_["mounts"].push_back({{"destination", target},
                                 {"type", "bind"},
                                 {"source", source},
                                 {"options", {"bind", "ro"}}});
  }

  const Scene& scene_;
  ordered_json config_;
};

enum class Answer { kStopped, kNotStopped, kNoAnswer };

// As selftest expects it, or by another errno than the kernel gives where nothing stands in
// between.
Answer answer_of(const AttackCase& attack, const Observation& seen,
                 const std::optional<Observation>& control) {
  if (!seen.hostile_syscall.empty()) return Answer::kStopped;
  if (!seen.answered) return Answer::kNoAnswer;
  if (cli::matches(attack.expected, seen)) return Answer::kStopped;
  const bool refused = seen.sys_errno != 0 && attack.expected.looks_right == nullptr;
  const bool by_the_kernel = control && control->answered && control->sys_errno == seen.sys_errno;
  return refused && !by_the_kernel ? Answer::kStopped : Answer::kNotStopped;
}

struct Row {
  const AttackCase* attack = nullptr;
  std::string control;
  std::vector<std::string> said;  // in the order of the peers
  std::vector<Answer> answers;
};

std::string cell(const std::string& said, Answer answer) {
  constexpr std::size_t kWidth = 32;
  std::string text = said.size() <= kWidth ? said : said.substr(0, kWidth) + "…";
  std::replace(text.begin(), text.end(), '|', ' ');
  if (answer == Answer::kNotStopped) return "**" + text + "**";
  return answer == Answer::kNoAnswer ? "(" + text + ")" : text;
}

class Comparison {
 public:
  explicit Comparison(std::vector<std::unique_ptr<Peer>> peers) : peers_(std::move(peers)) {}

  void measure(const cli::ControlGround& ground) {
    for (const AttackCase& attack : cli::attack_cases()) {
      const auto control = cli::run_control(attack, ground);
      Row row{&attack, control ? cli::describe(*control) : "-", {}, {}};
      const Words probe = probe_words(attack, ground.resolve(attack.argument));
      std::vector<Observation> seen;
      for (const auto& peer : peers_) seen.push_back(peer->attack(probe));
      // The last of them is ours: where selftest calls a case not applicable, nobody is judged.
      if (cli::judge(attack, seen.back(), control) == cli::CaseState::kNotApplicable) {
        ++not_applicable_;
        continue;
      }
      for (const Observation& one : seen) {
        row.said.push_back(cli::describe(one));
        row.answers.push_back(answer_of(attack, one, control));
      }
      rows_.push_back(std::move(row));
    }
  }

  void print() const {
    print_head("stopped, of");
    for (const cli::AttackClass each : kClasses) print_class(each);
    std::printf("\n%d attacks are not applicable here\n\n", not_applicable_);
    print_head("attack | outside");
    for (const Row& row : rows_) {
      std::printf("| %s | %s |", std::string(row.attack->name).c_str(),
                  cell(row.control, Answer::kStopped).c_str());
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        std::printf(" %s |", cell(row.said[i], row.answers[i]).c_str());
      }
      std::printf("\n");
    }
  }

  void write_json(const std::string& path) const {
    ordered_json rows = ordered_json::array();
    for (const Row& row : rows_) {
      ordered_json peers = ordered_json::object();
      for (std::size_t i = 0; i < peers_.size(); ++i) {
        peers[peers_[i]->name()] = {{"said", row.said[i]},
                                    {"stopped", row.answers[i] == Answer::kStopped}};
      }
      rows.push_back({{"class", cli::attack_class_name(row.attack->attack_class)},
                      {"attack", row.attack->name},
                      {"outside", row.control},
                      {"peers", peers}});
    }
    const ordered_json document = {{"attacks", rows}, {"not_applicable", not_applicable_}};
    std::ofstream(path) << document.dump(2, ' ', false, ordered_json::error_handler_t::replace)
                        << "\n";
  }

 private:
  void print_head(const std::string& columns) const {
    std::string line = "|---|";
    for (const char c : columns)
      if (c == '|') line += "---|";
    std::printf("| %s |", columns.c_str());
    for (const auto& peer : peers_) {
      std::printf(" %s |", peer->name().c_str());
      line += "---|";
    }
    std::printf("\n%s\n", line.c_str());
  }

  void print_class(cli::AttackClass each) const {
    const auto is_of_it = [each](const Row& row) { return row.attack->attack_class == each; };
    std::printf("| %s, %td |", std::string(cli::attack_class_name(each)).c_str(),
                std::count_if(rows_.begin(), rows_.end(), is_of_it));
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      std::printf(" %td |", std::count_if(rows_.begin(), rows_.end(), [&](const Row& row) {
                    return is_of_it(row) && row.answers[i] == Answer::kStopped;
                  }));
    }
    std::printf("\n");
  }

  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Row> rows_;
  int not_applicable_ = 0;
};

// Why nothing can be measured here, or empty.
std::string trouble(const test::UserGround& user) {
  if (::geteuid() != 0) return "takes root, to become a user that is nobody's";
  if (!user.trouble().empty()) return user.trouble();
  for (const char* const program : {"/usr/bin/bwrap", "/usr/bin/crun"}) {
    if (::access(program, X_OK) != 0) return std::string(program) + " is not installed";
  }
  return fs::exists(kImage) ? "" : "no image: build it with scripts/image";
}

int compare(const std::string& json) {
  if (const auto hidden = hide_hybrid_cgroup2(); !hidden) {
    throw std::runtime_error(to_string(hidden.error()));
  }
  const test::UserGround user;
  if (const std::string why = trouble(user); !why.empty()) {
    std::fprintf(stderr, "peers: %s\n", why.c_str());
    return kSkipped;
  }
  const Scene scene;
  const auto ground = cli::ControlGround::prepare();
  require(ground.has_value(), "the controls' ground cannot be made");
  std::vector<std::unique_ptr<Peer>> peers;
  peers.push_back(std::make_unique<Bubblewrap>(scene));
  peers.push_back(std::make_unique<Crun>(scene));
  peers.push_back(std::make_unique<SbxRun>(scene, user));
  Comparison comparison(std::move(peers));
  comparison.measure(*ground);
  comparison.print();
  if (!json.empty()) comparison.write_json(json);
  return 0;
}

}  // namespace
}  // namespace sbx::bench

int main(int argc, char** argv) {
  const bool json = argc == 3 && std::string_view(argv[1]) == "--json";
  if (argc != 1 && !json) {
    (void)std::fputs("usage: sbx-bench-peers [--json FILE]\n", stderr);
    return 2;
  }
  try {
    return sbx::bench::compare(json ? argv[2] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peers: %s\n", error.what());
    return 1;
  }
}
