#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl wait --for=condition=Ready --timeout=60s pod/web >/dev/null
if [ -n "$FIXED" ]; then kubectl delete pod web --timeout=30s; exit; fi
touch cni/fails
! kubectl delete pod web --timeout=10s
rm cni/fails
kubectl wait --for=delete --timeout=90s pod/web
