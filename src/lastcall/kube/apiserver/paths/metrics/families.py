"""Make the metric families of the API server's counts, on request."""

from collections.abc import Iterable, Iterator

from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.paths.metrics.requests import RequestCounts, is_long_running
from lastcall.world.counting import Family, Histogram

SLI_BOUNDS = 2
"""The objective's histogram begins with the third of the durations' bounds."""


def request_families(counts: RequestCounts) -> Iterator[Family]:
    series = list(counts.series())
    yield "apiserver_request_total", [(key._asdict(), each.seconds.count) for key, each in series]
    durations: dict[tuple[str, ...], Histogram] = {}
    objectives: dict[tuple[str, ...], Histogram] = {}
    sizes: dict[tuple[str, ...], Histogram] = {}
    for key, each in series:
        _add(durations, (*key[:-1],), each.seconds)
        where = (key.verb, *key[2:-1])
        if not is_long_running(key):
            _add(objectives, where, _from(each.seconds, SLI_BOUNDS))
        if each.sizes is not None:
            _add(sizes, where, each.sizes)
    names = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
    yield "apiserver_request_duration_seconds", _named(names, durations)
    rest = ("verb", *names[2:])
    yield "apiserver_request_sli_duration_seconds", _named(rest, objectives)
    yield "apiserver_response_sizes", _named(rest, sizes)
    yield (
        "apiserver_current_inflight_requests",
        [({"request_kind": kind}, count) for kind, count in counts.in_flight().items()],
    )
    running: dict[tuple[str, ...], int] = {}
    for key, count in counts.long_running():
        where = (key.verb, *key[2:-1])
        running[where] = running.get(where, 0) + count
    yield (
        "apiserver_longrunning_requests",
        [(dict(zip(rest, where, strict=True)), count) for where, count in running.items()],
    )
    events = [
        ({"group": group, "version": version, "resource": resource}, sizes)
        for (group, version, resource), sizes in counts.events.items()
    ]
    yield "apiserver_watch_events_total", [(labels, sizes.count) for labels, sizes in events]
    yield "apiserver_watch_events_sizes", events
    yield "authentication_attempts", [({"result": result}, n) for result, n in counts.authenticated.items()]
    yield "authorization_attempts_total", [({"result": result}, n) for result, n in counts.authorized.items()]


def storage_families(objects: Iterable[tuple[Resource, int]]) -> Iterator[Family]:
    """Yield how many objects there are of each kind."""
    found = [(each, count) for each, count in objects]
    yield "apiserver_storage_objects", [({"resource": each.group_resource}, count) for each, count in found]
    yield (
        "apiserver_resource_objects",
        [({"group": each.group, "resource": each.plural}, count) for each, count in found],
    )


def _add(into: dict[tuple[str, ...], Histogram], key: tuple[str, ...], value: Histogram) -> None:
    found = into.get(key)
    if found is None:
        found = into[key] = Histogram(value.bounds)
    found.add(value)


def _from(histogram: Histogram, dropped: int) -> Histogram:
    """The same without its first bounds."""
    fewer = Histogram(histogram.bounds[dropped:])
    fewer.counts = [sum(histogram.counts[: dropped + 1]), *histogram.counts[dropped + 1 :]]
    fewer.sum = histogram.sum
    return fewer


def _named(names: tuple[str, ...], values: dict[tuple[str, ...], Histogram]) -> list[tuple[dict[str, str], Histogram]]:
    return [(dict(zip(names, key, strict=True)), value) for key, value in values.items()]
