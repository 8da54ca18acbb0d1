// What a run's own processes tell the supervisor, in any order and cut anywhere: records on init's
// report pipe, the spawner's answers, the payload's output. The supervision ends, with a bounded
// account, and no lie turns into a success.
//
// An input is pieces: a byte that chooses the channel, one for the length, and the bytes.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "runtime/base/sys.h"
#include "runtime/collect/make_outcome.h"
#include "runtime/supervise/supervision.h"
#include "tests/fuzz/entry.h"

namespace {

using sbx::fuzz::require;

constexpr int kMaxPieces = 64;
constexpr int kMaxStepsToEnd = 64;
constexpr std::size_t kMaxDenied = 64;

sbx::plan::Plan make_small_plan() {
  sbx::plan::Plan plan;
  plan.argv = {"program"};
  plan.policy.limits.stdout_bytes = plan.policy.limits.stderr_bytes = 64;
  for (const char* const limit : {"tmp", "work"}) plan.tmpfs.emplace_back().limit = limit;
  plan.shm.limit = "shm";
  return plan;
}

const sbx::plan::Plan& small_plan() {
  static const sbx::plan::Plan plan = make_small_plan();
  return plan;
}

// The other ends of what the supervision holds.
struct Peers {
  sbx::UniqueFd control, report, out, err;
};

sbx::spawn::Child make_child(Peers& peers) {
  sbx::spawn::Child child;
  auto control = sbx::sys::seqpacket_pair();
  auto report = sbx::sys::pipe(O_NONBLOCK);
  auto out = sbx::sys::pipe(O_NONBLOCK);
  auto err = sbx::sys::pipe(O_NONBLOCK);
  require(control && report && out && err);
  child.control = std::move(control->first);
  peers.control = std::move(control->second);
  child.report = std::move(report->first);
  peers.report = std::move(report->second);
  child.out = std::move(out->first);
  peers.out = std::move(out->second);
  child.err = std::move(err->first);
  peers.err = std::move(err->second);
  child.launched = std::chrono::steady_clock::now();
  return child;
}

void step(sbx::supervise::Supervision& supervision) {
  std::vector<pollfd> fds;
  supervision.add_interest(fds);
  int ready = -1;
  do {
    ready = ::poll(fds.data(), fds.size(), 0);
  } while (ready < 0 && errno == EINTR);  // libFuzzer's timer
  require(ready >= 0);
  supervision.step(fds);
}

void write_to(const sbx::UniqueFd& fd, std::string_view bytes) {
  // A full pipe or a reader that has stopped reading: as it may happen to init.
  [[maybe_unused]] const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
}

// With the descriptor of no process where a launch passes init's.
void answer(const Peers& peers, std::string_view bytes, bool whole) {
  static const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  sbx::spawn::AnswerPacket packet;
  std::memcpy(&packet, bytes.data(), std::min(bytes.size(), sizeof packet));
  const std::size_t size = whole ? sizeof packet : bytes.size();
  const auto* const from = whole ? reinterpret_cast<const std::uint8_t*>(&packet)
                                 : reinterpret_cast<const std::uint8_t*>(bytes.data());
  const bool launched = packet.kind == sbx::spawn::AnswerKind::kLaunched;
  // Whether the supervision still listens is its own affair.
  (void)sbx::sys::send_packet(peers.control.get(), {from, size}, {&null, launched ? 1U : 0U});
}

void play(sbx::supervise::Supervision& supervision, const Peers& peers, sbx::fuzz::Bytes input) {
  for (int i = 0; i < kMaxPieces && !input.empty() && !supervision.ended(); ++i) {
    const std::uint8_t channel = input.byte();
    const std::string_view bytes = input.take(input.byte());
    switch (channel % 8) {
      case 0:
        write_to(peers.out, bytes);
        break;
      case 1:
        write_to(peers.err, bytes);
        break;
      case 2:
        answer(peers, bytes, true);
        break;
      case 3:
        answer(peers, bytes, false);
        break;
      default:
        write_to(peers.report, bytes);
    }
    step(supervision);
  }
}

void judge(const sbx::supervise::Ending& ending) {
  require(ending.denied.size() <= kMaxDenied);
  require(ending.storage.size() <= small_plan().tmpfs.size() + 1);
  require(ending.layer_failures.size() <= static_cast<std::size_t>(sbx::plan::Step::kCount));
  require(ending.out.head.size() + ending.out.tail.size() <= 64);
  const auto outcome = sbx::collect::make_outcome(ending, {});
  const bool exited_well = ending.payload_wait_status == 0;
  const bool nothing_else = !ending.failure && !ending.hostile && ending.exec_reached;
  require(!outcome.ok() || (exited_well && nothing_else));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)::signal(SIGPIPE, SIG_IGN);
  Peers peers;
  sbx::supervise::SupervisionOptions options;
  options.plan = &small_plan();
  sbx::supervise::Supervision supervision(make_child(peers), std::move(options));
  play(supervision, peers, {data, size});
  peers = {};
  for (int i = 0; i < kMaxStepsToEnd && !supervision.ended(); ++i) step(supervision);
  require(supervision.ended());
  judge(supervision.take_ending());
  return 0;
}
