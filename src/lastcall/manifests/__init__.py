"""Manifests: read and checked (`read`), created (`apply`), what owns Pods (`workloads`), what nobody acts on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
