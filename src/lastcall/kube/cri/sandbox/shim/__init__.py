"""The shim: a small process that is the parent of every container and every exec of a node."""

# check: standard library
