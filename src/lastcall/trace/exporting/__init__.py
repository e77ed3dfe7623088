"""What leaves `lastcall trace --serve`: metrics, spans and Events, made of the stories of how Pods ended.

The rules are pure: `workload.py`, `samples.py`, `spans.py`, `warnings.py`, `addresses.py`. `metrics.py`, `otlp.py`,
`event_writer.py` and `server.py` hand over what they decide. No other command imports anything of this.
"""
