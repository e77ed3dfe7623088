#!/bin/bash
# What `python -m machines` runs in a guest, one row of its table at a time: rows.sh ROW, as root or as ada.
# The last line says what was seen. Exit status 0: as it should be.
set -uo pipefail
export PATH=$PATH:/usr/sbin:/sbin
CLUSTER=m
SLOW=300s          # emulation: no time here is a measure of lastcall
CGROUPS=/sys/fs/cgroup
SCRATCH=/tmp/rows-$(id -un); mkdir -p "$SCRATCH"

fail() { echo "$*"; exit 1; }
quiet() { "$@" > "$SCRATCH/out" 2>&1; }
last() { tail -n "${1:-1}" "$SCRATCH/out" | tr '\n' ' '; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

kube() {
  [ -n "${KUBECONFIG:-}" ] || { KUBECONFIG=$(lastcall kubeconfig $CLUSTER) || fail "no cluster runs"; export KUBECONFIG; }
  kubectl --request-timeout=1000s "$@"
}

until_ok() {  # until_ok TRIES COMMAND…: once a second
  local tries=$1; shift
  for _ in $(seq "$tries"); do "$@" && return 0; sleep 1; done
  return 1
}

pod() {  # pod NAME RESOURCES COMMAND [RESTART]
  printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s"},"spec":{"restartPolicy":"%s","terminationGracePeriodSeconds":2,
    "containers":[{"name":"c","image":"busybox:1.36","command":["sh","-c",%s],"resources":%s}]}}' \
    "$1" "${4:-Never}" "$(printf %s "$3" | python3 -c 'import json, sys; print(json.dumps(sys.stdin.read()))')" "${2:-{\}}"
}

create() { pod "$@" > "$SCRATCH/pod.json"; kube create -f "$SCRATCH/pod.json" > "$SCRATCH/out" 2>&1 || fail "create: $(last)"; }
phase_is() { kube wait --for="jsonpath={.status.phase}=$2" "pod/$1" --timeout="${3:-600s}" > "$SCRATCH/wait" 2>&1; }
running() { phase_is "$1" Running || fail "$1 does not run: $(kube get pod "$1" | tail -1)"; }
delete() { kube delete pod "$1" --wait=true > "$SCRATCH/out" 2>&1 || fail "delete $1: $(last)"; }

group_of() {  # the control group of a Pod's only container
  local uid; uid=$(kube get pod "$1" -o 'jsonpath={.metadata.uid}'); [ -n "$uid" ] || return
  find $CGROUPS -mindepth 2 -type d -path "*/pod$uid/*" ! -name init | head -1
}
value() { cat "$1/$2" 2>/dev/null || echo "no $2"; }

ours() {  # what of lastcall is on this machine, but for what installed it
  ps -e -o pid=,args= | grep '[l]astcall' | grep -v -e rows- -e systemd-run -e 'ssh' -e /opt/src -e '[s]udo' || true
  find $CGROUPS -type d -name 'lastcall-*' 2>/dev/null
  systemctl list-units --all --plain --no-legend 'lastcall-*'
  [ "$(id -u)" = 0 ] || systemctl --user list-units --all --plain --no-legend 'lastcall-*'
  grep lastcall /proc/mounts | grep -v -e ' /opt' -e ' /share'
  ip -o link | grep -v -e ' lo:' -e ': e[a-z0-9]*:'
  as_root nft list tables
}
nothing_left() { until_ok 30 none || fail "left: $(ours | head -3 | tr '\n' ' ')"; }
none() { [ -z "$(ours)" ]; }
end_cluster() { quiet lastcall down $CLUSTER || fail "down: $(last)"; }

row_doctor() {
  lastcall doctor --output json > "$SCRATCH/doctor.json"; local status=$?
  python3 - "$SCRATCH/doctor.json" <<'P' || exit 1
import json, sys
needs = json.load(open(sys.argv[1]))["needs"]
less = [f"{need['name']} ({need['found']})" for need in needs if need["status"] != "ok"]
groups = next(need for need in needs if need["name"] == "cgroups")
print(groups["found"] + ("; less: " + ", ".join(less) if less else "; all ok"))
sys.exit(groups["status"] != "ok")
P
  return $status
}

row_demo() { quiet lastcall demo all; local s=$?; [ $s = 3 ] || fail "exit $s: $(last 3)"; echo "exit 3, one graceful, one by SIGKILL"; }
row_run() { quiet lastcall run /opt/examples/term-demo.yaml || fail "exit $?: $(last 3)"; echo "$(grep -m1 ' ended ' "$SCRATCH/out" || last)"; }

