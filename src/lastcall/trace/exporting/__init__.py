"""What leaves `lastcall trace --serve`: metrics, spans and Events, made of the stories of how Pods ended.

The rules are pure: `workload.py`, `samples.py`, `spans.py`, `warnings.py`, `addresses.py`. `metrics.py`, `otlp.py`,
`event_writer.py` and `server.py` hand over what they decide. No other command imports anything of this.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
