#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl wait --for=condition=Ready --timeout=60s pod/web >/dev/null
if [ -n "$FIXED" ]; then kubectl delete pod web --timeout=30s; else kubectl delete pod web --force --grace-period=0 2>/dev/null; sleep 6; fi
