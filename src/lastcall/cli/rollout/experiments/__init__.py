"""Experiments and somebody's cluster.

`taking` brings a workload of theirs here (`rollout --from-cluster`), `rolling` makes the experiment there
(`rollout --context`), and `changing` and `leftovers` put back what it changed.
"""
