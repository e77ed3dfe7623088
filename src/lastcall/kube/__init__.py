"""Kubernetes itself: API server, store, controllers, scheduler, kubelet, container runtime, service proxy, clients."""
