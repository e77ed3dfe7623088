"""Why something is waited for: `follow` and `owners` watch, `why_not_ready` and `causes` put it in words (pure)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
