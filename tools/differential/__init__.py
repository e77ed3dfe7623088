"""The same requests to lastcall's API server and to a real one, and where the answers differ.

`python -m differential --count 25000` starts both (etcd and kube-apiserver of the directory that
KUBERNETES_HOME names, no controllers on either side), sends requests that a seed makes, and groups what differs by its
cause. No part of the wheel. The rules: at most a fifth of the requests are reads, at least a third are refused by the
real server, every kind that it serves gets every verb. What is not compared is in `normalising` alone.
"""
