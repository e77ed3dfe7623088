"""ReplicaSets and ReplicationControllers. Which Pods go first: `ranking`; status: `status` (both pure). `controller`
acts.
"""
