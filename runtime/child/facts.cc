#include "runtime/child/facts.h"

#include <asm-generic/errno.h>

#include "runtime/child/kernel.h"

namespace sbx::child {
namespace {

// struct statfs on 64-bit kernels, in words.
constexpr std::size_t kBlockSize = 1;
constexpr std::size_t kBlocksFree = 3;
constexpr std::size_t kInodesFree = 6;

void report_storage(Context& context, std::uint32_t index, const plan::FlatTmpfs& tmpfs) {
  if (tmpfs.limit.size == 0) return;
  std::uint64_t info[16] = {};
  if (sys(__NR_statfs, context.text(tmpfs.target), info) < 0) return;
  if (info[kBlocksFree] != 0 && info[kInodesFree] != 0) return;
  plan::Record record;
  record.kind = plan::RecordKind::kInformation;
  record.step = Step::kFactStorage;
  record.nr = index;
  record.count = info[kBlocksFree] * info[kBlockSize];
  const std::uint64_t inodes = info[kInodesFree];
  record.status = static_cast<std::int32_t>(inodes > 0x7fffffff ? 0x7fffffff : inodes);
  report(record);
}

// The value of OutNoRoutes: the 12th of the second "Ip:" line of /proc/net/snmp (proc_net(5)).
constexpr int kOutNoRoutesField = 12;

std::uint64_t parse_no_routes(const char* text, std::size_t size) {
  std::size_t at = 0;
  while (at < size && text[at] != '\n') ++at;  // the line of names
  std::uint64_t value = 0;
  int field = 0;
  for (++at; at < size && text[at] != '\n'; ++at) {
    if (text[at] == ' ') {
      if (++field > kOutNoRoutesField) break;
      value = 0;
    } else if (text[at] >= '0' && text[at] <= '9') {
      value = value * 10 + static_cast<std::uint64_t>(text[at] - '0');
    }
  }
  return field >= kOutNoRoutesField ? value : 0;
}

void report_network(Context& context) {
  if (context.network < 0) return;
  char text[1024];
  const Word got = sys(__NR_read, context.network, text, sizeof text);
  if (got <= 0) return;
  const std::uint64_t packets = parse_no_routes(text, static_cast<std::size_t>(got));
  if (packets == 0) return;
  plan::Record record;
  record.kind = plan::RecordKind::kInformation;
  record.step = Step::kFactNetwork;
  record.count = packets;
  report(record);
}

// kill(-1, 0) finds every process we could name but ourselves; EPERM says there is one.
void report_background() {
  if (sys(__NR_kill, -1, 0) == -ESRCH) return;
  plan::Record record;
  record.kind = plan::RecordKind::kInformation;
  record.step = Step::kFactBackground;
  report(record);
}

}  // namespace

// What is in them is of the moment in which they are read.
void prepare_facts(Context& context) {
  if (context.proc < 0) return;
  const auto open = [&](const char* path) {
    return static_cast<int>(sys(__NR_openat, context.proc, path, kOpenReadOnly | kOpenCloexec, 0));
  };
  if (context.plan->has_netns != 0) context.network = open("self/net/snmp");
  context.locks = open("locks");
  close_fd(context.proc);
  context.proc = -1;
}

void report_facts(Context& context) {
  for (std::uint32_t i = 0; i < context.plan->tmpfs_count; ++i) {
    report_storage(context, i, context.plan->tmpfs[i]);
  }
  report_storage(context, plan::kMaxTmpfs, context.plan->shm);
  report_network(context);
  report_background();
}

}  // namespace sbx::child
