"""Ways out of the cluster: `pair` is the node's, `pods` the Pods'. What is outside: `outside` (pure)."""
