# Where the v2 driver finds its subtree under systemd. Sourced by run-cases, variant `systemd`.
# shellcheck shell=bash
# shellcheck disable=SC2154  # guest_uid and guest_user are run-cases'

# user_session COMMAND…: as the user, whose manager runs as after a login with lingering, from a group
# that is not his, as a terminal's session is.
user_session() {
  if [ ! -S "/run/user/$guest_uid/bus" ]; then
    systemctl start systemd-logind.service
    loginctl enable-linger "$guest_user"
    systemctl start "user@$guest_uid.service"
  fi
  as_user env XDG_RUNTIME_DIR="/run/user/$guest_uid" "$@"
}

case_scope_program_user() {
  local group
  # shellcheck disable=SC2016  # the inner shell expands them
  group=$(user_session bash -c '"$0"/bin/sbx-scope --user --pid $$ --unit sbx-case.scope &&
    cat /proc/self/cgroup' "$VM_BUILD")
  echo "$group"
  grep -q "^/user.slice/user-$guest_uid.slice/user@$guest_uid.service/.*/sbx-case.scope$" <<<"$group" ||
    fail "no such path was printed"
  grep -q '^0::.*/sbx-case.scope$' <<<"$group" || fail "the caller was not moved"
}

case_scope_program_refuses() {
  local why
  ! why=$(as_user "$VM_BUILD/bin/sbx-scope" --user --pid 1 --unit x 2>&1) || fail "a bad unit name"
  grep -q usage <<<"$why"
  ! why=$(user_session "$VM_BUILD/bin/sbx-scope" --user --pid 1 --unit sbx-one.scope 2>&1) ||
    fail "pid 1 was given away"
  echo "$why"
}

# The tests do not lie beside sbx-scope.
scope_program() { echo "SBX_TEST_SCOPE_PROGRAM=$VM_BUILD/bin/sbx-scope"; }

# The whole driver, in a scope that it asked for itself.
case_driver_user_scope() {
  expect_tests cgroup_driver_test user_session env "$(scope_program)"
}

# A user's manager leaves no mark in what it delegates; sbx-scope asks for it.
case_driver_user_delegated_scope() {
  expect_tests cgroup_driver_test user_session systemd-run --user --scope --quiet \
    --unit sbx-given -p Delegate=yes -- env "$(scope_program)"
}

case_driver_user_delegated_service() {
  expect_tests cgroup_driver_test systemd-run --pipe --wait --quiet -p Delegate=yes \
    -p User="$guest_user" --
}

case_driver_root_scope() { expect_tests cgroup_driver_test env "$(scope_program)"; }

case_driver_root_delegated_service() {
  expect_tests cgroup_v2_test systemd-run --pipe --wait --quiet -p Delegate=yes --
}

# A delegated unit that the caller shares with another process is no base; a new scope is.
case_driver_user_shared_scope() {
  # shellcheck disable=SC2016  # the inner shell expands it
  expect_tests cgroup_driver_test user_session systemd-run --user --scope --quiet \
    -p Delegate=yes -- env "$(scope_program)" bash -c '"$0" "$@"; exit $?'
}

# A session without Delegate= and without sbx-scope: refused with the fix, and nobody was moved.
case_driver_user_refused() {
  user_session "$VM_BUILD/tests/cgroup_driver_test" --gtest_filter='*SaysWhatItIs' >out 2>&1 || true
  grep -q 'systemd-run --user --scope -p Delegate=yes' out || { cat out; fail "the fix is not named"; }
}

# systemd removes a scope with its last process, and our groups in it, when it comes to it: a busy host's guest is slow.
case_scopes_nothing_left() {
  local left
  for _ in $(seq 600); do
    left=$(find /sys/fs/cgroup -type d -path '*sbx*')
    [ -n "$left" ] || return 0
    sleep 0.1
  done
  fail "left: $left"
}
