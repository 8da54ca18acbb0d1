// plant KIND …: leaves in /output what a collector must not be fooled by.
//   links           links of every kind, a FIFO, a socket; tries a device; prints what it was
//   refused names           a file for each hard name, its content the name deep            a path
//   of more than 4 kB, a file at its end sparse          a file of 1 TiB that holds nothing meddle
//   a file that is swapped for a link and one that grows, by children that go on
//                   when this program ends
//   files PATH…     a file for each path, its directories made
//   screen          writes terminal escapes to stdout and stderr, and has a file and a link with
//                   such names
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

// Of 255 bytes, none of which is UTF-8.
char longest[256];

const char* const kNames[] = {
    "-rf",
    " lead",
    "trail ",
    "a\nb",
    "a\rb",
    "\x1b[2J",
    "\x1b]0;owned\a",
    "\x9b"
    "2J",
    "\xc2\x9b"
    "2J",
    "\xff\xfe",
    "back\\x41",
    "$(id)",
    "a'b\"c`d",
    "\xe2\x80\xaegpj.exe",
    "caf\xc3\xa9",
    "cafe\xcc\x81",
    "...",
    longest,
};

// Complains and ends: what is not planted would not be tested.
void must(long result, const char* what) {
  if (result >= 0) return;
  (void)std::printf("cannot %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

void write_file(const char* path, const char* content, std::size_t size) {
  const int fd = ::open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  must(fd, path);
  must(::write(fd, content, size), path);
  must(::close(fd), path);
}

void write_file(const char* path, const char* content) {
  write_file(path, content, std::strlen(content));
}

void plant_socket(const char* name) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, name, sizeof address.sun_path - 1);
  must(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), name);
}

void report_refusal(const char* what, long result) {
  if (result < 0)
    (void)std::printf("no %s\n", what);
  else
    (void)std::printf("made %s\n", what);
}

int plant_links(char**) {
  must(::symlink("/etc/passwd", "file"), "file");
  must(::symlink("/etc", "directory"), "directory");
  must(::symlink("/proc/self/root/etc/passwd", "through"), "through");
  must(::symlink("/proc/self/fd/0", "magic"), "magic");
  must(::symlink("loop", "loop"), "loop");
  must(::symlink("nowhere", "dangling"), "dangling");
  must(::mkdir("sub", 0755), "sub");
  must(::symlink("../sub", "sub/again"), "sub/again");
  write_file("one", "two names");
  must(::link("one", "other"), "other");
  must(::mkfifo("fifo", 0666), "fifo");
  plant_socket("socket");
  write_file("good.txt", "good");
  report_refusal("hard link to the image's", ::link("/etc/passwd", "hard"));
  report_refusal("hard link to an input", ::link("/input/plant", "hard"));
  report_refusal("device", ::mknod("device", S_IFCHR | 0666, makedev(1, 3)));
  report_refusal("block device", ::mknod("block", S_IFBLK | 0666, makedev(254, 0)));
  return 0;
}

int plant_names(char**) {
  std::memset(longest, 0xff, sizeof longest - 1);
  for (const char* const name : kNames) write_file(name, name);
  return 0;
}

int plant_deep(char**) {
  write_file("good.txt", "good");
  char name[251];
  std::memset(name, 'd', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  for (int i = 0; i < 20; ++i) {
    must(::mkdir(name, 0755), "mkdir");
    must(::chdir(name), "chdir");
  }
  write_file("bottom", "deep");
  return 0;
}

int plant_sparse(char**) {
  const int fd = ::open("sparse", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  must(::ftruncate(fd, off_t{1} << 40), "ftruncate");
  write_file("good.txt", "good");
  return 0;
}

[[noreturn]] void swap_for_ever(int started) {
  for (long round = 0;; ++round) {
    (void)::renameat2(AT_FDCWD, "swapped", AT_FDCWD, "link", RENAME_EXCHANGE);
    if (round == 100) (void)!::write(started, "x", 1);
  }
}

[[noreturn]] void grow_for_ever(int started) {
  const int fd = ::open("log", O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  for (long round = 0;; ++round) {
    if (::lseek(fd, 0, SEEK_END) > (1 << 20)) (void)!::ftruncate(fd, 0);
    (void)!::write(fd, "growing\n", 8);
    if (round == 100) (void)!::write(started, "x", 1);
  }
}

int plant_meddle(char**) {
  write_file("swapped", "mine");
  must(::symlink("/etc/passwd", "link"), "link");
  int started[2];
  must(::pipe2(started, O_CLOEXEC), "pipe");
  if (::fork() == 0) swap_for_ever(started[1]);
  if (::fork() == 0) grow_for_ever(started[1]);
  char byte = 0;
  for (int i = 0; i < 2; ++i) must(::read(started[0], &byte, 1), "read");
  return 0;
}

int plant_files(char** paths) {
  for (; *paths != nullptr; ++paths) {
    for (char* slash = std::strchr(*paths, '/'); slash != nullptr;
         slash = std::strchr(slash + 1, '/')) {
      *slash = '\0';
      if (::mkdir(*paths, 0755) != 0 && errno != EEXIST) must(-1, *paths);
      *slash = '/';
    }
    write_file(*paths, "from inside");
  }
  return 0;
}

int plant_screen(char**) {
  // C0, C1 (as bytes and as UTF-8), CSI, OSC, DCS, and what reverses text.
  constexpr char kEscapes[] =
      "a\bb\a\x7f \x1b[31mred\x1b]0;owned\a\x1bP+q544e\x1b\\ \x9b"
      "31m \xc2\x9b"
      "31m "
      "\xe2\x80\xae"
      "reversed \xe2\x81\xa6isolated\n";
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    must(::write(fd, kEscapes, sizeof kEscapes - 1), "write");
  }
  write_file("\x1b]0;owned\a.txt", "x");
  must(::symlink("/etc/passwd",
                 "\xc2\x9b"
                 "2J\xe2\x80\xae"),
       "link");
  return 0;
}

constexpr struct {
  const char* kind;
  int (*plant)(char** arguments);
} kPlants[] = {
    {"links", plant_links},   {"names", plant_names},   {"deep", plant_deep},
    {"sparse", plant_sparse}, {"meddle", plant_meddle}, {"files", plant_files},
    {"screen", plant_screen},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || ::chdir("/output") != 0) return 2;
  for (const auto& entry : kPlants) {
    if (std::strcmp(entry.kind, argv[1]) == 0) return entry.plant(argv + 2);
  }
  return 2;
}
