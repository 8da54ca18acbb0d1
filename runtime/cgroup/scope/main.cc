// sbx-scope: gets one process a control group that systemd has delegated, and prints it
// ("/user.slice/…/sbx-42-1f.scope"). The only program here that speaks D-Bus.
//
//   sbx-scope --user|--system --pid PID --unit NAME.scope [--new]
//
// If the process is in a unit with Delegate= already, that is the answer (a user's manager leaves
// no mark in the group, so it must be asked). Else, and with --new always, a transient scope with
// Delegate=yes is started around the process. It ends by itself when its last process is gone.
//
// Started by the v2 driver, before it makes any group. Exit 0 with the path on standard output;
// else 1 (systemd refused or cannot be reached) or 2 (usage) with one line on standard error.
// Blocking, at most kPatience for each answer.
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience(10);
constexpr const char* kDestination = "org.freedesktop.systemd1";
constexpr const char* kManagerPath = "/org/freedesktop/systemd1";
constexpr const char* kManager = "org.freedesktop.systemd1.Manager";

struct Request {
  bool user = false;
  bool always_new = false;
  std::uint32_t pid = 0;
  std::string unit;
};

struct FreeBus {
  sd_bus* bus = nullptr;
  ~FreeBus() { sd_bus_flush_close_unref(bus); }
};
struct FreeMessage {
  sd_bus_message* message = nullptr;
  ~FreeMessage() { sd_bus_message_unref(message); }
};
struct FreeError {
  sd_bus_error error = SD_BUS_ERROR_NULL;
  ~FreeError() { sd_bus_error_free(&error); }
};

// What the JobRemoved signal is compared with, and what it said.
struct Job {
  std::string unit;
  std::string result;
};

int fail(const char* what, int error, const sd_bus_error* detail = nullptr) {
  const char* text =
      detail != nullptr && detail->message != nullptr ? detail->message : std::strerror(-error);
  (void)std::fprintf(stderr, "%s: %s\n", what, text);
  return 1;
}

std::optional<Request> parse(int argc, char** argv) {
  Request request;
  bool manager_given = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    const std::string_view value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--user" || option == "--system") {
      request.user = option == "--user";
      manager_given = true;
    } else if (option == "--new") {
      request.always_new = true;
    } else if (option == "--pid") {
      const auto end = value.data() + value.size();
      if (std::from_chars(value.data(), end, request.pid).ptr != end) return std::nullopt;
      ++i;
    } else if (option == "--unit") {
      request.unit = value;
      ++i;
    } else {
      return std::nullopt;
    }
  }
  if (!manager_given || request.pid == 0 || !request.unit.ends_with(".scope")) return std::nullopt;
  return request;
}

// A shell from su or cron has no XDG_RUNTIME_DIR, though the user's manager may be running.
int open_bus(bool user, sd_bus** bus) {
  if (!user) return sd_bus_open_system(bus);
  const std::string directory = "/run/user/" + std::to_string(::geteuid());
  struct stat info{};
  if (::stat(directory.c_str(), &info) == 0 && info.st_uid == ::geteuid()) {
    (void)::setenv("XDG_RUNTIME_DIR", directory.c_str(), 0);
  }
  return sd_bus_open_user(bus);
}

int on_job_removed(sd_bus_message* message, void* data, sd_bus_error*) {
  Job& job = *static_cast<Job*>(data);
  std::uint32_t id = 0;
  const char* path = nullptr;
  const char* unit = nullptr;
  const char* result = nullptr;
  if (sd_bus_message_read(message, "uoss", &id, &path, &unit, &result) < 0) return 0;
  // The reply with our job's path may still be on its way, so the unit's name decides.
  if (job.unit == unit) job.result = result;
  return 0;
}

// StartTransientUnit(name, mode, properties, aux); org.freedesktop.systemd1(5).
int start_unit(sd_bus* bus, const Request& request) {
  FreeMessage call;
  FreeMessage reply;
  FreeError error;
  int rc = sd_bus_message_new_method_call(bus, &call.message, kDestination, kManagerPath, kManager,
                                          "StartTransientUnit");
  if (rc < 0) return fail("StartTransientUnit", rc);
  rc = sd_bus_message_append(call.message, "ssa(sv)a(sa(sv))", request.unit.c_str(), "fail",  //
                             4,                                                               //
                             "Description", "s", "sbx sandboxes",                             //
                             "Delegate", "b", 1,                                              //
                             "CollectMode", "s", "inactive-or-failed",                        //
                             "PIDs", "au", 1, request.pid,                                    //
                             0);
  if (rc < 0) return fail("StartTransientUnit", rc);
  rc = sd_bus_call(bus, call.message, 0, &error.error, &reply.message);
  return rc < 0 ? fail("StartTransientUnit", rc, &error.error) : 0;
}

