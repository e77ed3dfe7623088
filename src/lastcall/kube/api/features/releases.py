"""List the releases of Kubernetes that lastcall reproduces."""

DEFAULT_VERSION = "1.37"
"""Of a cluster that is asked for none. `cli/options.py` has it, too: commands load nothing of Kubernetes for it."""
RELEASES = {"1.23": "1.23.17", "1.27": "1.27.16", "1.36": "1.36.2", "1.37": "1.37.0"}
"""The release that stands for each supported minor version: its last one, the newest one recorded, or the one read."""
