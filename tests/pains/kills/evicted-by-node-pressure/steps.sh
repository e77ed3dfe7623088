#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl wait --for=condition=Ready --timeout=60s pod/web >/dev/null
for _ in $(seq 60); do
  [ "$(kubectl get pod web -o jsonpath='{.status.reason}')" = Evicted ] && break
  [ -n "$FIXED" ] && [ "$SECONDS" -ge 25 ] && break
  sleep 1
done
kubectl get pod web -o jsonpath='{.status.phase} {.status.reason} {.status.message}'
if [ -n "$FIXED" ]; then kubectl delete pod web; else kubectl get pod web -o jsonpath='{.status.reason}' | grep -q Evicted; fi
