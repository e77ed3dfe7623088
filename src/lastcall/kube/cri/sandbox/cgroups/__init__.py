"""Control groups: one interface (`api.py`), version 2, version 1, and none. Standard library only: the shim uses it."""

# check: standard library
