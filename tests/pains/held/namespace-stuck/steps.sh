#!/usr/bin/env bash
# The namespace's ServiceAccount, which its Pods need, is made a moment after it: a Pod that comes first is refused.
for _ in $(seq 100); do
  kubectl apply -f "$1" >/dev/null 2>&1 && break
  sleep 0.1
done
kubectl wait -n shop --for=condition=Ready --timeout=60s pod/web >/dev/null
if kubectl delete namespace shop --timeout=8s; then [ -n "$FIXED" ]; else
  kubectl get namespace shop -o jsonpath='{.status.conditions[*].message}'
  [ -z "$FIXED" ]
fi
