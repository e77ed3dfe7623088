"""Why something is waited for: `pod_watch` and `owner_watch` follow, `why_not_ready` and `causes` put it in words."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
