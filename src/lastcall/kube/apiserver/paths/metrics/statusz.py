"""`/statusz` of the API server."""

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.releases import RELEASES
from lastcall.kube.api.metrics import statusz as pages
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.clock import Clock
from lastcall.world.process_numbers import start_time

PATHS = ("/healthz", "/livez", "/metrics", "/readyz", "/statusz", "/version")


def statusz(request: web.BaseRequest, component: str, version: str, clock: Clock) -> web.Response:
    """Answer with the page. Raises the 406 StatusError."""
    form = pages.form(request.headers.get("Accept", ""))
    if form is None:
        message = f"only the following media types are accepted: {pages.ACCEPTED}"
        raise status_failure(406, "NotAcceptable", message, None)
    status = pages.Status(component, RELEASES[version], start_time(clock), clock.wall_ns() / 1e9, PATHS)
    if not form:
        return web.Response(text=pages.text(status))
    content_type = f"application/json;g=config.k8s.io;v={form};as=Statusz"
    return web.Response(body=pages.document(status, form), headers={"Content-Type": content_type})
