// Network: every way out, counted from outside. The lines that a single probe can show are in the
// catalogue (catalogue_test.cc).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "runtime/base/sys.h"
#include "tests/adversarial/arena.h"
#include "tests/adversarial/throw_away.h"

namespace sbx::test {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string> kWaysOut = {
    "udp", "192.0.2.1",  "tcp", "192.0.2.1 443",      "dns", "192.0.2.53",      "dns", "127.0.0.1",
    "dns", "127.0.0.53", "tcp", "169.254.169.254 80", "tcp", "127.0.0.1 22",    "udp", "::1",
    "dns", "::1",        "dns", "2001:db8::53",       "tcp", "2001:db8::1 443", "tcp", "::1 80"};

std::vector<std::string> each_way_out() {
  std::vector<std::string> words = {"each"};
  words.insert(words.end(), kWaysOut.begin(), kWaysOut.end());
  return words;
}

// What the kernel counts in the net namespace behind a descriptor, read by a process that joins it:
// /proc/net/dev, snmp and snmp6.
std::string counters_of(int net_namespace) {
  auto pipe = sys::pipe();
  EXPECT_TRUE(pipe);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setns(net_namespace, CLONE_NEWNET) != 0) ::_exit(1);
    for (const char* const name : {"dev", "snmp", "snmp6"}) {
      const std::string text = read_text(std::string("/proc/self/net/") + name);
      if (!sys::write_all(pipe->second.get(), text)) ::_exit(1);
    }
    ::_exit(0);
  }
  pipe->second.reset();
  const auto text = sys::read_all(pipe->first.get(), 1 << 20);
  int status = -1;
  (void)::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0) << "the namespace could not be read";
  return text ? *text : "";
}

// /proc/net/snmp has a line of names and one of values for each protocol, snmp6 a pair a line.
std::map<std::string, long> parsed(const std::string& counters) {
  std::map<std::string, long> values;
  std::map<std::string, std::string> names;
  std::istringstream lines(counters);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "lo:") {
      long received_bytes = 0, skipped = 0;
      words >> received_bytes >> values["lo received"];
      for (int i = 0; i < 6; ++i) words >> skipped;
      words >> skipped >> values["lo sent"];
    } else if (first.ends_with(":") && !names.contains(first)) {
      names[first] = line;
    } else if (first.ends_with(":")) {
      std::istringstream header(names[first]);
      std::string name;
      header >> name;
      for (long value = 0; header >> name && words >> value;) values[first + name] = value;
    } else if (long value = 0; words >> value) {
      values[first] = value;
    }
  }
  return values;
}

class Network : public AdversarialTest {
 protected:
  void SetUp() override {
    AdversarialTest::SetUp();
    if (!IsSkipped() && ::geteuid() != 0) {
      GTEST_SKIP() << "only root may join a run's net namespace to count";
    }
  }
};

TEST_F(Network, SendsNoPacketWhateverIsTried) {
  auto input = sys::pipe();
  ASSERT_TRUE(input);
  plan::Request request = Arena::probe("wait");
  request.argv.pop_back();
  const auto ways = each_way_out();
  request.argv.insert(request.argv.end(), ways.begin(), ways.end());
  RunHooks hooks;
  hooks.stdin_fd = input->first.get();
  auto run = arena().sandbox().start(request, Weakening{}, std::move(hooks));
  ASSERT_TRUE(run) << to_string(run.error());
  // Once init has joined it: the spawner's own is the caller's.
  const std::string own = std::filesystem::read_symlink("/proc/self/ns/net").string();
  UniqueFd held;
  for (int i = 0; i < 1000 && !held && !(*run)->done(); ++i) {
    turn(**run, std::chrono::milliseconds(20));
    const std::string path = "/proc/" + std::to_string(arena().init_pid()) + "/ns/net";
    std::error_code gone;
    if (std::filesystem::read_symlink(path, gone).string() == own || gone) continue;
    held.reset(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  ASSERT_TRUE(held) << "the run's net namespace was not found";
  input->second.reset();
  ASSERT_TRUE(drive(**run));
  const auto outcome = (*run)->take_outcome();
  ASSERT_TRUE(outcome.ok()) << collect::to_json(outcome);
  EXPECT_THAT(outcome.stdout_bytes, ::testing::Not(HasSubstr("\"errno\": 0,")));
  const auto counted = parsed(counters_of(held.get()));
  EXPECT_GT(counted.at("Ip:OutNoRoutes"), 0) << "the control: the ways were tried";
  for (const char* const name :
       {"lo received", "lo sent", "Ip:OutRequests", "Ip:InReceives", "Udp:OutDatagrams",
        "Tcp:OutSegs", "Icmp:OutMsgs", "Ip6OutRequests", "Ip6InReceives", "Udp6OutDatagrams",
        "Icmp6OutMsgs"}) {
    EXPECT_EQ(counted.at(name), 0) << name;
  }
}

// The control: the same ways in a network where every address is answered.
TEST_F(Network, IsCountedWhereThereIsAWay) {
  auto words = each_way_out();
  words.insert(words.end(), {"interfaces", ""});
  const auto ended = run_thrown_away(arena().ground(), SBX_PROBE_PATH, words);
  ASSERT_TRUE(ended) << to_string(ended.error());
  EXPECT_EQ(ended->status, 0) << ended->out;
  EXPECT_THAT(ended->out, HasSubstr("\"probe\": \"interfaces\", \"errno\": 0, \"value\": \"lo\""));
  EXPECT_THAT(ended->out, HasSubstr("\"probe\": \"dns\", \"errno\": 0"));
}

// The C library's own resolver, of the host, in a run that has the host's libraries.
class Resolver : public AdversarialTest {
 protected:
  Resolver() : AdversarialTest("host") {}
  std::string answer_of(const std::string& name) {
    plan::Request request;
    request.files.push_back({"resolve_name", read_text(SBX_RESOLVE_NAME_PATH)});
    request.argv = {"/input/resolve_name", name};
    const auto outcome = arena().run(request);
    if (!outcome) return to_string(outcome.error());
    return outcome->ok() ? outcome->stdout_bytes : collect::to_json(*outcome);
  }
};

TEST_F(Resolver, FindsNoNameBeyondThoseOfItsOwnFile) {
  EXPECT_EQ(answer_of("localhost"), "found\n") << "the control: the resolver works";
  EXPECT_THAT(answer_of("example.com"), HasSubstr("not found"));
}

}  // namespace
}  // namespace sbx::test
