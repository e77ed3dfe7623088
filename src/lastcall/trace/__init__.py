"""The lives of Pods of any cluster, as its API shows them; `agent` adds what a node sees, `exporting` passes it on."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
