"""Manifests on a cluster that runs: applied by server-side apply, waited for. `up -f` and the Python API share it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
