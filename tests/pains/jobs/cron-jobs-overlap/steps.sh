#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
until kubectl get jobs -o name | grep -q .; do sleep 1; done
sleep 65
active=$(kubectl get cronjob report -o jsonpath='{.status.active[*].name}' | wc -w)
echo "$active Jobs are active"
if [ -n "$FIXED" ]; then [ "$active" = 1 ]; else [ "$active" = 2 ]; fi
