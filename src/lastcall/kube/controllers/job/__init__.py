"""Jobs. What is made and deleted and when a Job has ended: `decide`; how Pods are counted: `tracking`. `controller`
acts.

All but `controller` and `ttl_after_finished`, which deletes Jobs that have ended, are pure.
"""
