"""The live page of a command (`--ui`): a process of its own, which lives as long as the command."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
