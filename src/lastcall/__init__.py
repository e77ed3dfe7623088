"""lastcall: real Kubernetes Pods on one Linux machine, and the exact story of how each of them ends.

    with lastcall.Cluster() as cluster:
        cluster.apply("pod.yaml", wait=True)
        ending = cluster.delete("pod/web")
        assert ending.graceful, ending.text

docs/python.md is the page for users. What is named in `__all__` is the API; it is imported when it is first used.
"""

from __future__ import annotations

from lastcall._version import __version__

TYPE_CHECKING = False  # without `typing`, which the shim does not load
if TYPE_CHECKING:
    from typing import Any

    from lastcall.errors import (
        ClusterError,
        InvalidManifest,
        LastcallError,
        NoRequests,
        NotFound,
        NotReady,
        StillThere,
        UserError,
    )
    from lastcall.testing.blocking import Cluster, Namespace, rollout
    from lastcall.testing.cluster import AsyncCluster
    from lastcall.testing.ending import Ending
    from lastcall.testing.namespace import AsyncNamespace
    from lastcall.testing.rollout import Rollout
    from lastcall.testing.sent import Requests
    from lastcall.testing.streams import ExecResult

__all__ = [
    "AsyncCluster",
    "AsyncNamespace",
    "Cluster",
    "ClusterError",
    "Ending",
    "ExecResult",
    "InvalidManifest",
    "LastcallError",
    "Namespace",
    "NoRequests",
    "NotFound",
    "NotReady",
    "Requests",
    "Rollout",
    "StillThere",
    "UserError",
    "__version__",
    "rollout",
]

_IN = {
    "cluster": ("AsyncCluster",),
    "blocking": ("Cluster", "Namespace", "rollout"),
    "ending": ("Ending",),
    "namespace": ("AsyncNamespace",),
    "rollout": ("Rollout",),
    "sent": ("Requests",),
    "streams": ("ExecResult",),
}
_ERRORS = (
    "ClusterError",
    "InvalidManifest",
    "LastcallError",
    "NoRequests",
    "NotFound",
    "NotReady",
    "StillThere",
    "UserError",
)
_MODULES = {
    **{name: f"lastcall.testing.{module}" for module, names in _IN.items() for name in names},
    **dict.fromkeys(_ERRORS, "lastcall.errors"),
}


def __getattr__(name: str) -> Any:
    """What the API names: commands import this package without it."""
    if name not in _MODULES:
        raise AttributeError(f"module 'lastcall' has no attribute {name!r}")
    # late: commands import this package without what the API names
    from importlib import import_module

    found = getattr(import_module(_MODULES[name]), name)
    globals()[name] = found
    return found
