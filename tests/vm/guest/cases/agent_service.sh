# agentd as systemd runs it, beside sbxd: the unit's hardening with a real request, the key, a restart.
# Sourced by run-cases, variant `systemd`, with service.sh.
# shellcheck shell=bash
# shellcheck disable=SC2034  # ask_socket is for ask, of service.sh

# The key is checked for where it must not be; recordings answer, as no network is there.
readonly agent_key=sk-guest-0123456789abcdef
readonly agent_recordings=/srv/recordings

install_agent_service() {
  local unit_directory=/etc/systemd/system binary
  install_service
  ask_socket=/run/agentd/agentd.sock
  systemctl is-active --quiet agentd.socket && return
  install -m 0644 "$VM_BUILD"/packaging/agentd.{service,socket} "$unit_directory"
  binary=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit_directory/agentd.service")
  install -m 0755 "$VM_BUILD/bin/agentd" "$binary"
  install -m 0755 "$VM_BUILD/bin/agentctl" /usr/local/bin/agentctl
  mkdir -p "$agent_recordings"
  tr -d '\n' >"$agent_recordings/guest.jsonl" <<'RECORDING'
{"prompt": "codegen.v1.python", "label": "guest", "call": 1,
 "request_sha256": "0000000000000000000000000000000000000000000000000000000000000000",
 "reply": "```python\nprint('{\"type\": \"text\", \"data\": \"%d\"}' % (6*7))\n```",
 "finish_reason": "stop", "usage": {"input_tokens": 100, "output_tokens": 10}}
RECORDING
  agent_config 'kind = "replay"' "recordings = [\"$agent_recordings\"]"
  systemctl daemon-reload
  systemctl start agentd.socket
}

# agent_config LINE…: of [provider].
agent_config() {
  install -d /etc/sbx
  printf '%s\n' '[provider]' "$@" >/etc/sbx/agentd.toml
}

# Asks what the recording answers, to its end; the id is in `request`.
ask_agent() {
  answers '202' POST /v1/requests '{"text": "how much is six by seven?", "label": "guest"}'
  request=$(grep -o 'rq_[0-9a-f]*' answer.out | head -n 1)
  answers 'event: end' GET "/v1/requests/$request/events"
}

case_agent_service_answers_a_request() {
  local request
  install_agent_service
  systemctl is-active agentd.service && fail "it runs before anybody asked"
  [ "$(stat -c '%a %U %G' /run/agentd/agentd.sock)" = "660 root agentd" ] || fail "$(stat /run/agentd/agentd.sock)"
  ! as_user python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("/run/agentd/agentd.sock")' \
    2>refused.out || fail "a stranger could connect"
  grep -q PermissionError refused.out || { cat refused.out; fail "another error"; }
  ask_agent
  agentctl show "$request" >shown.out 2>&1 || { cat shown.out; service_log; fail "agentctl's exit code"; }
  grep -qx 42 shown.out || { cat shown.out; service_log; fail "not the answer"; }
  agentctl doctor || fail "doctor complains"
}

# What the unit takes away, it answers without.
case_agent_service_is_a_bare_user() {
  local uid status
  install_agent_service
  answers 200 GET /healthz
  uid=$(id -u agentd)
  status=$(cat "/proc/$(main_pid agentd.service)/status")
  grep -Eq "^Uid:.$uid.$uid.$uid.$uid\$" <<<"$status" || fail "$(grep ^Uid <<<"$status")"
  grep -Eq '^CapEff:.0+$' <<<"$status" || fail "$(grep ^CapEff <<<"$status")"
  grep -Eq '^CapBnd:.0+$' <<<"$status" || fail "$(grep ^CapBnd <<<"$status")"
  grep -Eq '^NoNewPrivs:.1$' <<<"$status" || fail "$(grep ^NoNew <<<"$status")"
  grep -Eq '^Seccomp:.2$' <<<"$status" || fail "$(grep ^Seccomp <<<"$status")"
  [ "$(stat -c '%a %U' /var/lib/agentd)" = "700 agentd" ] || fail "$(stat /var/lib/agentd)"
  systemd-analyze security --no-pager agentd.service | tail -n 1
}

# The file is root's alone; without it the unit has started in the cases before.
case_agent_service_takes_its_key_from_a_credential() {
  install_agent_service
  echo "$agent_key" | install -D -m 0600 /dev/stdin /etc/credstore/agentd.key
  agent_config 'kind = "openai"' 'base_url = "http://127.0.0.1:9/v1"' 'model = "guest"' \
    'api_key_credential = "agentd.key"'
  systemctl restart agentd.service || { service_log; fail "it does not start"; }
  answers '"kind": *"openai"' GET /v1/info
  ! tr '\0' '\n' <"/proc/$(main_pid agentd.service)/environ" | grep -F "$agent_key" || fail "the key is in the environment"
  ! journalctl -u agentd.service --no-pager | grep -F "$agent_key" || fail "the key is in the log"
  ! grep -rF "$agent_key" /var/lib/agentd || fail "the key is in the state directory"
  rm /etc/credstore/agentd.key
  agent_config 'kind = "replay"' "recordings = [\"$agent_recordings\"]"
  systemctl restart agentd.service || { service_log; fail "it does not start without the key"; }
}

case_agent_service_comes_back_with_its_history() {
  local request before
  install_agent_service
  ask_agent
  before=$(main_pid agentd.service)
  kill -KILL "$before"
  answers "$request" GET /v1/requests
  [ "$(main_pid agentd.service)" != "$before" ] || fail "the same process"
  ask_agent
  answers '"state": *"succeeded"' GET "/v1/requests/$request"
  systemctl stop agentd.socket agentd.service
  [ ! -e /run/agentd/agentd.sock ] || fail "the socket file is left"
}