int wait_for_job(sd_bus* bus, const Job& job) {
  const auto deadline = steady_clock::now() + kPatience;
  while (job.result.empty()) {
    const int handled = sd_bus_process(bus, nullptr);
    if (handled < 0) return fail("sd_bus_process", handled);
    if (handled > 0) continue;
    const auto left = deadline - steady_clock::now();
    if (left <= left.zero()) return fail("the scope's job did not end", -ETIMEDOUT);
    const auto usec = std::chrono::duration_cast<std::chrono::microseconds>(left).count();
    const int rc = sd_bus_wait(bus, static_cast<std::uint64_t>(usec));
    if (rc < 0 && rc != -EINTR) return fail("sd_bus_wait", rc);
  }
  if (job.result == "done") return 0;
  (void)std::fprintf(stderr, "the scope's job ended with \"%s\"\n", job.result.c_str());
  return 1;
}

// "org.freedesktop.systemd1.Scope" for x.scope: the interface that has a unit's group and Delegate.
const char* interface_of(std::string_view unit_path) {
  // Object paths escape the dot.
  if (unit_path.ends_with("_2escope")) return "org.freedesktop.systemd1.Scope";
  if (unit_path.ends_with("_2eservice")) return "org.freedesktop.systemd1.Service";
  return nullptr;
}

int print_group(sd_bus* bus, const char* unit_path) {
  char* group = nullptr;
  FreeError error;
  const int rc = sd_bus_get_property_string(bus, kDestination, unit_path, interface_of(unit_path),
                                            "ControlGroup", &error.error, &group);
  if (rc < 0) return fail("ControlGroup", rc, &error.error);
  (void)std::printf("%s\n", group);
  std::free(group);  // NOLINT: sd-bus allocated it with malloc
  return 0;
}

// The object of the delegated unit that the process is in, or nothing: a unit of another manager,
// of another kind, or without Delegate=.
std::optional<std::string> delegated_unit(sd_bus* bus, std::uint32_t pid) {
  FreeMessage reply;
  FreeError error;
  const char* path = nullptr;
  int delegate = 0;
  if (sd_bus_call_method(bus, kDestination, kManagerPath, kManager, "GetUnitByPID", &error.error,
                         &reply.message, "u", pid) < 0 ||
      sd_bus_message_read(reply.message, "o", &path) < 0 || interface_of(path) == nullptr ||
      sd_bus_get_property_trivial(bus, kDestination, path, interface_of(path), "Delegate",
                                  &error.error, 'b', &delegate) < 0 ||
      delegate == 0) {
    return std::nullopt;
  }
  return path;
}

int print_new_scope(sd_bus* bus, const Request& request) {
  Job job{request.unit, {}};
  // Before the call, so that the answer cannot be missed.
  int rc = sd_bus_match_signal(bus, nullptr, kDestination, kManagerPath, kManager, "JobRemoved",
                               on_job_removed, &job);
  if (rc < 0) return fail("JobRemoved", rc);
  // The manager sends job signals only to those who subscribed.
  FreeError error;
  rc = sd_bus_call_method(bus, kDestination, kManagerPath, kManager, "Subscribe", &error.error,
                          nullptr, nullptr);
  if (rc < 0) return fail("Subscribe", rc, &error.error);
  if (start_unit(bus, request) != 0) return 1;
  if (wait_for_job(bus, job) != 0) return 1;
  char* encoded = nullptr;
  rc = sd_bus_path_encode("/org/freedesktop/systemd1/unit", request.unit.c_str(), &encoded);
  if (rc < 0) return fail("sd_bus_path_encode", rc);
  const std::string path = encoded;
  std::free(encoded);  // NOLINT: sd-bus allocated it with malloc
  return print_group(bus, path.c_str());
}

int run(const Request& request) {
  FreeBus bus;
  const int rc = open_bus(request.user, &bus.bus);
  if (rc < 0) return fail(request.user ? "no user manager" : "no system bus", rc);
  (void)sd_bus_set_method_call_timeout(
      bus.bus, static_cast<std::uint64_t>(std::chrono::microseconds(kPatience).count()));
  if (!request.always_new) {
    if (const auto unit = delegated_unit(bus.bus, request.pid)) {
      return print_group(bus.bus, unit->c_str());
    }
  }
  return print_new_scope(bus.bus, request);
}

}  // namespace

int main(int argc, char** argv) {
  const auto request = parse(argc, argv);
  if (!request) {
    (void)std::fputs("usage: sbx-scope --user|--system --pid PID --unit NAME.scope [--new]\n",
                     stderr);
    return 2;
  }
  return run(*request);
}
