"""What HTTP requests are counted by. Two looks into dicts and two bisections each: some 2 µs of a millisecond.

Components in this process ask without HTTP and are not counted. Source: apiserver pkg/endpoints/metrics/metrics.go.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.client.api import APPLY_PATCH
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
    """What distinguishes requests."""

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


class Alike:
    """Requests whose keys differ in `code` alone."""

    __slots__ = ("answered", "key", "running")

    def __init__(self, key: Key) -> None:
        """`code` of the key is empty."""
        self.key = key
        self.running = 0
        self.answered: dict[int, Series] = {}
        """By code."""


Open = tuple[Alike, int]
"""A request that is worked on, and when that began."""
_Labels = tuple[str | bool, ...]
"""What a key follows from, found without making one."""


class RequestCounts:
    """`begin` and `end` of each request that reached its handler: what authentication or authorization refuse is
    counted apart, as in Kubernetes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._alike: dict[_Labels, Alike] = {}
        self.events: dict[tuple[str, str, str], Histogram] = {}
        self.authenticated: dict[str, int] = {}
        self.authorized: dict[str, int] = {}

    def begin(self, request: web.BaseRequest, info: RequestInfo) -> Open:
        labels = _labels_of(request, info)
        alike = self._alike.get(labels)
        if alike is None:
            alike = self._alike[labels] = Alike(_key(request, info))
        alike.running += 1
        return alike, self._clock.monotonic_ns()

    def end(self, begun: Open, code: int, size: int) -> None:
        """Count the end of a request; `code` 0: nobody was answered."""
        alike, began_ns = begun
        alike.running -= 1
        if not code:
            return
        series = alike.answered.get(code)
        if series is None:
            series = alike.answered[code] = Series(alike.key.verb in _READS)
        series.seconds.observe((self._clock.monotonic_ns() - began_ns) / 1e9)
        if series.sizes is not None:
            series.sizes.observe(size)

    def series(self) -> Iterator[tuple[Key, Series]]:
        """Yield the series of all that was answered."""
        for alike in self._alike.values():
            for code, series in alike.answered.items():
                yield alike.key._replace(code=str(code)), series

    def in_flight(self) -> dict[str, int]:
        """Count the requests in progress, without long-running ones."""
        found = {"mutating": 0, "readOnly": 0}
        for alike in self._alike.values():
            if not is_long_running(alike.key):
                found["readOnly" if alike.key.verb in _READS else "mutating"] += alike.running
        return found

    def long_running(self) -> Iterator[tuple[Key, int]]:
        """Count the long-running requests in progress."""
        for alike in self._alike.values():
            if is_long_running(alike.key):
                yield alike.key, alike.running

    def event_sizes(self, resource: Resource) -> Histogram:
        """Return the histogram for the sizes of a watch's events."""
        key = (resource.group, resource.version, resource.plural)
        found = self.events.get(key)
        if found is None:
            found = self.events[key] = Histogram(EVENT_BYTES)
        return found


def is_long_running(key: Key) -> bool:
    return key.verb in ("WATCH", "CONNECT") or key.subresource in LONG_RUNNING


def _labels_of(request: web.BaseRequest, info: RequestInfo) -> _Labels:
    if not info.is_resource_request:
        return request.method, info.path
    dry_run = _dry_run(request) if request.query else ""
    _, _, verb, group, version, namespace, resource, name, subresource, _, _ = info
    applies = verb == "patch" and _applies(request)
    return verb, applies, dry_run, group, version, resource, subresource, bool(name), bool(namespace)


def _applies(request: web.BaseRequest) -> bool:
    return request.headers.get("Content-Type") == APPLY_PATCH


def _dry_run(request: web.BaseRequest) -> str:
    """(metrics.go: cleanDryRun)"""
    values = request.query.getall("dryRun", [])
    if any(each != "All" for each in values):
        return "invalid"
    return "All" if values else ""


def _key(request: web.BaseRequest, info: RequestInfo) -> Key:
    """(metrics.go: cleanVerb, CleanScope)"""
    if not info.is_resource_request:
        return Key(request.method, "", "", "", "", info.path, "", "", "")
    verb = _VERBS.get(info.verb) or info.verb.upper()
    if info.subresource in LONG_RUNNING and info.subresource != "log":
        verb = "CONNECT"
    elif verb == "PATCH" and _applies(request):
        verb = "APPLY"
    scope = "resource" if info.name or info.verb == "create" else "namespace" if info.namespace else "cluster"
    return Key(
        verb, _dry_run(request), info.group, info.version, info.resource, info.subresource, scope, "apiserver", ""
    )  # fmt: skip
