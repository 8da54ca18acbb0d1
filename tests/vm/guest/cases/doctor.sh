# sbx-run doctor on hosts that take another kernel, a delegation or a systemd; the fix that it prints is
# typed in, and doctor is content then. Sourced by run-cases.
# shellcheck shell=bash
# shellcheck disable=SC2154  # guest_uid and guest_user are run-cases'

# doctor [COMMAND…]: what it says goes to doctor.out, whatever it finds; the command makes its host.
doctor() {
  doctor_code=0
  "$@" "$VM_BUILD/bin/sbx-run" doctor --rootfs host >doctor.out 2>&1 || doctor_code=$?
}

# state CHECK, fix CHECK: of the last doctor.
state() { awk -v check="$1" '$1 == check { print $2; exit }' doctor.out; }
fix() {
  awk -v check="$1" '$1 == check { next_is_fix = 1; next }
    next_is_fix { if ($1 == "fix:") { sub(/^ *fix: /, ""); print }; exit }' doctor.out
}

# found CHECK STATE: the last doctor says so.
found() {
  [ "$(state "$1")" = "$2" ] || { cat doctor.out; fail "$1 is '$(state "$1")', not $2"; }
}

# mend CHECK PATTERN: the fix is like the pattern, and is typed by root.
mend() {
  local line
  line=$(fix "$1")
  # shellcheck disable=SC2053  # a pattern
  [[ $line == $2 ]] || { cat doctor.out; fail "the fix of $1 is '$line'"; }
  bash -ec "${line//sudo /}" >mend.out 2>&1 || { cat mend.out; fail "its fix fails: $line"; }
}

# exits CODE: the last doctor did.
exits() { [ "$doctor_code" = "$1" ] || { cat doctor.out; fail "doctor exits with $doctor_code"; }; }

# The user's shell stands in a delegated subtree, as in a unit with Delegate= and User=.
make_doctor_group() {
  doctor_group=/sys/fs/cgroup/doctor
  mkdir $doctor_group
  chown "$guest_uid" $doctor_group $doctor_group/cgroup.{procs,subtree_control,threads}
}

# delegated UID COMMAND…
delegated() {
  # shellcheck disable=SC2016  # the inner shell expands them
  bash -c 'echo $$ >"$1/cgroup.procs"; uid=$2; shift 2
    exec setpriv --reuid "$uid" --regid "$uid" --clear-groups -- env HOME=/tmp "$@"' \
    delegated "$doctor_group" "$@"
}

drop_doctor_group() {
  rmdir "$doctor_group/supervisor" "$doctor_group"
}

case_doctor_root_v2() {
  doctor env
  exits 0
  found cgroup ok
  grep -q '^cgroup  *ok  *v2: ' doctor.out || { cat doctor.out; fail "not the v2 driver"; }
  # This kernel is older than the one that makes use of them: the same in a run.
  found time_namespace missing
  [[ $(fix time_namespace) == *'6.3 or newer' ]] || fail "the fix: $(fix time_namespace)"
  "$VM_BUILD/bin/sbx-run" --rootfs host -t 200 --json -- /bin/true |
    grep -q '"time_namespace","state":"missing"' || fail "a run has a time namespace"
}

case_doctor_user_v2_delegated() {
  make_doctor_group
  doctor delegated "$guest_uid"
  exits 0
  found cgroup ok
  found subordinate_ids ok
  drop_doctor_group
}

case_doctor_user_v2_not_delegated() {
  doctor as_user
  exits 1
  found cgroup missing
  [[ $(fix cgroup) == 'systemd-run --user --scope -p Delegate=yes'* ]] || fail "$(fix cgroup)"
}

case_doctor_userns_clone() {
  sysctl -qw kernel.unprivileged_userns_clone=0
  doctor as_user
  exits 1
  found namespaces missing
  mend namespaces 'sudo sysctl -w kernel.unprivileged_userns_clone=1'
  doctor as_user
  found namespaces ok
}

case_doctor_one_id() {
  make_doctor_group
  cp /etc/subuid /etc/subgid /tmp
  sed -i "/^$guest_user:/d" /etc/subuid /etc/subgid
  doctor delegated "$guest_uid"
  exits 0
  found subordinate_ids degraded
  # "id -un" is the user's, not root's.
  sed -i "s/\$(id -un)/$guest_user/" doctor.out
  mend subordinate_ids "sudo usermod --add-subuids *"
  doctor delegated "$guest_uid"
  found subordinate_ids ok
  cp /tmp/subuid /tmp/subgid /etc
  drop_doctor_group
}

# newuidmap wants a user to have a name.
case_doctor_one_id_without_name() {
  local uid=60460
  doctor setpriv --reuid $uid --regid $uid --clear-groups --
  found subordinate_ids degraded
  mend subordinate_ids "sudo sh -c *useradd --uid $uid *"
  doctor setpriv --reuid $uid --regid $uid --clear-groups --
  found subordinate_ids ok
  userdel "sbx-$uid"
}

case_doctor_no_newuidmap() {
  mv /usr/bin/newuidmap /tmp
  doctor as_user
  found subordinate_ids degraded
  [ "$(fix subordinate_ids)" = 'sudo apt-get install uidmap' ] || fail "$(fix subordinate_ids)"
  mv /tmp/newuidmap /usr/bin # what the package would do
  doctor as_user
  found subordinate_ids ok
}

case_doctor_no_new_privs() {
  doctor as_user setpriv --no-new-privs --
  found subordinate_ids degraded
  [[ $(fix subordinate_ids) == 'start it without no_new_privs'* ]] || fail "$(fix subordinate_ids)"
  doctor as_user
  found subordinate_ids ok
}

# What doctor tells a user without a delegated subtree, typed in his session.
case_doctor_user_scope() {
  user_session env | grep -q '^HOME=' # his manager runs
  doctor as_user env XDG_RUNTIME_DIR=/nowhere
  found cgroup missing
  [[ $(fix cgroup) == 'systemd-run --user --scope -p Delegate=yes sbx-run'* ]] || fail "$(fix cgroup)"
  doctor user_session systemd-run --user --scope -p Delegate=yes --quiet
  exits 0
  found cgroup ok
}

# unit PROPERTY: in a system service with that property.
unit() { systemd-run --pipe --wait --quiet -p Delegate=yes -p "$1" -- "${@:2}"; }

case_doctor_unit_restrict_namespaces() {
  doctor unit RestrictNamespaces=yes
  exits 1
  found namespaces missing
  [[ $(fix namespaces) == *RestrictNamespaces=no* ]] || fail "$(fix namespaces)"
  doctor unit RestrictNamespaces=no
  exits 0
  found namespaces ok
}
