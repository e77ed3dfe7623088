"""The status of a Pod: `phase`, `conditions`, `containers` and what of it is written (`decide`): all pure. `manager`
writes.
"""
