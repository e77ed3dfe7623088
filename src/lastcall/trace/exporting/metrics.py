"""The metrics, held by the official client library and written in the text formats that Prometheus scrapes.

How many series there may be is bounded: labels have values from short lists, but for namespace and workload, of which
`Places` keeps the number. The library writes no native histograms (it can only read them): histograms are classic ones.
"""

# check: allow prometheus_client because it serves metrics

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Histogram, Info
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from lastcall._version import __version__
from lastcall.endings import Ending
from lastcall.trace.exporting.health import Delivered, Health
from lastcall.trace.exporting.samples import Metric, Sample, measure
from lastcall.trace.exporting.workload import Places, Workload
from lastcall.world.clock import monotonic
from lastcall.world.world import World

# `…_created` would be a second series for each counter and histogram, and nothing here reads it.
_disable: Any = prometheus_client.disable_created_metrics  # it has no types
_disable()

OF_WORKLOAD = ("namespace", "workload")

SECONDS = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 300.0, 600.0)
"""Hooks and drains: around the default grace period of 30 s, and up to the long ones of databases."""
RATIO = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.25, 2.0)
"""0.8 is where the alert begins; above 1 it was killed."""
WINDOW = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

_COUNTERS: dict[Metric, tuple[str, str, tuple[str, ...]]] = {
    "ends": (
        "lastcall_pod_ends",
        "Pods that ended, by outcome and by the reason for the deletion.",
        ("outcome", "reason"),
    ),
    "findings": (
        "lastcall_pod_end_findings",
        "Pods whose end has this cause: an id of the list of findings in docs/ending-v1.md.",
        ("finding",),
    ),
    "hooks": ("lastcall_prestop_hooks", "preStop hooks of containers that ended, by their outcome.", ("outcome",)),
    "sigkills": ("lastcall_container_sigkills", "Containers that ended by SIGKILL, whoever sent it.", ()),
    "exits137": ("lastcall_container_exits_137", "Containers with the exit code 137, by its cause.", ("cause",)),
}
_HISTOGRAMS: dict[Metric, tuple[str, str, tuple[float, ...]]] = {
    "hookSeconds": ("lastcall_prestop_hook_seconds", "How long preStop hooks ran.", SECONDS),
    "drainSeconds": ("lastcall_container_drain_seconds", "From the stop signal to a container's exit.", SECONDS),
    "graceUsed": (
        "lastcall_grace_used_ratio",
        "Hook, wait and drain of a Pod's last container, as a part of its grace period.",
        RATIO,
    ),
    "endpointLost": (
        "lastcall_endpoint_lost_seconds",
        "How long a Service still sent to a Pod that no longer served.",
        WINDOW,
    ),
}


class Metrics:
    """`ended(ending)` counts, `page(accept)` is what a scrape gets."""

    def __init__(self, world: World, health: Callable[[], Health], *, most_workloads: int = 200) -> None:
        self._world = world
        self._places = Places(most_workloads)
        self.registry = CollectorRegistry()
        Info("lastcall_build", "Version of lastcall.", registry=self.registry).info({"version": __version__})
        self._all: dict[Metric, Counter | Histogram] = {}
        for metric, (name, text, labels) in _COUNTERS.items():
            self._all[metric] = Counter(name, text, (*OF_WORKLOAD, *labels), registry=self.registry)
        for metric, (name, text, buckets) in _HISTOGRAMS.items():
            self._all[metric] = Histogram(name, text, OF_WORKLOAD, buckets=buckets, registry=self.registry)
        self._deliveries = Deliveries()
        self.registry.register(_Own(health, self._places))
        self.registry.register(self._deliveries)

    def ended(self, ending: Ending) -> None:
        """Count a finished story."""
        workload, samples = measure(ending)
        place, gone = self._places.place(workload, monotonic(self._world.clock))
        if gone is not None:
            self._forget(gone)
        for sample in samples:
            self._add(place, sample)

    def deliveries(self, way: str, counts: Callable[[], Delivered]) -> None:
        """Show the counts of one way of delivery (`otlp`, `events`)."""
        self._deliveries.ways[way] = counts

    def page(self, accept: str) -> tuple[bytes, str]:
        """Return (body, Content-Type) in the format that the scraper asks for; only OpenMetrics has exemplars."""
        encoder, content_type = choose_encoder(accept)
        return encoder(self.registry), content_type

    def _add(self, place: Workload, sample: Sample) -> None:
        metric = self._all[sample.metric].labels(*place, *sample.labels)
        exemplar = dict(sample.exemplar) or None
        if isinstance(metric, Counter):
            metric.inc(sample.value, exemplar)
        else:
            metric.observe(sample.value, exemplar)

    def _forget(self, workload: Workload) -> None:
        for metric in self._all.values():
            metric.remove_by_labels(dict(zip(OF_WORKLOAD, workload, strict=True)))


class Deliveries(Collector):
    """`lastcall_exports…`: each way of delivery, what became of it, and what waits."""

    def __init__(self) -> None:
        self.ways: dict[str, Callable[[], Delivered]] = {}

    def collect(self) -> Iterable[Family]:
        done = CounterMetricFamily(
            "lastcall_exports", "Items exported, by exporter and result.", labels=("way", "result")
        )
        waiting = GaugeMetricFamily("lastcall_exports_waiting", "Items that wait to be exported.", labels=("way",))
        for way, counts in self.ways.items():
            for result, count in counts().items():
                if result == "waiting":
                    waiting.add_metric((way,), count)
                else:
                    done.add_metric((way, result), count)
        return (done, waiting)


class _Own(Collector):
    """Collect the watching's own health at each scrape."""

    def __init__(self, health: Callable[[], Health], places: Places) -> None:
        self._health, self._places = health, places

    def describe(self) -> Iterable[Family]:
        return ()

    def collect(self) -> Iterator[Family]:
        health = self._health()
        up = GaugeMetricFamily("lastcall_watch_up", "1 if the resource is watched now.", labels=("resource",))
        for name, is_up in sorted(health.watches.items()):
            up.add_metric((name,), float(is_up))
        yield up
        for name, text, counts in (
            ("lastcall_watch_reconnects", "Number of times a watch was restarted.", health.reconnects),
            ("lastcall_watch_gaps", "Number of times a watch may have missed something.", health.gaps),
        ):
            family = CounterMetricFamily(name, text, labels=("resource",))
            for resource, count in sorted(counts.items()):
                family.add_metric((resource,), count)
            yield family
        forbidden = GaugeMetricFamily(
            "lastcall_watch_forbidden",
            "1 for a resource that lastcall has no permission to read.",
            labels=("resource",),
        )
        for name in sorted(health.forbidden):
            forbidden.add_metric((name,), 1)
        yield forbidden
        gauges: tuple[tuple[str, str, Any], ...] = (
            ("lastcall_pods_followed", "Pods that are followed now.", health.pods),
            ("lastcall_pods_ending", "Pods that are Terminating now.", health.ending),
            ("lastcall_stories_waiting", "Finished stories that are not counted yet.", health.waiting),
            ("lastcall_leader", "1 in the process that watches, 0 in one that waits for the lease.", health.leading),
            ("lastcall_workloads", "Workloads that have series of their own.", len(self._places)),
        )
        for name, text, value in gauges:
            yield GaugeMetricFamily(name, text, value=float(value))
        yield CounterMetricFamily(
            "lastcall_ends_without_place", "Ends counted as _other: too many workloads.", value=self._places.refused
        )
