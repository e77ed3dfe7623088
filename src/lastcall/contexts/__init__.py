"""An existing cluster: which one, as whom, and what is wrong when it does not answer.

    async with connected(choose(asked), agent="lastcall-trace", warn=note) as cluster:   # UserError, WorldError
        pods = await cluster.client.list(PODS, namespace)

What the client raises inside the block (StatusError, ConnectionLost) leaves it as UserError or WorldError with its
explanation (`diagnosis.py`). The options of commands are in `cli/context_options.py`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
