"""One request about a resource, as the handlers of all verbs take it.

Source: apiserver pkg/endpoints/handlers/rest.go:RequestScope.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.world.aiohttp_inside import server as web


class RequestScope(NamedTuple):
    """`user` may do what `info` says with `resource`. A tuple: one is made for each request."""

    request: web.BaseRequest
    info: RequestInfo
    resource: Resource
    user: UserInfo


Verb = Callable[[RequestScope], Awaitable[web.StreamResponse]]
"""Answers one request. Raises StatusError."""
