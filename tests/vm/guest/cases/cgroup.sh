# The cgroup v2 driver, as root and as an ordinary user with a delegated subtree. Sourced by run-cases.
# shellcheck shell=bash
# shellcheck disable=SC2154  # guest_uid is run-cases'

readonly cgroup_top=/sys/fs/cgroup

case_cgroup_parsers() { expect_tests cgroup_parse_test; }

case_cgroup_driver_root() { expect_tests cgroup_driver_test; }

case_cgroup_v2_root() { expect_tests cgroup_v2_test; }

# Nothing is left at the top but what was there.
case_cgroup_nothing_left() {
  local left
  left=$(find $cgroup_top -mindepth 1 -type d -name '*sbx*')
  [ -z "$left" ] || fail "left: $left"
}

# What a manager does for a delegatee: directory, procs, subtree_control and threads change owner.
make_delegated_subtree() { # make_delegated_subtree NAME
  local group=$cgroup_top/$1
  mkdir "$group"
  chown "$guest_uid" "$group" "$group"/cgroup.{procs,subtree_control,threads}
}

# in_group GROUP COMMAND…: runs it in a shell of its own that has moved there.
in_group() {
  bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' in_group "$cgroup_top/$1" "${@:2}"
}

# The user's only process stands in the delegated group itself: it has to move to a leaf first.
case_cgroup_driver_user() {
  make_delegated_subtree given
  expect_tests cgroup_driver_test in_group given setpriv --reuid "$guest_uid" --regid "$guest_uid" \
    --clear-groups --
  [ -d $cgroup_top/given/supervisor ] || fail "no leaf for the supervisor was made"
  rmdir $cgroup_top/given/supervisor $cgroup_top/given
}

# Without a subtree of his own the user is refused, and told what to do.
case_cgroup_user_refused() {
  as_user "$VM_BUILD/tests/cgroup_driver_test" --gtest_filter='*SaysWhatItIs' >refused.out 2>&1 || true
  grep -q 'systemd-run --user --scope -p Delegate=yes' refused.out || {
    cat refused.out
    fail "the fix is not named"
  }
}
