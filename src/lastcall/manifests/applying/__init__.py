"""Manifests on a cluster that runs: applied by server-side apply, waited for. `up -f` and the Python API share it."""
