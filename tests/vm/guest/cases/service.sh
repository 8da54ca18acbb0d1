# sbxd as systemd runs it: the units of packaging/, socket activation, an ordinary user, a delegated
# subtree. Sourced by run-cases, variant `systemd`.
# shellcheck shell=bash
# shellcheck disable=SC2154  # guest_user is run-cases'

# The guest's files are an overlay's: what is installed here is gone with it.
install_service() {
  local unit_directory=/etc/systemd/system binary
  systemctl is-active --quiet sbxd.socket && return
  install -m 0644 "$VM_BUILD"/packaging/sbxd.{service,socket} "$unit_directory"
  binary=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit_directory/sbxd.service")
  install -D -m 0755 "$VM_BUILD/bin/sbxd" "$binary"
  systemd-sysusers "$VM_BUILD/packaging/sysusers.conf"
  usermod --add-subuids 3000000-3065535 --add-subgids 3000000-3065535 sbx
  install -d /etc/sbx
  echo 'image = "host"' >/etc/sbx/sbxd.toml
  systemctl daemon-reload
  systemctl start sbxd.socket
}

# ask METHOD TARGET [BODY]: the answer's status line and body, of sbxd or whom ask_socket names. In a
# small Debian there is no curl, and no http module.
ask() {
  python3 - "${ask_socket:-/run/sbx/sbxd.sock}" "$@" <<'PY'
import socket, sys
path, method, target, body = (sys.argv[1:] + [""])[:4]
s = socket.socket(socket.AF_UNIX)
s.connect(path)
s.sendall(f"{method} {target} HTTP/1.1\r\nHost: sbx\r\nConnection: close\r\n"
          f"Content-Length: {len(body.encode())}\r\n\r\n{body}".encode())
answer = b""
while piece := s.recv(65536):
    answer += piece
head, rest = answer.split(b"\r\n\r\n", 1)
if b"transfer-encoding: chunked" in head.lower():
    pieces = b""
    while size := int(rest.split(b"\r\n", 1)[0], 16):
        rest = rest.split(b"\r\n", 1)[1]
        pieces, rest = pieces + rest[:size], rest[size + 2:]
    rest = pieces
print(head.decode().split("\r\n", 1)[0])
print(rest.decode())
PY
}

# answers PATTERN METHOD TARGET [BODY]
answers() {
  local pattern=$1
  shift
  ask "$@" >answer.out 2>&1 || { cat answer.out; service_log; fail "no answer to $*"; }
  grep -Eq "$pattern" answer.out || { cat answer.out; service_log; fail "$* was not answered with $pattern"; }
}

service_log() {
  local unit
  for unit in sbxd.service agentd.service; do
    journalctl -u $unit --no-pager -n 30 2>/dev/null || systemctl status $unit
  done
}

main_pid() { systemctl show -p MainPID --value "$1"; }

case_service_socket_starts_it() {
  install_service
  systemctl is-active sbxd.service && fail "it runs before anybody asked"
  [ "$(stat -c '%a %U %G' /run/sbx/sbxd.sock)" = "660 root sbx" ] || fail "$(stat /run/sbx/sbxd.sock)"
  answers '"status": *"ok"' GET /healthz
  systemctl is-active --quiet sbxd.service || fail "it does not run"
}

case_service_is_an_ordinary_user() {
  local status uid
  install_service
  answers 200 GET /healthz
  uid=$(id -u sbx)
  status=$(cat "/proc/$(main_pid sbxd.service)/status")
  grep -Eq "^Uid:.$uid.$uid.$uid.$uid\$" <<<"$status" || fail "$(grep ^Uid <<<"$status")"
  grep -Eq '^CapEff:.0+$' <<<"$status" || fail "$(grep ^CapEff <<<"$status")"
  grep -Eq '^NoNewPrivs:.1$' <<<"$status" || fail "$(grep ^NoNew <<<"$status")"
}

# Every required layer, the cgroups of the unit's own subtree, a uid of its own.
case_service_runs_code() {
  install_service
  answers '"stdout": *"42' POST /v1/run '{"language": "python", "code": "print(6*7)"}'
  grep -Eq '"status": *"ok"' answer.out || { cat answer.out; fail "the status"; }
  python3 - "$(tail -n +2 answer.out)" <<'PY'
import re, sys
layers = dict(re.findall(r'"name": *"(\w+)", *"state": *"(\w+)"', sys.argv[1]))
bad = {name: state for name, state in layers.items()
       if state != "held" and name not in ("landlock", "time_namespace", "cpuset")}
print(layers)
sys.exit(f"reason: not held: {bad}" if bad or len(layers) < 14 else 0)
PY
}

# An out-of-memory kill inside is the run's affair.
case_service_survives_a_memory_hog() {
  local before
  install_service
  answers 200 GET /healthz
  before=$(main_pid sbxd.service)
  answers '"status": *"oom"' POST /v1/run \
    '{"language": "python", "code": "x = bytearray(200 << 20)", "limits": {"memory": "64M"}}'
  answers '"stdout": *"42' POST /v1/run '{"language": "python", "code": "print(6*7)"}'
  [ "$(main_pid sbxd.service)" = "$before" ] || fail "it was restarted"
}

case_service_refuses_who_is_not_in_the_group() {
  install_service
  ! as_user python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("/run/sbx/sbxd.sock")' \
    2>refused.out || fail "a stranger could connect"
  grep -q PermissionError refused.out || { cat refused.out; fail "another error"; }
}

# A run that is on ends within the drain time, with its answer.
case_service_stops_after_its_runs() {
  install_service
  answers 200 GET /healthz
  ask POST '/v1/run?stream=1' '{"argv": ["sh", "-c", "echo begun; sleep 5; echo ended"]}' >running.out &
  for _ in $(seq 600); do
    find /sys/fs/cgroup/system.slice/sbxd.service -name cgroup.procs -path '*payload*' -exec cat {} + |
      grep -q . && break
    sleep 0.1
  done
  systemctl stop sbxd.service
  wait
  grep -q '"status": *"ok"' running.out || { cat running.out; service_log; fail "the run was cut off"; }
  systemctl is-active --quiet sbxd.socket || fail "the socket went with it"
  answers 200 GET /healthz
}

# kill -9: its runs die with it, systemd starts it anew, and nothing of the old one is left.
case_service_comes_back_after_a_kill() {
  local before
  install_service
  answers 200 GET /healthz
  before=$(main_pid sbxd.service)
  kill -KILL "$before"
  answers '"stdout": *"42' POST /v1/run '{"language": "python", "code": "print(6*7)"}'
  [ "$(main_pid sbxd.service)" != "$before" ] || fail "the same process"
}

case_service_leaves_nothing() {
  install_service
  answers 200 GET /healthz
  systemctl stop sbxd.socket sbxd.service
  [ ! -e /run/sbx/sbxd.sock ] || fail "the socket file is left"
  [ ! -e /run/sbx/sbxd ] || fail "$(find /run/sbx/sbxd)"
  [ ! -e /sys/fs/cgroup/system.slice/sbxd.service ] || fail "$(find /sys/fs/cgroup/system.slice/sbxd.service -type d)"
  ! pgrep -u sbx || fail "processes are left"
}
