"""One worker for each Pod. `transitions` is its life, as tables (pure); `manager` performs it, `syncer` does the
work.

`pod_manager` knows which Pods the node is to run, `mirrors` keeps the API objects of static ones.
"""
