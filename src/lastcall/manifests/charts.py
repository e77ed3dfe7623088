"""Which paths are charts of Helm. `manifests/helm.py` renders them."""

import os

PACKAGE = ".tgz"


def is_chart(path: str) -> bool:
    """Return True if a path is a chart: a directory with a Chart.yaml, or a package."""
    if os.path.isdir(path):
        return os.path.isfile(os.path.join(path, "Chart.yaml"))
    return path.endswith(PACKAGE) and os.path.isfile(path)
