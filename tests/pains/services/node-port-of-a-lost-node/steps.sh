#!/usr/bin/env bash
kubectl apply -f "$1" >/dev/null
kubectl rollout status deployment/web --timeout=60s >/dev/null
kubectl wait --for=condition=Ready --timeout=60s pod/client >/dev/null
if [ -n "$FIXED" ]; then
  balancer() { kubectl get service web -o jsonpath='{.status.loadBalancer.ingress[0].ip}'; }
  until [ -n "$(balancer)" ]; do sleep 0.2; done
  address=$(balancer) port=80
else
  address=$(kubectl get node node-2 -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}')
  port=$(kubectl get service web -o jsonpath='{.spec.ports[0].nodePort}')
fi
ask() { kubectl exec client -- python3 -c "import socket; socket.create_connection(('$address', $port), 3)" 2>/dev/null; }
until ask; do sleep 0.2; done
$LASTCALL node disconnect node-2 --name "$CLUSTER"
if ask; then [ -n "$FIXED" ]; else [ -z "$FIXED" ]; fi
