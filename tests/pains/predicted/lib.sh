# Words of the scripts in predicted/*/*.yaml. $KUBECONFIG is that of the namespace.

events() { kubectl get events -o go-template='{{range .items}}{{.involvedObject.kind}}/{{.involvedObject.name}} {{.reason}}: {{.message}}{{"\n"}}{{end}}'; }

# event PATTERN: an Event says so (reason and message).
event() { events | grep -E -- "$1"; }

# available: each Deployment has all its new Pods available, and no old one.
available() {
  local each
  for each in $(kubectl get deployments -o name); do kubectl rollout status "$each" --timeout=1s >/dev/null 2>&1 || return 1; done
}

# endpoints SERVICE: the addresses that it sends to.
endpoints() {
  kubectl get endpointslices -l "kubernetes.io/service-name=$1" \
    -o go-template='{{range .items}}{{range .endpoints}}{{if .conditions.ready}}{{range .addresses}}{{.}} {{end}}{{end}}{{end}}{{end}}'
}

# restarts: how often a container of the namespace was started again.
restarts() { kubectl get pods -o jsonpath='{range .items[*]}{.status.containerStatuses[*].restartCount}{" "}{end}' | tr ' ' '\n' | awk '{n += $1} END {print n + 0}'; }

# waiting PATTERN: a container of a Pod waits, or has ended, with such a reason and message.
waiting() {
  kubectl get pods -o go-template='{{range .items}}{{range .status.containerStatuses}}{{with .state.waiting}}{{.reason}}: {{.message}}{{"\n"}}{{end}}{{with .state.terminated}}{{.reason}}: {{.message}}{{"\n"}}{{end}}{{with .lastState.terminated}}{{.reason}}: {{.message}}{{"\n"}}{{end}}{{end}}{{end}}' | grep -E -- "$1"
}

# until_available SECONDS: waits for `available`.
until_available() { local end=$((SECONDS + $1)); until available; do [ $SECONDS -lt $end ] || return 1; sleep 0.25; done; }

# pod: a Pod of app=web that is not ending.
pod() { kubectl get pods -l app=web -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}}{{"\n"}}{{end}}{{end}}' | head -1; }

# asked HOST PORT TIMES: how many of so many connections of the Pod client fail.
asked() {
  kubectl exec client -- python3 -c '
import socket, sys, time
failed = 0
for _ in range(int(sys.argv[3])):
    try:
        socket.create_connection((sys.argv[1], int(sys.argv[2])), 2).close()
    except OSError:
        failed += 1
    time.sleep(0.02)
print(failed)' "$@"
}

# unanswered URL TIMES: how many of so many requests of the Pod client are not answered with 200.
unanswered() {
  kubectl exec client -- python3 -c '
import sys, time, urllib.request
failed = 0
for _ in range(int(sys.argv[2])):
    try:
        urllib.request.urlopen(sys.argv[1], timeout=2).read()
    except OSError:
        failed += 1
    time.sleep(0.02)
print(failed)' "$@"
}

# log_of_its_end POD: deletes it; $WORK/log has what it said until it was gone.
log_of_its_end() {
  kubectl logs -f "pod/$1" >"$WORK/log" 2>&1 &
  local reader=$!
  sleep 1
  kubectl delete pod "$1" --timeout=40s >/dev/null
  wait $reader || true
}

told() { kubectl get pods,replicasets -o wide; events | tail -20; }
