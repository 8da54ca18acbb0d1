// Acts that look at files: what /proc, /dev and the mounts tell.
#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <initializer_list>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

constexpr std::size_t kPathSize = 512;

void say(Answer& answer, const char* text) {
  (void)std::snprintf(answer.value, sizeof answer.value, "%s", text);
}

// "nothing", or the beginning of the file.
void look_file(const char* argument, Answer& answer) {
  const int fd = ::open(argument, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return note(answer, fd);
  const ssize_t got = ::read(fd, answer.value, 40);
  if (got < 0) return note(answer, got);
  if (got == 0) say(answer, "nothing");
}

// "masked" when it is /dev/null. Reads nothing.
void look_masked(const char* argument, Answer& answer) {
  struct stat info{};
  note(answer, ::stat(argument, &info));
  if (answer.error != 0) return;
  const bool null = S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
  say(answer, null ? "masked" : "there");
}

// Asks to be told of what happens to it. A file that nothing ever happens to cannot be watched
// (EPERM).
void look_watch(const char* argument, Answer& answer) {
  const int fd = ::open(argument, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return note(answer, fd);
  epoll_event event{};
  event.events = EPOLLPRI;
  note(answer, ::epoll_ctl(::epoll_create1(EPOLL_CLOEXEC), EPOLL_CTL_ADD, fd, &event));
}

// "empty" for a directory without entries. Also where an old root that was not detached would show
// it.
void look_directory(const char* argument, Answer& answer) {
  char below[kPathSize] = "/code";
  std::strncat(below, argument, sizeof below - std::strlen("/code") - 1);
  const bool found_below = ::access(argument, F_OK) != 0 && ::access(below, F_OK) == 0;
  DIR* const directory = ::opendir(found_below ? below : argument);
  if (directory == nullptr) return note(answer, -1);
  int entries = 0;
  while (const dirent* const entry = ::readdir(directory)) {
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) ++entries;
  }
  (void)::closedir(directory);
  say(answer, entries == 0 ? "empty" : "entries");
}

// How many processes /proc shows besides this one, the one that started it, and pid 1, which is
// asked for by itself.
void look_processes(const char*, Answer& answer) {
  DIR* const directory = ::opendir("/proc");
  if (directory == nullptr) return note(answer, -1);
  int others = 0;
  while (const dirent* const entry = ::readdir(directory)) {
    const long pid = std::strtol(entry->d_name, nullptr, 10);
    if (pid > 1 && pid != ::getpid() && pid != ::getppid()) ++others;
  }
  (void)::closedir(directory);
  (void)std::snprintf(answer.value, sizeof answer.value, "%d", others);
}

using Visit = bool (*)(const char* path, mode_t mode, void* context);  // false: enough seen

// Everything below a directory, no link followed.
bool walk(const char* directory_path, int depth, Visit visit, void* context) {
  DIR* const directory = ::opendir(directory_path);
  if (directory == nullptr) return true;
  bool go_on = true;
  while (const dirent* const entry = go_on ? ::readdir(directory) : nullptr) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    char path[kPathSize];
    const int length = std::snprintf(path, sizeof path, "%s/%s", directory_path, entry->d_name);
    if (length >= static_cast<int>(sizeof path)) continue;
    struct stat info{};  // not d_type, which does not see what is mounted there
    if (::lstat(path, &info) != 0) continue;
    go_on = visit(path, info.st_mode, context);
    if (go_on && S_ISDIR(info.st_mode) && depth > 0) go_on = walk(path, depth - 1, visit, context);
  }
  (void)::closedir(directory);
  return go_on;
}

// The first regular file that opens for writing, of this process's own and of the kernel's
// settings: "none" when there is none. Writes nothing.
void look_writable_proc(const char*, Answer& answer) {
  const Visit visit = [](const char* path, mode_t mode, void* context) {
    if (!S_ISREG(mode)) return true;
    const int fd = ::open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0) return true;
    (void)::close(fd);
    say(*static_cast<Answer*>(context), path);
    return false;
  };
  constexpr int kDeep = 8;
  const bool none = walk("/proc/self", 2, visit, &answer) &&
                    walk("/proc/sys", kDeep, visit, &answer) && walk("/proc", 0, visit, &answer);
  if (none) say(answer, "none");
}

