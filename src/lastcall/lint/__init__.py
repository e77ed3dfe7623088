"""What is wrong with manifests, told without a cluster: pure functions over objects, each rule by a stable id."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
