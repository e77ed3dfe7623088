"""The releases of Kubernetes that lastcall stands for."""

RELEASES = {"1.23": "1.23.17", "1.27": "1.27.16", "1.36": "1.36.2"}
"""The release that stands for each supported minor version: its last one, or the newest one recorded."""
