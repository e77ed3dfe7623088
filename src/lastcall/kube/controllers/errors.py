"""Refusals that a controller must know apart."""

from lastcall.kube.api.errors import StatusError


def namespace_is_terminating(error: StatusError) -> bool:
    """Return whether a create was refused because its namespace is terminating: nothing to retry.

    Source: apiserver pkg/admission/plugin/namespace/lifecycle (cause NamespaceTerminating).
    """
    causes = (error.status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