row_up() {
  quiet lastcall up $CLUSTER --detach --timeout $SLOW || fail "exit $?: $(last 3)"
  quiet lastcall status || fail "status: $(last 3)"
  grep -q 'node-1 .*Ready' "$SCRATCH/out" || fail "status: $(last 3)"
  local where; where=$(find $CGROUPS -type d -name "lastcall-$CLUSTER-*" ! -name '*.scope' | head -1)
  case ${where#$CGROUPS/} in *.scope/*) ;; '') fail "no groups";; *) [ "$(id -u)" = 0 ] || fail "groups in $where";; esac
  echo "groups in $(echo "${where#$CGROUPS/}" | sed 's,lastcall-[^/]*\.scope/.*,lastcall-….scope/,; s,lastcall-m-.*,,')"
}

row_kubectl() {
  create web '{}' 'trap "exit 0" TERM; echo up; while :; do sleep 0.1; done'; running web
  [ "$(kube logs web)" = up ] || fail "logs"
  [ "$(kube exec web -- echo in)" = in ] || fail "exec"
  quiet kube patch pod web -p '{"metadata":{"labels":{"a":"b"}}}' || fail "patch: $(last)"
  kube get pods -l a=b --no-headers | grep -q Running || fail "get -l"
  until_ok 60 kube_top || fail "top: $(last)"
  delete web
  lastcall story web --cluster $CLUSTER > "$SCRATCH/out" 2>&1 || fail "story: exit $? $(last 2)"
  echo "create, get, logs, exec, patch, top, delete; story: $(grep -m1 ' ended ' "$SCRATCH/out" || last)"
}
kube_top() { quiet kube top pod web --no-headers; }

row_limits() {
  create limited '{"requests":{"cpu":"250m","memory":"32Mi"},"limits":{"cpu":"500m","memory":"64Mi"}}' 'sleep 100000'; running limited
  local g; g=$(group_of limited); [ -n "$g" ] || fail "no group"
  local seen="memory.max $(value "$g" memory.max), swap $(value "$g" memory.swap.max), cpu.max $(value "$g" cpu.max), cpu.weight $(value "$g" cpu.weight)"
  seen="$seen, pids of the Pod $(value "$(dirname "$g")" pids.max), oom.group $(value "$g" memory.oom.group)"
  [ "$(value "$g" memory.max)" = $((64 << 20)) ] && [ "$(value "$g" cpu.max)" = "50000 100000" ] && [ "$(value "$g" cpu.weight)" = 10 ] \
    && [ "$(value "$g" memory.swap.max | tr -d 'a-z. ')" = "0" -o ! -e "$g/memory.swap.max" ] \
    && [ "$(value "$(dirname "$g")" pids.max)" = 4096 ] && [ "$(value "$g" memory.oom.group)" = 1 ] || fail "$seen"
  echo "$seen"
}

row_resize() {  # of the Pod of row_limits
  local g; g=$(group_of limited)
  quiet kube patch pod limited --subresource resize -p '{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"500m"},"limits":{"cpu":"1","memory":"96Mi"}}}]}}' || fail "patch: $(last)"
  until_ok 60 resized "$g" $((96 << 20)) "100000 100000" || fail "up: $(value "$g" memory.max), $(value "$g" cpu.max)"
  quiet kube patch pod limited --subresource resize -p '{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"500m","memory":"64Mi"}}}]}}' || fail "patch: $(last)"
  until_ok 60 resized "$g" $((64 << 20)) "50000 100000" || fail "down: $(value "$g" memory.max), $(value "$g" cpu.max)"
  [ "$(kube get pod limited -o 'jsonpath={.status.containerStatuses[0].restartCount}')" = 0 ] || fail "restarted"
  delete limited
  echo "96Mi and 1 CPU, back to 64Mi and 500m, no restart"
}
resized() { [ "$(value "$1" memory.max)" = "$2" ] && [ "$(value "$1" cpu.max)" = "$3" ]; }

row_oom() {
  create greedy '{"limits":{"memory":"64Mi"}}' 'tail /dev/zero; echo survived; exit 0'
  phase_is greedy Failed || fail "phase $(kube get pod greedy -o 'jsonpath={.status.phase}')"
  local seen; seen=$(kube get pod greedy -o 'jsonpath={.status.containerStatuses[0].state.terminated.reason} {.status.containerStatuses[0].state.terminated.exitCode}')
  delete greedy
  lastcall story greedy --cluster $CLUSTER > "$SCRATCH/out" 2>&1
  [ "$seen" = "OOMKilled 137" ] || fail "$seen"
  local text why; text=$(tr -s ' \n' ' ' < "$SCRATCH/out")
  why=$(grep -o 'PID 1 itself[^.]*\.' <<< "$text") || fail "$seen; the story does not say whose memory it was: $text"
  grep -q 'its memory limit of 64Mi' <<< "$text" || fail "$seen; the story does not name the limit: $text"
  echo "a child asks for more: $seen; story: $why"
}

row_pids() {
  # The shell that cannot fork ends; PID 1 needs no other process.
  create forks '{}' '(i=0; while [ $i -lt 6000 ]; do sleep 100000 & i=$((i+1)); done); exec sleep 100000'
  local g; until_ok 120 has_group forks || fail "no group"; g=$(dirname "$(cat "$SCRATCH/group")")
  until_ok 400 hit "$g" || fail "$(value "$g" pids.current) of $(value "$g" pids.max), never refused"
  local seen="$(value "$g" pids.current) of $(value "$g" pids.max)"
  kube delete pod forks --wait=true > "$SCRATCH/out" 2>&1 || fail "delete: $(last)"
  until_ok 60 gone "$g" || fail "the group stays"
  echo "$seen processes, fork refused; deleted completely"
}
has_group() { group_of "$1" > "$SCRATCH/group"; [ -s "$SCRATCH/group" ]; }
hit() {  # before Linux 6.11 it is counted where the fork was, not where the limit is
  [ "$(cat "$1"/pids.events "$1"/*/pids.events "$1"/*/*/pids.events | awk '$1 == "max" && $2 > 0' | wc -l)" -gt 0 ]
}
gone() { [ ! -e "$1" ]; }

HOG='import re, time
def available(): return int(re.search(r"MemAvailable: *(\d+)", open("/proc/meminfo").read())[1]) >> 10
held = []
while True:
    while available() > 85: held.append(b"x" * (4 << 20))
    time.sleep(0.5)'
row_eviction() {
  create victim '{}' 'head -c 60000000 /dev/zero > /dev/shm/x; sleep 100000'; running victim
  as_root systemd-run --quiet --unit=hog --collect -p OOMScoreAdjust=-900 python3 -c "$HOG" || fail "no hog"
  phase_is victim Failed 900s; local s=$?
  local seen; seen=$(kube get pod victim -o 'jsonpath={.status.reason}: {.status.message}')
  local node; node=$(kube get node node-1 -o 'jsonpath={.status.conditions[?(@.type=="MemoryPressure")].status}')
  as_root systemctl stop hog
  [ $s = 0 ] && [ "${seen%%:*}" = Evicted ] && [ "$node" = True ] || fail "phase not Failed or node not under pressure ($node): $seen"
  kube delete pod victim --wait=true > /dev/null 2>&1
  echo "$seen"
}

row_down() { end_cluster; nothing_left; echo "no process, group, unit, mount, link, table"; }

row_kill() {
  quiet lastcall up $CLUSTER --detach --timeout $SLOW || fail "exit $?: $(last 3)"
  create stays '{"limits":{"memory":"64Mi"}}' 'sleep 100000'; running stays
  local pids; pids=$(lastcall status --output json | python3 -c '
import json, sys
mine = next(each for each in json.load(sys.stdin)["clusters"] if each["name"] == sys.argv[1])
print(*{mine["pid"], *(each["pid"] for each in mine["processes"])})' $CLUSTER)
  [ -n "$pids" ] || fail "no pids"
  kill -9 $pids 2>/dev/null
  sleep 3
  quiet lastcall doctor --output json   # the next start takes away what a killed one left
  nothing_left
  echo "SIGKILL to $(echo $pids | wc -w) processes: nothing left after the next start"
}

row_leftovers() {  # after everything; the images that were pulled may stay
  nothing_left
  local files; files=$(as_root find / -xdev -path /opt -prune -o -path /usr -prune -o -path /proc -prune -o -path /share -prune -o \
    -newer /etc/hostname -name '*lastcall*' -print 2>/dev/null | grep -v -e images -e /rows- | sort)
  for each in $files; do [ -d "$each" ] && [ -z "$(as_root find "$each" ! -type d | grep -v images | head -1)" ] || fail "left: $each"; done
  echo "nothing but empty directories${files:+: $(echo $files)}"
}

row_login() { quiet lastcall up $CLUSTER --detach --timeout $SLOW || fail "exit $?: $(last 3)"; echo "up, and logs out"; }
row_logout() {  # in another session, 15 s after the one of row_login has ended
  quiet lastcall status || fail "status: $(last 2)"
  grep -q 'node-1 .*Ready' "$SCRATCH/out" || fail "does not run any more: $(last 2)"
  create later '{"limits":{"memory":"64Mi"}}' 'sleep 100000'; running later
  end_cluster; nothing_left
  echo "it runs on (linger: $(loginctl show-user "$(id -un)" -p Linger --value 2>/dev/null || echo none)), a new Pod has limits; down leaves nothing"
}

if [ $# -gt 0 ]; then row=$1; shift; "row_$row" "$@"; fi
