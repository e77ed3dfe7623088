"""Volumes of Pods as directories of the node."""
