"""Puts a cluster together: the process tree, its namespaces, and the components in their roles."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
