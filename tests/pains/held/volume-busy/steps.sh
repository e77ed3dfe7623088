#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl wait --for=condition=Ready --timeout=60s pod/web >/dev/null
if [ -n "$FIXED" ]; then kubectl delete pod web --timeout=20s; exit; fi
uid=$(kubectl get pod web -o jsonpath='{.metadata.uid}')
node=$($LASTCALL status "$CLUSTER" -o json | python3 -c 'import json, sys
print(next(p["pid"] for p in json.load(sys.stdin)["clusters"][0]["processes"] if p["role"] == "node-1"))')
python3 - "$node" "/lastcall/pods/pods/$uid/volumes" <<'PYTHON' &
import ctypes, glob, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
names = ("user", "pid", "mnt")  # the node sees its own processes only
for fd in [os.open(f"/proc/{sys.argv[1]}/ns/{each}", os.O_RDONLY) for each in names]:
    assert libc.setns(fd, 0) == 0
if os.fork() == 0:
    libc.prctl(1, 9)  # it ends with its parent
    os.chdir(next(each for each in glob.glob(f"{sys.argv[2]}/*/cache")))
    time.sleep(120)
os.wait()
PYTHON
agent=$!
sleep 1
! kubectl delete pod web --timeout=6s
kill "$agent"
kubectl wait --for=delete --timeout=150s pod/web
