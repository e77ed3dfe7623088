#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl rollout status deployment/web --timeout=60s >/dev/null
kubectl wait --for=condition=Ready --timeout=60s pod/client >/dev/null
in_client() { kubectl exec client -- python3 -c "$1" "${@:2}"; }
address=$(in_client 'import socket; print(socket.gethostbyname("web"))')
port=8080
[ -n "$FIXED" ] && port=80
kubectl rollout restart deployment/web >/dev/null
kubectl rollout status deployment/web --timeout=60s >/dev/null
sleep 3
ask='import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)'
if in_client "$ask" "$address" "$port" 2>/dev/null; then [ -n "$FIXED" ]; else [ -z "$FIXED" ]; fi
in_client 'import socket; socket.create_connection((socket.gethostbyname("web"), int(__import__("sys").argv[1])), 2)' "$port"
