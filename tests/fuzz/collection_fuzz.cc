// The supervisor's half of the collection against any sequence of packets, with and without
// descriptors: it ends, takes no file under a name that leaves the tree, and no more of it than was
// announced.
//
// An input is pieces: a byte for the descriptors, one for the length, and the packet.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "runtime/base/sys.h"
#include "runtime/collect/collection.h"
#include "runtime/collect/names.h"
#include "tests/fuzz/entry.h"
#include "tests/support/rendered_path.h"

namespace {

using sbx::fuzz::require;

constexpr int kMaxPieces = 64;
constexpr std::string_view kContent = "content";

// Two regular files and what is none.
struct Descriptors {
  Descriptors() {
    auto seven = sbx::sys::sealed_memfd(
        "seven", {reinterpret_cast<const std::uint8_t*>(kContent.data()), kContent.size()}, false);
    auto empty = sbx::sys::sealed_memfd("empty", {}, false);
    auto null = sbx::sys::open("/dev/null", O_RDONLY);
    require(seven && empty && null);
    file = std::move(*seven);
    empty_file = std::move(*empty);
    device = std::move(*null);
  }
  sbx::UniqueFd file, empty_file, device;
};

std::vector<int> choose(std::uint8_t choice) {
  static const Descriptors all;
  switch (choice % 5) {
    case 0:
      return {};
    case 1:
      return {all.empty_file.get()};
    case 2:
      return {all.device.get()};
    case 3:
      return {all.file.get(), all.file.get()};
    default:
      return {all.file.get()};
  }
}

void judge(sbx::collect::Collection& collection) {
  for (const sbx::collect::CollectedFile& file : collection.files()) {
    require(sbx::collect::is_plain_relative_path(file.raw_path));
    require(sbx::test::is_utf8(file.path));
    require(file.content && file.content->size() == file.size && file.sha256.size() == 64);
    require(file.size == 0 || *file.content == kContent);
  }
  for (const sbx::collect::RefusedEntry& entry : collection.refused()) {
    require(sbx::test::is_utf8(entry.path) && !entry.reason.empty());
  }
  require(collection.limits_hit().size() <= 4);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto sockets = sbx::sys::seqpacket_pair();
  require(sockets.has_value());
  sbx::collect::Collection collection(std::move(sockets->first), sbx::collect::content_sink());
  sbx::fuzz::Bytes input(data, size);
  bool over = false;
  for (int i = 0; i < kMaxPieces && !over; ++i) {
    if (input.empty()) sockets->second.reset();
    if (sockets->second) {
      const std::vector<int> fds = choose(input.byte());
      const std::string_view packet = input.take(input.byte());
      require(sbx::sys::send_packet(
                  sockets->second.get(),
                  {reinterpret_cast<const std::uint8_t*>(packet.data()), packet.size()}, fds)
                  .has_value());
    }
    const auto done = collection.step();
    over = !done || *done;
  }
  judge(collection);
  return 0;
}
