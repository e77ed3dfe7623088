#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
until pod=$(kubectl get pod -l app=report -o name | head -1) && [ -n "$pod" ]; do sleep 0.2; done
kubectl wait --for=condition=Ready --timeout=60s "$pod" >/dev/null
kubectl delete "$pod" --wait=false >/dev/null
SECONDS=0
while true; do  # a replacement waits for its back-off of ten seconds
  running=$(kubectl get pod -l app=report -o jsonpath='{range .items[*]}{.status.phase}{"\n"}{end}' | grep -c Running) || true
  if [ "$running" = 2 ] || [ "$running" = 0 ] || [ "$SECONDS" -gt 13 ]; then break; fi
  sleep 0.5
done
echo "$running Pods of the Job run at the same time"
if [ -n "$FIXED" ]; then [ "$running" = 1 ]; else [ "$running" = 2 ]; fi
kubectl wait --for=delete --timeout=40s "$pod" >/dev/null
echo "${pod#pod/}" >name
