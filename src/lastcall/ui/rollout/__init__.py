"""A rollout on the page: requests over the lanes of the Pods' ends, and what would be lost were it set otherwise."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
