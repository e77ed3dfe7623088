"""Report what a node's parts counted, by the names of Kubernetes. Imported with the first request."""
