"""The Kubernetes API as data: kinds, defaulting, validation, selectors, quantities, patches, Status errors. No I/O."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
