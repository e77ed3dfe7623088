"""Turn a Pod's spec into a sandbox and containers. `decide` says what a sync has to do, `container_config`
what CRI gets (both pure).

`manager` and `start_container` act, `pleg` watches.
"""
