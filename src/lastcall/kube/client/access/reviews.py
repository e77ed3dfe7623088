"""Asks the API server what its user may do, before a command begins.

Source: SelfSubjectAccessReview (authorization.k8s.io/v1), SelfSubjectReview (v1beta1 before 1.28).
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

import orjson

from lastcall.kube.api.errors import StatusError
from lastcall.kube.client.access.rights import Right


class Request(Protocol):
    """`HTTPClient.request`."""

    async def __call__(self, method: str, path: str, *, body: Any) -> bytes: ...


async def user_name(request: Request) -> str:
    """Return whom the API server takes us for, "" where it has no such API. Raises StatusError, ConnectionLost."""
    for version in ("v1", "v1beta1"):
        group_version = f"authentication.k8s.io/{version}"
        body = {"apiVersion": group_version, "kind": "SelfSubjectReview"}
        try:
            answer = orjson.loads(await request("POST", f"/apis/{group_version}/selfsubjectreviews", body=body))
            return str(answer["status"]["userInfo"].get("username", ""))
        except StatusError as error:
            if error.code not in (403, 404):
                raise
    return ""


async def denied(request: Request, wanted: Iterable[Right]) -> list[Right]:
    """Return the rights that the user does not have, with the user's name. Raises StatusError, ConnectionLost."""
    found = [right for right in wanted if not await _is_allowed(request, right)]
    user = await user_name(request) if found else ""
    return [replace(right, user=right.user or user) for right in found]


async def _is_allowed(request: Request, right: Right) -> bool:
    plural, _, subresource = right.resource.partition("/")
    asked = {
        "namespace": right.namespace,
        "verb": right.verb,
        "group": right.group,
        "resource": plural,
        "subresource": subresource,
        "name": right.name,
    }
    spec: dict[str, Any] = (
        {"nonResourceAttributes": {"path": right.path, "verb": right.verb}}
        if right.path
        else {"resourceAttributes": {key: value for key, value in asked.items() if value}}
    )
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    answer = orjson.loads(await request("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=body))
    return bool(answer.get("status", {}).get("allowed"))
