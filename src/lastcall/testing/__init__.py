"""Clusters for tests and scripts: `lastcall.Cluster` (blocking), `lastcall.AsyncCluster`, and the pytest plugin.

A cluster runs in a process of its own (`lastcall up --die-with-parent`), so that it ends with the one that started it,
and what is asked of it goes over its API and its control socket. docs/python.md is the page for users.
"""
