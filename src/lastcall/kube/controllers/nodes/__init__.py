"""Lost nodes: are they alive (`health`), how fast are they emptied (`zones`), which Pods leave (`taints`): all pure.

`lifecycle` and `taint_eviction` act; `ttl` annotates nodes.
"""
