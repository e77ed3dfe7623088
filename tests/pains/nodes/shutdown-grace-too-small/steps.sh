#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl wait --for=condition=Ready --timeout=60s pod/web >/dev/null
if [ -n "$FIXED" ]; then grace=14; else grace=3; fi
$LASTCALL node shutdown node-1 --name "$CLUSTER" --grace "$grace" --grace-critical 0
