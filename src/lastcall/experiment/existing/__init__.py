"""Experiments on an existing cluster: plan, consent, each change in a ledger before it is made, restore.

`run_session` ends Pods of manifests there, `rollout_session` disrupts a workload under load, `copy` brings one here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
