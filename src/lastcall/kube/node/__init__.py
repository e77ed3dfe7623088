"""The kubelet: sync loop, pod workers, kill path, hooks, probes, status, volumes."""