// The names of the device nodes in /dev and below, in order: "full null random urandom zero".
void look_devices(const char*, Answer& answer) {
  struct Names {
    char list[64][24] = {};
    int count = 0;
  } names;
  const Visit visit = [](const char* path, mode_t mode, void* context) {
    auto& found = *static_cast<Names*>(context);
    const bool device = S_ISCHR(mode) || S_ISBLK(mode);
    if (device && found.count < 64) {
      (void)std::snprintf(found.list[found.count++], sizeof found.list[0], "%s",
                          path + std::strlen("/dev/"));
    }
    return found.count < 64;
  };
  (void)walk("/dev", 4, visit, &names);
  std::qsort(names.list, static_cast<std::size_t>(names.count), sizeof names.list[0],
             [](const void* a, const void* b) {
               return std::strcmp(static_cast<const char*>(a), static_cast<const char*>(b));
             });
  for (int i = 0; i < names.count; ++i) {
    const std::size_t used = std::strlen(answer.value);
    (void)std::snprintf(answer.value + used, sizeof answer.value - used, "%s%s", i == 0 ? "" : " ",
                        names.list[i]);
  }
}

// Two hexadecimal digits a byte, up to the '|'; what stands behind it.
const char* decode_word(const char* from, char* word, std::size_t size) {
  std::size_t length = 0;
  unsigned byte = 0;
  for (; length + 1 < size && std::sscanf(from, "%2x", &byte) == 1; from += 2) {
    word[length++] = static_cast<char>(byte);
  }
  word[length] = '\0';
  from += std::strcspn(from, "|");
  return *from == '|' ? from + 1 : from;
}

// Up to the end of file; how many bytes.
std::size_t read_whole(int fd, char* text, std::size_t capacity) {
  std::size_t size = 0;
  while (size < capacity) {
    const ssize_t got = ::read(fd, text + size, capacity - size);
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  return size;
}

// What a process can read of how it was set up. `argument`: words in hexadecimal, each ended by
// '|', or "-" for those on standard input. The first file and word that meet: "maps:
// /home/somebody"; "none".
void look_words(const char* argument, Answer& answer) {
  static char text[256 * 1024];
  static char input[4096];
  if (std::strcmp(argument, "-") == 0) {
    (void)read_whole(STDIN_FILENO, input, sizeof input - 1);
    argument = input;
  }
  say(answer, "none");
  for (const char* const name : {"mountinfo", "mounts", "mountstats", "maps", "smaps", "environ",
                                 "cmdline", "cgroup", "comm", "limits", "status", "stat", "auxv"}) {
    char path[64];
    (void)std::snprintf(path, sizeof path, "/proc/self/%s", name);
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    const std::size_t size = read_whole(fd, text, sizeof text);
    (void)::close(fd);
    char word[256];
    for (const char* next = argument; *next != '\0';) {
      next = decode_word(next, word, sizeof word);
      if (word[0] == '\0' || ::memmem(text, size, word, std::strlen(word)) == nullptr) continue;
      (void)std::snprintf(answer.value, sizeof answer.value, "%s: %s", name, word);
      return;
    }
  }
}

// How many mounts are of a file system whose name begins so. `argument`: "cgroup".
void look_mounts_of(const char* argument, Answer& answer) {
  FILE* const file = std::fopen("/proc/self/mountinfo", "re");
  if (file == nullptr) return note(answer, -1);
  static char line[8192];
  int count = 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    const char* const dash = std::strstr(line, " - ");
    if (dash != nullptr && std::strncmp(dash + 3, argument, std::strlen(argument)) == 0) ++count;
  }
  (void)std::fclose(file);
  (void)std::snprintf(answer.value, sizeof answer.value, "%d", count);
}

void look_hostname(const char*, Answer& answer) {
  utsname name{};
  note(answer, ::uname(&name));
  say(answer, name.nodename);
}

// "fresh" when the machine seems to have been up for less than a minute and a half.
void look_uptime(const char*, Answer& answer) {
  timespec now{};
  note(answer, ::clock_gettime(CLOCK_BOOTTIME, &now));
  if (now.tv_sec < 90) return say(answer, "fresh");
  (void)std::snprintf(answer.value, sizeof answer.value, "%lld s",
                      static_cast<long long>(now.tv_sec));
}

}  // namespace

const Act kViews[] = {
    {"file", look_file},           {"masked", look_masked},
    {"watch", look_watch},         {"directory", look_directory},
    {"processes", look_processes}, {"writable_proc", look_writable_proc},
    {"devices", look_devices},     {"words", look_words},
    {"mounts_of", look_mounts_of}, {"hostname", look_hostname},
    {"uptime", look_uptime},       {nullptr, nullptr},
};

}  // namespace sbx::probe
