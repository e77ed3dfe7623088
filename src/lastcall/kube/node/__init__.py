"""The kubelet: sync loop, pod workers, kill path, hooks, probes, status, volumes."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
