"""The live page: what a cluster does now, and how each of its Pods ends, in a browser on this machine."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
