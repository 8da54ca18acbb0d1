// The one who saves a workspace against any sequence of packets, with and without descriptors: it
// ends, writes below the new generation alone, and what it says of its size is what is there.
//
// An input is pieces: a byte for the descriptors, two for the length, and the packet. Where a
// packet is long enough, its sizes are made to fit, so that more of them are looked into.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/sys.h"
#include "runtime/workspace/generation.h"
#include "runtime/workspace/tree.h"
#include "runtime/workspace/wire.h"
#include "tests/fuzz/entry.h"

namespace {

using sbx::fuzz::require;
using sbx::workspace::wire::Record;

constexpr int kMaxPieces = 48;

// A place on a tmpfs: an old generation, and what must never change.
struct Ground {
  Ground() {
    std::string path = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/test-sbx-fuzz-XXXXXX"
                                                       : "/tmp/test-sbx-fuzz-XXXXXX";
    require(::mkdtemp(path.data()) != nullptr);
    auto opened = sbx::sys::open(path, O_RDONLY | O_DIRECTORY);
    require(opened.has_value());
    top = std::move(*opened);
    make_file("outside", "outside");
    require(::mkdirat(top.get(), "old", 0700) == 0);
    require(::mkdirat(top.get(), "old/d", 0755) == 0);
    make_file("old/f", "content");
    require(::symlinkat("../outside", top.get(), "old/link") == 0);
    auto old_tree = sbx::sys::open_at(top.get(), "old", O_RDONLY | O_DIRECTORY);
    auto some_file = sbx::sys::open_at(top.get(), "old/f", O_RDONLY);
    auto null = sbx::sys::open("/dev/null", O_RDONLY);
    require(old_tree && some_file && null);
    old = std::move(*old_tree);
    file = std::move(*some_file);
    device = std::move(*null);
    place = path;
  }
  ~Ground() {
    (void)sbx::workspace::remove_tree(top.get(), "old");
    (void)::unlinkat(top.get(), "outside", 0);
    (void)::rmdir(place.c_str());
  }
  void make_file(const char* name, std::string_view content) const {
    const auto made = sbx::sys::open_at(top.get(), name, O_WRONLY | O_CREAT, 0644);
    require(made && sbx::sys::write_all(made->get(), content));
  }

  sbx::UniqueFd top, old, file, device;
  std::string place;
};

std::vector<int> choose(const Ground& ground, std::uint8_t choice) {
  switch (choice % 5) {
    case 0:
      return {};
    case 1:
      return {ground.device.get()};
    case 2:
      return {ground.old.get()};
    case 3:
      return {ground.file.get(), ground.file.get()};
    default:
      return {ground.file.get()};
  }
}

void make_sizes_fit(std::string& packet) {
  if (packet.size() < sizeof(Record)) return;
  Record record;
  std::memcpy(&record, packet.data(), sizeof record);
  const std::size_t text = packet.size() - sizeof record;
  record.path_size = static_cast<std::uint32_t>(record.path_size % (text + 1));
  record.target_size = static_cast<std::uint32_t>(text - record.path_size);
  record.mode &= 0777U;
  std::memcpy(packet.data(), &record, sizeof record);
}

void send_all(const Ground& ground, const sbx::UniqueFd& socket, sbx::fuzz::Bytes input) {
  for (int i = 0; i < kMaxPieces && !input.empty(); ++i) {
    const std::uint8_t head = input.byte();
    std::string packet(input.take(input.value<std::uint16_t>() % 300));
    if ((head & 0x80U) == 0) make_sizes_fit(packet);
    if (packet.empty()) continue;
    const auto sent = sbx::sys::send_packet(
        socket.get(), {reinterpret_cast<const std::uint8_t*>(packet.data()), packet.size()},
        choose(ground, head & 0x7fU));
    require(sent.has_value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Ground ground;
  require(::mkdirat(ground.top.get(), "next", 0700) == 0);
  auto sockets = sbx::sys::seqpacket_pair();
  const auto next = sbx::sys::open_at(ground.top.get(), "next", O_RDONLY | O_DIRECTORY);
  const auto old_size = sbx::workspace::measure(ground.old.get());
  require(sockets && next && old_size);
  send_all(ground, sockets->second, sbx::fuzz::Bytes(data, size));
  sockets->second.reset();
  const auto made = sbx::workspace::receive_generation(sockets->first.get(), ground.old.get(),
                                                       *old_size, next->get());
  if (made) {
    const auto measured = sbx::workspace::measure(next->get());
    require(measured && measured->inodes == made->size.inodes);
    require(measured->bytes == made->size.bytes);
  }
  require(sbx::workspace::remove_tree(ground.top.get(), "next").has_value());
  struct stat outside{};
  require(::fstatat(ground.top.get(), "outside", &outside, AT_SYMLINK_NOFOLLOW) == 0);
  require(outside.st_size == 7 && outside.st_nlink == 1 && (outside.st_mode & 07777U) == 0644U);
  const auto again = sbx::workspace::measure(ground.old.get());
  require(again && again->bytes == old_size->bytes && again->inodes == old_size->inodes);
  return 0;
}
