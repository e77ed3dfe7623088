"""The parts of a kubelet by subject, joined by `kube/node/assembly.py`: each module makes some that belong together."""
