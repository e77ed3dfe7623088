"""What ran side by side: spans on one time axis."""

from collections.abc import Sequence

from lastcall.endings.story import ContainerEnding, EndpointTransition, Entry, Span
from lastcall.records import kinds


def decide_spans(
    containers: Sequence[ContainerEnding],
    endpoints: Sequence[EndpointTransition],
    entries: Sequence[Entry],
    gone: float | None,
) -> tuple[Span, ...]:
    """Return hooks, drains, endpoints, network, volumes and the object itself, each with start and end."""
    spans: list[Span] = []
    for container in containers:
        if container.exit.before_delete:
            continue
        hook = container.hook
        if hook and hook.started_at is not None:
            spans.append(
                Span(f"{container.name}: preStop {hook.handler}", "preStop", hook.started_at, hook.finished_at)
            )
        if container.stop.signal_at is not None:
            label = f"{container.name}: {container.stop.signal} to exit"
            spans.append(Span(label, "drain", container.stop.signal_at, container.exit.at))
    spans += _endpoint_spans(endpoints)
    after = [entry for entry in entries if entry.at >= 0]
    for entry in (each for each in after if each.record.kind == kinds.NETWORK_DETACHED):
        spans.append(_took("network teardown", entry.facts_as(kinds.NETWORK_DETACHED).get("seconds"), entry.at))
    for entry in (each for each in after if each.record.kind == kinds.VOLUMES_UNMOUNTED):
        spans.append(_took("unmount", entry.facts_as(kinds.VOLUMES_UNMOUNTED).get("seconds"), entry.at))
    spans.append(Span("object in the API", "object", 0.0, gone))
    return tuple(spans)


def _took(label: str, seconds: float | None, ended: float) -> Span:
    return Span(label, "node", ended - float(seconds or 0.0), ended)


def _endpoint_spans(endpoints: Sequence[EndpointTransition]) -> list[Span]:
    spans: list[Span] = []
    for first in endpoints:
        key = (first.service, first.address)
        if first.removed or not first.terminating or any(s.label == _label(first) for s in spans):
            continue
        end = next((e.at for e in endpoints if e.removed and (e.service, e.address) == key and e.at >= first.at), None)
        spans.append(Span(_label(first), "endpoint", first.at, end))
    return spans


def _label(endpoint: EndpointTransition) -> str:
    return f"terminating endpoint of {endpoint.service}"
