"""Experiments on Pods: create, wait until ready, disturb, follow, report, clean up."""
