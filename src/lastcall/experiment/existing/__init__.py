"""Experiments on an existing cluster: plan, consent, each change in a ledger before it is made, restore.

`run` ends Pods of manifests there, `workspace` is where a rollout there takes place, `copy` brings one here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
