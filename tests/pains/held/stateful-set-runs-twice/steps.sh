#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl rollout status statefulset/db --timeout=60s >/dev/null
old=$(kubectl get pod db-0 -o jsonpath='{.metadata.uid}')
began=$(date +%s%N)
if [ -n "$FIXED" ]; then kubectl delete pod db-0 --timeout=40s >/dev/null; else kubectl delete pod db-0 --force --grace-period=0 >/dev/null 2>&1; fi
until [ "$(kubectl get pod db-0 -o jsonpath='{.metadata.uid}{.status.containerStatuses[0].ready}' 2>/dev/null)" != "$old" ] &&
  [ "$(kubectl get pod db-0 -o jsonpath='{.status.containerStatuses[0].ready}' 2>/dev/null)" = true ]; do sleep 0.2; done
took=$(( ($(date +%s%N) - began) / 1000000 ))
echo "the next db-0 was ready after $took ms"
if [ -n "$FIXED" ]; then [ "$took" -ge 4500 ]; else [ "$took" -lt 4500 ]; fi
sleep 6
