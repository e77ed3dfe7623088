"""The Pod network made by CNI plugins: which, how they are called, and what of it is remembered."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
