"""What is wrong with manifests, without a cluster: files are read (`sources`), rules are pure and have stable ids."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
