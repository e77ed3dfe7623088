"""How the OpenAPI documents go out: ETags, hashes in the URL, redirects to the current hash.

Sources: kube-openapi pkg/handler/handler.go, pkg/handler3/handler.go:HandleGroupVersion.
"""

from lastcall.kube.api.errors import method_not_allowed
from lastcall.kube.apiserver.openapi.documents import Document, OpenAPI
from lastcall.kube.apiserver.wire.negotiation import not_acceptable
from lastcall.world.aiohttp_inside import server as web

REVALIDATE = {"Cache-Control": "no-cache, private"}
FOR_EVER = {"Cache-Control": "public, immutable"}


async def openapi_response(openapi: OpenAPI, request: web.BaseRequest) -> web.Response:
    """The answer to a GET below /openapi/. Raises StatusError."""
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed()
    path = request.path.rstrip("/")
    accept = request.headers.get("Accept", "")
    if path == "/openapi/v2":
        document = await openapi.v2(accept)
        if document is None:
            raise not_acceptable(False)
        return _answer(request, document, REVALIDATE, "Accept-Encoding, Accept")
    if path == "/openapi/v3":
        return _answer(request, await openapi.index(), REVALIDATE, "")
    name = path.removeprefix("/openapi/v3/")
    if not path.startswith("/openapi/v3/") or not openapi.has(name):
        return web.Response(status=404, text="404 page not found\n")
    document = await openapi.v3(name)
    asked = request.query.get("hash", "")
    if asked and asked != document.hash:
        location = f"/openapi/v3/{name}?hash={document.hash}"
        return web.Response(status=301, headers={"Location": location, **REVALIDATE})
    return _answer(request, document, FOR_EVER if asked else REVALIDATE, "Accept")


def _answer(request: web.BaseRequest, document: Document, caching: dict[str, str], vary: str) -> web.Response:
    headers = {**caching, "ETag": f'"{document.hash}"'} | ({"Vary": vary} if vary else {})
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return web.Response(status=304, headers=headers)
    return web.Response(body=document.body, headers={**headers, "Content-Type": document.media_type})
