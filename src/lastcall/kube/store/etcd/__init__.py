"""etcd as the store, with the keys and the encoding of kube-apiserver. Needs the extra `lastcall[etcd]` (grpcio)."""
