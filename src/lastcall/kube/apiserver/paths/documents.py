"""Documents by path: discovery, `/version`, the keys and configuration of issued tokens, health.

Sources: apiserver pkg/endpoints/discovery, pkg/server/routes.
"""

import orjson

from lastcall.kube.api.errors import method_not_allowed, resource_not_found
from lastcall.kube.apiserver.answers.responses import Responses
from lastcall.kube.apiserver.auth.tokens import TokenIssuer
from lastcall.kube.apiserver.catalog import Catalog
from lastcall.kube.apiserver.paths.health import health
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.apiserver.wire.negotiation import (
    INDENTED,
    JSON,
    PLAIN,
    check_offered,
    negotiate,
    not_acceptable,
)
from lastcall.kube.apiserver.wire.requests import pretty
from lastcall.world.aiohttp_inside import server as web

JWKS = "application/jwk-set+json"

ANY_METHOD = ("/", "/apis")
"""Paths with no router of methods before them (kube-aggregator apiserver.go, apiserver pkg/server/routes/index.go)."""


class Documents:
    """`answer` serves a path that is not of objects."""

    def __init__(self, catalog: Catalog, issuer: TokenIssuer, responses: Responses) -> None:
        self._catalog = catalog
        self._issuer = issuer
        self._responses = responses

    def answer(self, request: web.BaseRequest, info: RequestInfo) -> web.Response:
        """Answer with a document. Raises StatusError; 404 in plain text for paths that no Kubernetes has."""
        path = request.path.rstrip("/") or "/"
        if (answer := health(path, request.query)) is not None:
            return web.Response(status=answer.status, text=answer.text, headers={"X-Content-Type-Options": "nosniff"})
        accept = request.headers.get("Accept", "")
        if path in self._catalog.discovery.aggregated and "apidiscovery.k8s.io" in accept:
            return self._aggregated(request, path, accept)
        if path == "/openid/v1/jwks":
            check_offered(accept, JWKS)
            return web.Response(body=orjson.dumps(self._issuer.jwks()), content_type=JWKS)
        if path == "/.well-known/openid-configuration":
            return web.Response(body=orjson.dumps(self._issuer.configuration(request.host)), content_type=JSON)
        document = self._catalog.discovery.documents.get(path)
        if document is None:
            if info.path.startswith(("/api/", "/apis/")) and len(path.split("/")) > 2 and path.startswith("/api/"):
                raise resource_not_found()
            group = path.split("/")[2] if path.startswith("/apis/") else ""
            if group and self._catalog.discovery.has_group(group):
                raise resource_not_found()
            return web.Response(status=404, text="404 page not found\n")
        # of a CONNECT there is no path: its target is an authority (RFC 9110 section 9.3.6)
        if request.method != "GET" and (path not in ANY_METHOD or request.method == "CONNECT"):
            raise method_not_allowed()
        if path == "/":
            media_type = PLAIN
        elif path == "/version":
            check_offered(accept, JSON)
            media_type = INDENTED
        else:
            media_type = negotiate(accept, list_=False, table=False)
        return self._responses.document(request, document, pretty(request, media_type))

    def _aggregated(self, request: web.BaseRequest, path: str, accept: str) -> web.Response:
        for clause in accept.split(","):
            pieces = {piece.strip() for piece in clause.split(";")}
            for version, (body, etag) in self._catalog.discovery.aggregated[path].items():
                form = ("g=apidiscovery.k8s.io", f"v={version}", "as=APIGroupDiscoveryList")
                if not pieces.issuperset(form):
                    continue
                headers = {"ETag": etag, "Vary": "Accept", "Cache-Control": "public"}
                if request.headers.get("If-None-Match") == etag:
                    return web.Response(status=304, headers=headers)
                return web.Response(body=body, headers={**headers, "Content-Type": ";".join((JSON, *form))})
            if clause.strip() in (JSON, "*/*"):
                return self._responses.document(request, self._catalog.discovery.documents[path], PLAIN)
        raise not_acceptable(True)
