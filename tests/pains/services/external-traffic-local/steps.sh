#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl rollout status deployment/web --timeout=60s >/dev/null
kubectl patch service web --type=json -p '[{"op":"replace","path":"/spec/ports/0/nodePort","value":31787}]' >/dev/null
until curl -sf -m 1 http://127.0.0.1:31787/ >/dev/null; do sleep 0.2; done
kubectl scale deployment/web --replicas=0 >/dev/null
failed=0
for _ in $(seq 20); do curl -sf -m 1 http://127.0.0.1:31787/ >/dev/null || failed=$((failed + 1)); sleep 0.1; done
echo "$failed of 20 connections failed"
if [ -n "$FIXED" ]; then [ "$failed" = 0 ]; else [ "$failed" -gt 5 ]; fi
