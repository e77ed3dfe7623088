#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl wait -n shop --for=condition=Ready --timeout=60s pod/web >/dev/null
if kubectl delete namespace shop --timeout=8s; then [ -n "$FIXED" ]; else
  kubectl get namespace shop -o jsonpath='{.status.conditions[*].message}'
  [ -z "$FIXED" ]
fi
