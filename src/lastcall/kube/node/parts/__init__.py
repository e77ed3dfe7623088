"""The parts of a kubelet by subject: each module makes some that belong together. `kube/node/assembly.py` joins them."""
