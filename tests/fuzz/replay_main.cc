// The main of a fuzz entry in an ordinary build: runs it over each file of a corpus and over each
// beginning of that file, without libFuzzer. A property that does not hold aborts.
//
//   replay-NAME DIRECTORY
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "runtime/base/sys.h"
#include "tests/fuzz/entry.h"

namespace {

constexpr std::size_t kMaxInput = 64 * 1024;
// Beginnings of long inputs are taken in larger steps, so that no file costs more than this many.
constexpr std::size_t kMaxBeginnings = 512;

int replay(const std::string& bytes) {
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const std::size_t step = bytes.size() / kMaxBeginnings + 1;
  int runs = 1;
  for (std::size_t size = 0; size < bytes.size(); size += step, ++runs) {
    (void)LLVMFuzzerTestOneInput(data, size);  // 0 always; what is wrong aborts
  }
  (void)LLVMFuzzerTestOneInput(data, bytes.size());
  return runs;
}

int replay_all(const char* directory) {
  int files = 0;
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const auto bytes = sbx::sys::read_file(entry.path(), kMaxInput);
    if (!bytes) {
      (void)std::fprintf(stderr, "%s\n", to_string(bytes.error()).c_str());
      return 1;
    }
    (void)std::printf("%s\n", entry.path().filename().c_str());
    (void)std::fflush(stdout);  // the last line names the file that aborts
    runs += replay(*bytes);
    ++files;
  }
  (void)std::printf("%d files, %d runs\n", files, runs);
  return files > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    return replay_all(argv[1]);
  } catch (const std::exception& error) {
    (void)std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
