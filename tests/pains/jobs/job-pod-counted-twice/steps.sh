#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
until pod=$(kubectl get pod -l app=report -o name | head -1) && [ -n "$pod" ]; do sleep 0.2; done
kubectl wait --for=condition=Ready --timeout=60s "$pod" >/dev/null
kubectl delete "$pod" --wait=false >/dev/null
for _ in $(seq 12); do
  running=$(kubectl get pod -l app=report -o jsonpath='{range .items[*]}{.status.phase}{"\n"}{end}' | grep -c Running)
  [ "$running" = 2 ] && break
  sleep 0.5
done
echo "$running Pods of the Job run at the same time"
if [ -n "$FIXED" ]; then [ "$running" = 1 ]; else [ "$running" = 2 ]; fi
kubectl wait --for=delete --timeout=40s "$pod" >/dev/null
echo "${pod#pod/}" >name
