#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl wait --for=condition=Ready --timeout=60s pod/web >/dev/null
$LASTCALL node disconnect node-2 --name "$CLUSTER"
for _ in $(seq 120); do
  [ -n "$(kubectl get pod web -o jsonpath='{.metadata.deletionTimestamp}' 2>/dev/null)" ] && break
  sleep 1
done
kubectl get pod web
sleep 3
if [ -n "$FIXED" ]; then
  kubectl taint node node-2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
  kubectl wait --for=delete --timeout=60s pod/web
else
  kubectl get pod web -o jsonpath='{.metadata.deletionTimestamp}' | grep -q .
fi
