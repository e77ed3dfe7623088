"""The service proxy of a node: what kube-proxy does, with nftables rules of constant cost."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
