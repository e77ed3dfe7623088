"""The horizontal-pod-autoscaler controller: replicas by what Pods use."""
