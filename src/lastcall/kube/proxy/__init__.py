"""The service proxy of a node: what kube-proxy does, with nftables rules of constant cost."""
