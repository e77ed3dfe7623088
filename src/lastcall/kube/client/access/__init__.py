"""How a client gets into somebody's cluster: what a kubeconfig says, credentials that change, and proxies."""
