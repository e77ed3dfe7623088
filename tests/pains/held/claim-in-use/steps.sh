#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl wait --for=condition=Ready --timeout=60s pod/web >/dev/null
if [ -n "$FIXED" ]; then
  kubectl delete pod web --timeout=30s
  kubectl delete pvc data --timeout=10s
else
  ! kubectl delete pvc data --timeout=3s
  kubectl delete pod web --timeout=30s
  kubectl wait --for=delete --timeout=20s pvc/data
fi
