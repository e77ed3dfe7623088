"""A workload under load while it is disrupted: `session` is one experiment, `report` and `html` show it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
