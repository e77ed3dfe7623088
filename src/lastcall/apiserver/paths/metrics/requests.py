"""What HTTP requests are counted by. One look into a dict and two bisections each: some 2 µs of a millisecond.

Components in this process ask without HTTP and are not counted. Source: apiserver pkg/endpoints/metrics/metrics.go.
"""

from typing import NamedTuple

from lastcall.api.resources import Resource
from lastcall.apiserver.requestinfo import RequestInfo
from lastcall.client.api import APPLY_PATCH
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.clock import Clock
from lastcall.world.counting import Histogram

SECONDS = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60
)  # fmt: skip
RESPONSE_BYTES = (1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9)
EVENT_BYTES = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)

LONG_RUNNING = frozenset(("attach", "exec", "proxy", "log", "portforward"))
"""Subresources whose requests may take any time (genericapiserver config: BasicLongRunningRequestCheck)."""

_VERBS = {"create": "POST", "update": "PUT"}
_READS = frozenset(("GET", "LIST", "WATCH"))


class Key(NamedTuple):
    """What requests are told apart by."""

    verb: str
    dry_run: str
    group: str
    version: str
    resource: str
    subresource: str
    scope: str
    component: str
    code: str


class Series:
    """Requests of one key: how long they took, and of reads how large the answers were."""

    __slots__ = ("seconds", "sizes")

    def __init__(self, reads: bool) -> None:
        self.seconds = Histogram(SECONDS)
        self.sizes = Histogram(RESPONSE_BYTES) if reads else None


class Open(NamedTuple):
    """A request that is worked on. `code` of its key is still empty."""

    key: Key
    began_ns: int


class RequestCounts:
    """`begin` and `end` of each request that reached its handler: what authentication or authorization refuse is
    counted apart, as in Kubernetes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.series: dict[Key, Series] = {}
        self.in_flight = {"mutating": 0, "readOnly": 0}
        self.long_running: dict[Key, int] = {}
        self.events: dict[tuple[str, str, str], Histogram] = {}
        self.authenticated: dict[str, int] = {}
        self.authorized: dict[str, int] = {}

    def begin(self, request: web.BaseRequest, info: RequestInfo) -> Open:
        key = _key(request, info)
        if is_long_running(key):
            self.long_running[key] = self.long_running.get(key, 0) + 1
        else:
            self.in_flight[_kind(key)] += 1
        return Open(key, self._clock.monotonic_ns())

    def end(self, begun: Open, code: int, size: int) -> None:
        """`code` 0: nobody was answered."""
        key = begun.key
        if is_long_running(key):
            self.long_running[key] -= 1
        else:
            self.in_flight[_kind(key)] -= 1
        if not code:
            return
        key = key._replace(code=str(code))
        series = self.series.get(key)
        if series is None:
            series = self.series[key] = Series(key.verb in _READS)
        series.seconds.observe((self._clock.monotonic_ns() - begun.began_ns) / 1e9)
        if series.sizes is not None:
            series.sizes.observe(size)

    def event_sizes(self, resource: Resource) -> Histogram:
        """What the sizes of a watch's events go to."""
        key = (resource.group, resource.version, resource.plural)
        found = self.events.get(key)
        if found is None:
            found = self.events[key] = Histogram(EVENT_BYTES)
        return found


def is_long_running(key: Key) -> bool:
    return key.verb in ("WATCH", "CONNECT") or key.subresource in LONG_RUNNING


def _kind(key: Key) -> str:
    return "readOnly" if key.verb in ("GET", "LIST", "WATCH") else "mutating"


def _key(request: web.BaseRequest, info: RequestInfo) -> Key:
    """(metrics.go: cleanVerb, CleanScope, cleanDryRun)"""
    if not info.is_resource_request:
        return Key(request.method, "", "", "", "", info.path, "", "", "")
    verb = _VERBS.get(info.verb) or info.verb.upper()
    if info.subresource in LONG_RUNNING and info.subresource != "log":
        verb = "CONNECT"
    elif verb == "PATCH" and request.headers.get("Content-Type") == APPLY_PATCH:
        verb = "APPLY"
    scope = "resource" if info.name or info.verb == "create" else "namespace" if info.namespace else "cluster"
    dry_run = request.query.get("dryRun", "") if request.query_string else ""
    return Key(verb, dry_run, info.group, info.version, info.resource, info.subresource, scope, "apiserver", "")
