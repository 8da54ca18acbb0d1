# sbxd started by root without systemd, on cgroup v2: it hands the subtree over and becomes a user.
# Sourced by run-cases, variant `init`.
# shellcheck shell=bash
# shellcheck disable=SC2154  # guest_uid and guest_user are run-cases'

# tell METHOD TARGET [BODY]: the answer's body.
tell() {
  python3 - "$@" <<'PY'
import socket, sys
method, target, body = (sys.argv[1:] + [""])[:3]
s = socket.socket(socket.AF_UNIX)
s.connect("/tmp/sbxd/s")
s.sendall(f"{method} {target} HTTP/1.0\r\nContent-Length: {len(body.encode())}\r\n\r\n{body}".encode())
answer = b""
while piece := s.recv(65536):
    answer += piece
print(answer.decode().split("\r\n\r\n", 1)[1])
PY
}

start_sbxd() {
  mkdir -p /tmp/sbxd
  printf 'user = "%s"\nimage = "host"\n' "$guest_user" >/tmp/sbxd/sbxd.toml
  "$VM_BUILD/bin/sbxd" --config /tmp/sbxd/sbxd.toml --socket /tmp/sbxd/s --state-dir /tmp/sbxd/state \
    2>/tmp/sbxd/log &
  sbxd_pid=$!
  for _ in $(seq 600); do
    tell GET /healthz >health.out 2>/dev/null && return
    kill -0 $sbxd_pid 2>/dev/null || break
    sleep 0.1
  done
  cat /tmp/sbxd/log
  fail "sbxd does not answer"
}

# Groups of runs: the subtree itself, and where the supervisor and the spawner stand, are not.
groups_of_runs() { find /sys/fs/cgroup -type d -name payload; }

case_sbxd_root_becomes_a_user() {
  local status
  start_sbxd
  status=$(cat /proc/$sbxd_pid/status)
  grep -Eq "^Uid:.$guest_uid.$guest_uid.$guest_uid.$guest_uid\$" <<<"$status" || fail "$(grep ^Uid <<<"$status")"
  grep -Eq '^CapBnd:.0+$' <<<"$status" || fail "$(grep ^CapBnd <<<"$status")"
  tell POST /v1/run '{"language": "python", "code": "print(6*7)"}' >result.json
  expect status ok
  expect stdout 42
  expect_v2
  grep -q '"uid_separation","state":"held"' result.json || { cat result.json; fail "uids are not apart"; }
  # shellcheck disable=SC2016  # the sandbox's shell expands it
  tell POST /v1/run '{"language": "bash", "code": "x=$(head -c 200M /dev/zero | tr \"\\0\" x)",
    "limits": {"memory": "64M", "wall_seconds": 300, "cpus": 1}}' >result.json
  expect status oom
  [ -z "$(groups_of_runs)" ] || fail "groups left: $(groups_of_runs)"
  kill $sbxd_pid
  wait $sbxd_pid || fail "it ended with $?"
}

case_sbxd_root_leaves_nothing_when_killed() {
  start_sbxd
  (tell POST /v1/run '{"argv": ["/bin/sleep", "1000"]}' >/dev/null 2>&1 || true) &
  for _ in $(seq 600); do
    [ -z "$(groups_of_runs)" ] || break
    sleep 0.1
  done
  [ -n "$(groups_of_runs)" ] || fail "the run did not start"
  kill -9 $sbxd_pid
  wait $sbxd_pid || true
  start_sbxd
  [ -z "$(groups_of_runs)" ] || fail "groups left: $(groups_of_runs)"
  tell GET /metrics | grep -q 'sbxd_reaped_total{kind="record"} [1-9]' || fail "nothing was reaped"
  kill $sbxd_pid
  wait $sbxd_pid || fail "it ended with $?"
}
