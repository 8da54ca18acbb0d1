# sbx-run itself on cgroup v2, as root and as an ordinary user. Sourced by run-cases.
# shellcheck shell=bash
# shellcheck disable=SC2154  # guest_uid and guest_user are run-cases'

# Time-outs are for an emulated machine, unless the caller sets `seconds`: an option is given once.
sbx() { "$VM_BUILD/bin/sbx-run" --rootfs host -t "${seconds:-200}" "$@"; }

# field PATH: one value of the result in result.json, "usage.oom_kills".
field() {
  python3 -c 'import functools, json, sys
value = functools.reduce(lambda v, key: v[key], sys.argv[1].split("."), json.load(open("result.json")))
print(value if isinstance(value, str) else json.dumps(value))' "$1"
}

# expect PATH VALUE: of the result.
expect() {
  local value
  value=$(field "$1")
  [ "$value" = "$2" ] || { cat result.json; fail "$1 is $value, not $2"; }
}

# ended CODE: the previous command's exit code is CODE.
ended() {
  local code=$?
  [ $code = "$1" ] || { cat result.json; fail "exit code $code, not $1"; }
}

expect_v2() { grep -q '"v2: ' result.json || { cat result.json; fail "not the v2 driver"; }; }

# No group of ours is left, whoever made it; a subtree of root's stays, empty.
expect_no_groups() {
  local left
  left=$(find /sys/fs/cgroup -mindepth 2 -type d -path '*sbx*')
  [ -z "$left" ] || fail "groups left: $left"
}

case_sbx_run_root() {
  sbx --json -l bash -c 'echo hello; exit 3' >result.json || ended 3
  expect status exit
  expect stdout $'hello'
  expect_v2
  expect_no_groups
}

case_sbx_run_oom() {
  # shellcheck disable=SC2016  # the sandbox's shell expands it
  sbx --json --memory 64M -l bash -c 'x=$(head -c 200M /dev/zero | tr "\0" x)' >result.json || true
  expect status oom
  expect limits_hit '["memory"]'
  expect_no_groups
}

case_sbx_run_fork_bomb() {
  seconds=15 sbx --json -l bash -c 'f() { f | f & }; f; sleep 60' >result.json 2>errors || true
  expect usage.pids_peak 64
  expect_no_groups
}

# The user has a delegated subtree and stands in it, as in a unit with Delegate= and User=.
case_sbx_run_user() {
  local group=/sys/fs/cgroup/sbx-user
  mkdir $group
  chown "$guest_uid" $group $group/cgroup.{procs,subtree_control,threads}
  # shellcheck disable=SC2016  # the inner shell expands them
  bash -c 'echo $$ >"$1/cgroup.procs"; exec setpriv --reuid "$2" --regid "$2" --clear-groups -- \
    env HOME=/tmp "$VM_BUILD/bin/sbx-run" --rootfs host -t 200 --json -l bash -c "id -u; exit 4"' \
    in_group $group "$guest_uid" >result.json || ended 4
  expect status exit
  expect stdout 65534
  expect_v2
  [ "$(ls -d $group/*/)" = $group/supervisor/ ] || fail "left: $(ls -d $group/*/)"
  rmdir $group/supervisor $group
}

wait_for_file() {
  for _ in $(seq 100); do
    [ ! -e "$1" ] || return 0
    sleep 0.1
  done
  return 1
}

# expect_no_core STATUS PROGRAM: it ends so, and the handler does not get its core.
expect_no_core() {
  sbx --json -l bash -c "$2" >result.json || true
  expect status "$1"
  ! wait_for_file /tmp/core.caught || fail "the handler got the core of: $2"
}

