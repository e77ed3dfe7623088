"""The garbage collector: objects without an owner. `graph` knows owners (pure), `controller` deletes; Pods without a
node: `pods`.
"""
