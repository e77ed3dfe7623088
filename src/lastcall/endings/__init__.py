"""From the records of a Pod to the story of how it ended: facts, causes, findings, the verdict, and how it is shown."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