# A handler behind a pipe runs as root with the core on its standard input, whatever RLIMIT_CORE is but
# 1. The control is the same death outside, with a limit of 0.
case_sbx_run_core_pattern() {
  printf '#!/bin/sh\ncat >/tmp/core.caught\n' >/tmp/catch-core
  chmod 0755 /tmp/catch-core
  echo '|/tmp/catch-core' >/proc/sys/kernel/core_pattern
  # shellcheck disable=SC2016  # the inner shells expand it
  bash -c 'ulimit -c 0; kill -SEGV $$' || true
  wait_for_file /tmp/core.caught || fail "control: the handler was not called"
  rm /tmp/core.caught
  # shellcheck disable=SC2016  # the sandbox's shell expands it
  expect_no_core signal 'kill -SEGV $$'
  # shellcheck disable=SC2016
  expect_no_core signal 'ulimit -c 0; kill -SEGV $$'
  # shellcheck disable=SC2016
  expect_no_core exit 'bash -c "kill -ABRT \$\$"; exit 5'
}

# starts_and_says WORD FLAG…: sbx-run in the background (its pid in $run), once its program has printed it.
starts_and_says() {
  local word=$1
  shift
  # Not the function sbx: that would be a shell's pid.
  "$VM_BUILD/bin/sbx-run" --rootfs host -t "${seconds:-200}" "$@" >said 2>errors &
  run=$!
  for _ in $(seq 600); do
    ! grep -q "$word" said || return 0
    sleep 0.1
  done
  cat errors
  fail "it did not say $word"
}

# ends_with CODE: the run in the background does.
ends_with() {
  local code=0
  wait "$run" || code=$?
  [ $code = "$1" ] || { cat said errors; fail "exit code $code, not $1"; }
}

# Deadlines are of a clock that nobody can step.
case_sbx_run_clock_steps() {
  local before
  before=$(date +%s)
  starts_and_says up -l bash -c 'echo up; sleep 15; exit 3'
  date -s "@$((before + 86400))" >/dev/null
  ends_with 3
  seconds=30 starts_and_says up -l bash -c 'echo up; sleep 1000'
  date -s "@$((before - 86400))" >/dev/null
  [ "$(date +%s)" -lt "$before" ] || fail "control: the clock was not stepped"
  ends_with 124
  date -s "@$before" >/dev/null
  expect_no_groups
}

# A frozen group of v2 can be killed; nothing waits for it to be thawed.
case_sbx_run_frozen() {
  local group
  seconds=30 starts_and_says up -l bash -c 'echo up; sleep 1000'
  group=$(find /sys/fs/cgroup -type d -path '*sbx*/payload')
  echo 1 >"$group/cgroup.freeze"
  for _ in $(seq 100); do
    grep -q 'frozen 1' "$group/cgroup.events" && break
    sleep 0.1
  done
  grep -q 'frozen 1' "$group/cgroup.events" || fail "control: it was not frozen"
  ends_with 124
  expect_no_groups
}

# 96 MiB in 64: with swap they fit, and only a group that may use it does.
case_sbx_run_swap() {
  local group=/sys/fs/cgroup/swapping
  modprobe zram num_devices=1
  echo 256M >/sys/block/zram0/disksize
  mkswap /dev/zram0 >/dev/null
  swapon /dev/zram0
  echo +memory >/sys/fs/cgroup/cgroup.subtree_control
  mkdir $group
  echo 64M >$group/memory.max
  bash -c 'echo $$ >"$0/cgroup.procs"; exec "$1"' $group "$VM_BUILD/tests/programs/early_hog" >said ||
    fail "control: with swap it does not fit either"
  rmdir $group
  sbx --json --memory 64M --input "$VM_BUILD/tests/programs/early_hog" -- /input/early_hog >result.json ||
    ended 137
  swapoff /dev/zram0
  expect status oom
  expect_v2
  expect_no_groups
}

# The whole group is empty within a second of the kill, however slowly this machine makes the bomb.
case_sbx_run_killing() {
  local group
  starts_and_says up -l bash -c 'echo up; f() { f | f & }; f; sleep 1000'
  group=$(find /sys/fs/cgroup -type d -path '*sbx*/payload')
  for _ in $(seq 600); do
    [ "$(cat "$group/pids.current")" -lt 60 ] || break
    sleep 0.1
  done
  grep -q 'populated 1' "$group/cgroup.events" || fail "control: the bomb did not go off"
  kill -TERM "$run"
  ends_with 130
  expect_no_groups
}
