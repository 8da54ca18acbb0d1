// What a program leaves for a collector to trip over: in /output inside; outside, in the tmpfs that
// the control has over /etc, and then taken by name, as one who is not careful does.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

// Whatever terminals and shells act on, and what is no UTF-8.
constexpr const char* kHardName = "-rf\n\x1b]0;owned\a\xff";

long write_file(const char* name, const char* content, std::size_t size) {
  const int fd = ::open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return -1;
  const ssize_t put = ::write(fd, content, size);
  (void)::close(fd);
  return put == static_cast<ssize_t>(size) ? 0 : -1;
}

long write_file(const char* name, const char* content) {
  return write_file(name, content, std::strlen(content));
}

// Whoever swaps "thing" for the link and back; outside nothing else ends it.
pid_t swapper = 0;

// "thing" is the file, then the link, and so on, for as long as the run takes.
long plant_swapped() {
  if (write_file("mine", "mine") < 0 || ::symlink("/proc/version", "thing") < 0) return -1;
  int started[2];
  if (::pipe2(started, O_CLOEXEC) != 0) return -1;
  swapper = ::fork();
  if (swapper < 0) return -1;
  if (swapper == 0) {
    (void)::alarm(60);  // where the parent is gone already
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) ::_exit(1);
    for (long round = 0;; ++round) {
      (void)::renameat2(AT_FDCWD, "thing", AT_FDCWD, "mine", RENAME_EXCHANGE);
      if (round == 100) (void)!::write(started[1], "x", 1);
    }
  }
  char byte = 0;
  return ::read(started[0], &byte, 1) == 1 ? 0 : -1;
}

long plant_hard_link() {
  return write_file("one", "two names") < 0 ? -1 : ::link("one", "thing");
}

// In the directory that is the current one.
long plant(const char* kind) {
  if (std::strcmp(kind, "link") == 0) return ::symlink("/proc/version", "thing");
  if (std::strcmp(kind, "up") == 0) return ::symlink("../../../../proc/version", "thing");
  if (std::strcmp(kind, "through") == 0) {
    return ::symlink("/proc/self/root/proc/version", "thing");
  }
  if (std::strcmp(kind, "directory") == 0) return ::symlink("/proc", "thing");
  if (std::strcmp(kind, "hard") == 0) return plant_hard_link();
  if (std::strcmp(kind, "pipe") == 0) return ::mkfifo("thing", 0666);
  if (std::strcmp(kind, "name") == 0) return write_file(kHardName, "named");
  if (std::strcmp(kind, "swapped") == 0) return plant_swapped();
  errno = EINVAL;
  return -1;
}

bool lists_hard_name() {
  DIR* const directory = ::opendir(".");
  if (directory == nullptr) return false;
  bool found = false;
  while (const dirent* const entry = ::readdir(directory)) {
    found = found || std::strcmp(entry->d_name, kHardName) == 0;
  }
  (void)::closedir(directory);
  return found;
}

bool opens(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) (void)::close(fd);
  return fd >= 0;
}

// Looked at as a file, and then opened: as the link. It pauses between the two, so that the
// swapper runs then, even where both share one busy CPU.
bool is_fooled_by_swapping() {
  bool fooled = false;
  const std::time_t end = ::time(nullptr) + 8;  // the control has 10
  while (!fooled && ::time(nullptr) < end) {
    struct stat looked{}, taken{};
    if (::lstat("thing", &looked) != 0) continue;
    (void)::usleep(100);
    if (::stat("thing", &taken) != 0) continue;
    fooled = S_ISREG(looked.st_mode) && taken.st_dev != looked.st_dev;
  }
  (void)::kill(swapper, SIGKILL);
  return fooled;
}

bool takes(const char* kind) {
  if (std::strcmp(kind, "name") == 0) return lists_hard_name();
  if (std::strcmp(kind, "directory") == 0) return opens("thing/version");
  if (std::strcmp(kind, "swapped") == 0) return is_fooled_by_swapping();
  return opens("thing");
}

// `argument`: the kind.
void act_plant(const char* argument, Answer& answer) {
  if (::chdir("/output") != 0 || write_file("good.txt", "good") < 0) return note(answer, -1);
  note(answer, plant(argument));
}

void act_plant_and_take(const char* argument, Answer& answer) {
  if (::chdir("/etc") != 0 || plant(argument) < 0) return note(answer, -1);
  (void)std::snprintf(answer.value, sizeof answer.value,
                      takes(argument) ? "taken by name" : "not taken");
}

// `argument`: "FILES BYTES": so many files of that length, without content.
void act_leave_files(const char* argument, Answer& answer) {
  int count = 0;
  long size = 0;
  (void)std::sscanf(argument, "%d %ld", &count, &size);
  if (::chdir("/output") != 0) return note(answer, -1);
  for (int i = 0; i < count && answer.error == 0; ++i) {
    char name[32];
    (void)std::snprintf(name, sizeof name, "file%d", i);
    const int fd = ::open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    note(answer, fd < 0 ? fd : ::ftruncate(fd, size));
    if (fd >= 0) (void)::close(fd);
  }
}

// `argument`: so many directories, each in the one before, and a file in the last.
void act_leave_tree(const char* argument, Answer& answer) {
  if (::chdir("/output") != 0 || write_file("good.txt", "good") < 0) return note(answer, -1);
  for (int i = std::atoi(argument); i > 0 && answer.error == 0; --i) {
    note(answer, ::mkdir("deep", 0755) < 0 ? -1 : ::chdir("deep"));
  }
  if (answer.error == 0) note(answer, write_file("bottom.txt", "bottom"));
}

}  // namespace

const Act kPlants[] = {
    {"plant", act_plant},
    {"plant_and_take", act_plant_and_take},
    {"leave_files", act_leave_files},
    {"leave_tree", act_leave_tree},
    {nullptr, nullptr},
};

}  // namespace sbx::probe
