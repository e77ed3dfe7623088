"""Short Pod manifests for tests on the real kernel. The shell is busybox's: the host's own stands in for the image."""

from typing import Any

Manifest = dict[str, Any]

EXITS_ON_TERM = "trap 'echo TERM; exit 0' TERM; echo start; while true; do sleep 0.05; done"
"""A shell runs its trap when the running command has ended: at most 0.05 s late."""

IGNORES_TERM = "trap 'echo TERM' TERM; echo start; while true; do sleep 0.05; done"
"""Has a handler, and goes on."""


def container(name: str, script: str = EXITS_ON_TERM, *, pre_stop: str = "", **fields: Any) -> Manifest:
    """`pre_stop` is a shell script."""
    made: Manifest = {"name": name, "image": "busybox:1.36", "command": ["sh", "-c", script], **fields}
    if pre_stop:
        made["lifecycle"] = {"preStop": {"exec": {"command": ["sh", "-c", pre_stop]}}}
    return made


def pod(
    name: str, *containers: Manifest, grace: int = 5, labels: dict[str, str] | None = None, **spec: Any
) -> Manifest:
    """Without containers: one that exits on SIGTERM."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": grace,
            "containers": list(containers) or [container("app")],
            **spec,
        },
    }


def service(name: str, port: int = 80, target: int = 8080) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target}]},
    }
