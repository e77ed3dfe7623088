"""The garbage collector: who has no owner left. `graph` knows owners (pure), `controller` deletes; Pods without a
node: `pods`.
"""
