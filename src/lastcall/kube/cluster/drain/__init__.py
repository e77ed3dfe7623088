"""Draining a node, as `kubectl drain` does: which Pods have to go (`decide`, pure), and their evictions (`run`)."""
