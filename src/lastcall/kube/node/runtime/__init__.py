"""From a Pod's spec to sandbox and containers. What a sync has to do: `decide`, what CRI is told: `container_config`
(both pure).

`manager` and `start_container` act, `pleg` watches.
"""
