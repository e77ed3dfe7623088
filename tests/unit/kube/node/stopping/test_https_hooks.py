"""httpGet hooks whose scheme is HTTPS (node-semantics 7; lifecycle/handlers.go:isHTTPResponseError)."""

import asyncio
from typing import Any

import pytest

from lastcall.kube.node.interfaces import DialError, HTTPResponse
from lastcall.kube.node.stopping.hooks import HTTP_RESPONSE_TO_HTTPS_CLIENT, HandlerRunner, HookError
from lastcall.kube.node.versions import behaviour_of

POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": [{"name": "c"}]}}
SECRET = {"name": "authorization", "value": "Bearer x"}
ACTION = {"scheme": "HTTPS", "port": 8443, "path": "/drain", "httpHeaders": [SECRET, {"name": "X-A", "value": "1"}]}
PLAIN = f"Get x: http: {HTTP_RESPONSE_TO_HTTPS_CLIENT}"


class Server:
    """Answers https with an error, and http with what it is given. Also hears the Events."""

    def __init__(self, https: str, http: str = "") -> None:
        self.errors = {"https": https, "http": http}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.events: list[tuple[str, str, str]] = []

    async def http_get(self, url: str, headers: Any, timeout: Any, **options: Any) -> HTTPResponse:
        self.requests.append((url, dict(headers)))
        if error := self.errors[url.split(":")[0]]:
            raise DialError(error)
        return HTTPResponse(500, b"", {})

    def event(self, obj: Any, event_type: str, reason: str, message: str, *, field_path: str = "") -> None:
        self.events.append((event_type, reason, message))


def run(server: Server) -> None:
    async def pod_ip() -> str:
        return "10.0.0.5"

    runner = HandlerRunner(
        clock=None, runtime=None, dialer=server, events=server, behaviour=behaviour_of("1.36")  # type: ignore[arg-type]
    )  # fmt: skip
    asyncio.run(runner.run("id", POD, {"name": "c"}, {"httpGet": ACTION}, pod_ip))


@pytest.mark.rule("node-semantics 7/https-fallback, 23/hooks")
def test_a_server_that_speaks_plain_http_is_asked_again_without_credentials() -> None:
    server = Server(PLAIN)
    run(server)
    (first, with_credentials), (second, without) = server.requests
    assert (first, second) == ("https://10.0.0.5:8443/drain", "http://10.0.0.5:8443/drain")
    assert with_credentials["authorization"] == "Bearer x"
    assert "authorization" not in without and without["X-A"] == "1"
    text = "request to HTTPS lifecycle hook 10.0.0.5:8443 got HTTP response, retry with HTTP succeeded"
    assert server.events == [("Warning", "LifecycleHTTPFallback", text)]


@pytest.mark.rule("node-semantics 7/https-fallback")
@pytest.mark.parametrize(("https", "http", "requests"), [(PLAIN, "refused", 2), ("Get x: EOF", "", 1)])
def test_a_second_failure_and_any_other_one_fail_the_hook(https: str, http: str, requests: int) -> None:
    server = Server(https, http)
    with pytest.raises(HookError, match="refused" if http else "EOF"):
        run(server)
    assert len(server.requests) == requests and server.events == []
