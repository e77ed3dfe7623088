"""How the OpenAPI documents go out: ETags, hashes in the URL, redirects to the current hash.

Any method is answered as a GET, and a slash at the end is another path.

Sources: kube-openapi pkg/handler/handler.go, pkg/handler3/handler.go:HandleGroupVersion; Go net/http fs.go.
"""

from lastcall.kube.apiserver.openapi.documents import Document, OpenAPI, speaks_json
from lastcall.world.aiohttp_inside import server as web

REVALIDATE = {"Cache-Control": "no-cache, private"}
FOR_EVER = {"Cache-Control": "public, immutable"}


async def openapi_response(openapi: OpenAPI, request: web.BaseRequest) -> web.Response:
    """Answer a request below /openapi/."""
    path, accept = request.path, request.headers.get("Accept", "")
    if path == "/openapi/v2":
        document, vary = await openapi.v2(accept), "Accept-Encoding, Accept"
        if document is None:
            return _nothing(406, vary)
        return _answer(request, document, REVALIDATE, vary)
    if path == "/openapi/v3":
        index = await openapi.index()
        return web.Response(body=index.body, headers={**REVALIDATE, "Content-Type": index.media_type})
    if not path.startswith("/openapi/v3/"):
        return web.Response(status=404, text="404 page not found\n", headers=REVALIDATE)
    name = path.removeprefix("/openapi/v3/")
    if not openapi.has(name):
        return _nothing(404)
    if not speaks_json(accept):
        return _nothing(406, "Accept")
    document = await openapi.v3(name)
    asked = request.query.get("hash", "")
    if asked and asked != document.hash:
        location = f"/openapi/v3/{name}?hash={document.hash}"
        return web.Response(status=301, headers={"Location": location, **REVALIDATE})
    return _answer(request, document, FOR_EVER if asked else REVALIDATE, "Accept")


def _nothing(status: int, vary: str = "") -> web.Response:
    return web.Response(status=status, headers=REVALIDATE | ({"Vary": vary} if vary else {}))


def _answer(request: web.BaseRequest, document: Document, caching: dict[str, str], vary: str) -> web.Response:
    headers = {**caching, "ETag": f'"{document.hash}"', "Vary": vary}
    if request.method in ("GET", "HEAD") and _has(request.headers.get("If-None-Match", ""), headers["ETag"]):
        return web.Response(status=304, headers=headers)
    return web.Response(body=document.body, headers={**headers, "Content-Type": document.media_type})


def _has(asked: str, etag: str) -> bool:
    """Whether an If-None-Match names the ETag: any (`*`), one of a list, also as a weak one."""
    return any(each.strip().removeprefix("W/") in ("*", etag) for each in asked.split(","))
