"""Pods that are created and ended: `session` is one run on a cluster of its own, `checks` its results for CI."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
