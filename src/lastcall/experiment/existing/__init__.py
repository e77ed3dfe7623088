"""`lastcall run --context`: Pods of manifests are created and ended on somebody's cluster, and all is removed again.

`checks.py` says what is refused and what will be done, `session.py` does it, `running.py` connects both to the user,
`run.py` is the command itself, with or without a cluster.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
