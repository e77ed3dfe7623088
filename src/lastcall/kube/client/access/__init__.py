"""Connect a client to an existing cluster: what a kubeconfig says, credentials that change, and proxies."""
