"""The client's side of the node agent (`lastcall.trace.agent`): a Job of one Pod on each node with followed Pods.

Pure: `job` (what is created, with which rights), `translate` (lines → records on our clock). `session` speaks with one
agent, `agents` starts, feeds and removes them all.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
