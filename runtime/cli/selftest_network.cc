// Every way out. A table, with the columns of selftest_system_calls.cc. Addresses are of the ranges
// for documentation, but for those where clouds keep their metadata.
#include "runtime/cli/selftest_tables.h"

namespace sbx::cli {
namespace {

constexpr std::string_view kLayer = "net_namespace";
constexpr Expectation kNoWay = refused(ENETUNREACH);
constexpr Expectation kNoWay6 = refused(ENETUNREACH, EADDRNOTAVAIL);

// The control's network leads everything to its own loopback: a way out, and nobody at its end.
constexpr AttackCase out(std::string_view name, std::string_view act, std::string_view address,
                         Expectation expected = kNoWay) {
  return {kNetwork, name, kLayer, act, address, address, expected, kAway, EAFNOSUPPORT};
}

// A socket that system services of many hosts have.
constexpr AttackCase service(std::string_view path) {
  return {kNetwork, path, "rootfs", "unix_socket", path, path, refused(ENOENT), kPlain, ENOENT};
}

constexpr AttackCase kNetworkCases[] = {
    out("UDP to the internet", "udp", "192.0.2.1"),
    out("TCP to the internet", "tcp", "192.0.2.1 443"),
    out("DNS to the internet", "dns", "192.0.2.53"),
    out("DNS of the machine", "dns", "127.0.0.1"),
    out("DNS of systemd-resolved", "dns", "127.0.0.53"),
    out("TCP to cloud metadata", "tcp", "169.254.169.254 80"),
    out("UDP to cloud metadata", "udp", "169.254.169.254 80"),
    out("IPv6 to the internet", "udp", "2001:db8::1", kNoWay6),
    out("IPv6 to cloud metadata", "udp", "fd00:ec2::254 80", kNoWay6),
    out("IPv6 loopback", "udp", "::1", kNoWay6),
    out("TCP over IPv6", "tcp", "2001:db8::1 443", kNoWay6),
    {kNetwork, "loopback services", kLayer, "tcp", "@tcp", "@tcp", kNoWay, kPlain},
    {kNetwork, "abstract sockets", kLayer, "abstract_socket", "@socket", "@socket",
     refused(ECONNREFUSED), kPlain},
    {kNetwork, "sockets of the host", "rootfs", "unix_socket", "@path", "@path", refused(ENOENT),
     kPlain},
    service("/run/systemd/resolve/io.systemd.Resolve"),
    service("/run/nscd/socket"),
    service("/run/dbus/system_bus_socket"),
    service("/var/run/docker.sock"),
    {kNetwork, "a nameserver", kLayer, "nameserver", "", "",
     value([](std::string_view name) { return name == "none"; }, ENOENT), kPlain, ENOENT, true},
    {kNetwork, "interfaces", kLayer, "interfaces", "", "",
     value([](std::string_view up) { return up == "only a silent lo"; }), kPlain, 0, true},
};

}  // namespace

std::span<const AttackCase> network_cases() {
  return kNetworkCases;
}

}  // namespace sbx::cli
