"""The metrics of ListMetricDescriptors and ListPodSandboxMetrics: cAdvisor's names, labels and units. Pure.

CRI's values are whole numbers, also of seconds. What the kernel does not count has no value here, and what nothing
could count (on a machine with version 1 of control groups: pressure) none on that machine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lastcall.cri.api import ContainerCounters, ContainerStats, ContainerStatus
from lastcall.cri.v1.messages import new
from lastcall.cri.v1.needs import Filesystem

COUNTER, GAUGE = 0, 1
LABELS = ("container", "id", "image", "name", "namespace", "pod")
_SECOND = 1_000_000_000
Values = Iterator[tuple[tuple[str, ...], int]]
"""(values of the metric's own labels, value)."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What is known of one container at `now` (nanoseconds since the epoch)."""

    status: ContainerStatus
    stats: ContainerStats
    counters: ContainerCounters
    now: int
    written: Filesystem | None = None


@dataclass(frozen=True, slots=True)
class _Metric:
    name: str
    help: str
    kind: int
    values: Callable[[Sample], Values]
    labels: tuple[str, ...] = field(default=())


def _counted(key: str, unit: int = 1) -> Callable[[Sample], Values]:
    def values(sample: Sample) -> Values:
        if key in sample.counters.counts:
            yield (), sample.counters.counts[key] // unit

    return values


def _plain(value: Callable[[Sample], int], *labels: str) -> Callable[[Sample], Values]:
    def values(sample: Sample) -> Values:
        yield labels, value(sample)

    return values


def _disk(value: Callable[[Filesystem], int]) -> Callable[[Sample], Values]:
    def values(sample: Sample) -> Values:
        if sample.written is not None:
            yield (sample.written.mountpoint,), value(sample.written)

    return values


def _io(key: str) -> Callable[[Sample], Values]:
    def values(sample: Sample) -> Values:
        if key in sample.counters.counts:
            yield ("",), sample.counters.counts[key]

    return values


def _blkio(sample: Sample) -> Values:
    for operation in ("Read", "Write"):
        if (key := f"{operation.lower()}_bytes") in sample.counters.counts:
            yield ("", "", "", operation), sample.counters.counts[key]


def _failures(sample: Sample) -> Values:
    for key in ("pgfault", "pgmajfault"):
        if key in sample.counters.counts:
            yield (key, "hierarchy"), sample.counters.counts[key]


def _network(place: int) -> Callable[[Sample], Values]:
    def values(sample: Sample) -> Values:
        for link, numbers in sorted(sample.counters.network.items()):
            yield (link,), numbers[place]

    return values


CONTAINER_METRICS = (
    _Metric("container_blkio_device_usage_total", "Blkio Device bytes usage", COUNTER, _blkio,
            ("device", "major", "minor", "operation")),
    _Metric("container_cpu_cfs_periods_total", "Number of elapsed enforcement period intervals.", COUNTER,
            _counted("periods")),
    _Metric("container_cpu_cfs_throttled_periods_total", "Number of throttled period intervals.", COUNTER,
            _counted("throttled_periods")),
    _Metric("container_cpu_cfs_throttled_seconds_total", "Total time duration the container has been throttled.",
            COUNTER, _counted("throttled", _SECOND)),
    _Metric("container_cpu_system_seconds_total", "Cumulative system cpu time consumed in seconds.", COUNTER,
            _counted("cpu_system", _SECOND)),
    _Metric("container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", COUNTER,
            _plain(lambda one: one.stats.cpu_usage_core_nano_seconds // _SECOND, "total"), ("cpu",)),
    _Metric("container_cpu_user_seconds_total", "Cumulative user cpu time consumed in seconds.", COUNTER,
            _counted("cpu_user", _SECOND)),
    _Metric("container_file_descriptors", "Number of open file descriptors for the container.", GAUGE,
            _counted("descriptors")),
    _Metric("container_fs_inodes_free", "Number of available Inodes", GAUGE, _disk(lambda one: one.inodes_free),
            ("device",)),
    _Metric("container_fs_inodes_total", "Number of Inodes", GAUGE, _disk(lambda one: one.inodes), ("device",)),
    _Metric("container_fs_limit_bytes", "Number of bytes that can be consumed by the container on this filesystem.",
            GAUGE, _disk(lambda one: one.limit_bytes), ("device",)),
    _Metric("container_fs_reads_bytes_total", "Cumulative count of bytes read", COUNTER, _io("read_bytes"),
            ("device",)),
    _Metric("container_fs_reads_total", "Cumulative count of reads completed", COUNTER, _io("read_operations"),
            ("device",)),
    _Metric("container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.",
            GAUGE, _disk(lambda one: one.used_bytes), ("device",)),
    _Metric("container_fs_writes_bytes_total", "Cumulative count of bytes written", COUNTER, _io("write_bytes"),
            ("device",)),
    _Metric("container_fs_writes_total", "Cumulative count of writes completed", COUNTER, _io("write_operations"),
            ("device",)),
    _Metric("container_last_seen", "Last time a container was seen by the exporter", GAUGE,
            _plain(lambda one: one.now // _SECOND)),
    _Metric("container_memory_cache", "Number of bytes of page cache memory.", GAUGE, _counted("cache")),
    _Metric("container_memory_failcnt", "Number of memory usage hits limits", COUNTER, _counted("failcnt")),
    _Metric("container_memory_failures_total", "Cumulative count of memory allocation failures.", COUNTER, _failures,
            ("failure_type", "scope")),
    _Metric("container_memory_kernel_usage", "Size of kernel memory allocated in bytes.", GAUGE, _counted("kernel")),
    _Metric("container_memory_mapped_file", "Size of memory mapped files in bytes.", GAUGE, _counted("mapped_file")),
    _Metric("container_memory_max_usage_bytes", "Maximum memory usage recorded in bytes", GAUGE,
            _counted("max_usage")),
    _Metric("container_memory_rss", "Size of RSS in bytes.", GAUGE, _counted("rss")),
    _Metric("container_memory_swap", "Container swap usage in bytes.", GAUGE, _counted("swap")),
    _Metric("container_memory_usage_bytes", "Current memory usage in bytes, including all memory.", GAUGE,
            _plain(lambda one: one.stats.memory_usage_bytes)),
    _Metric("container_memory_working_set_bytes", "Current working set in bytes.", GAUGE,
            _plain(lambda one: one.stats.memory_working_set_bytes)),
    _Metric("container_oom_events_total", "Count of out of memory events observed for the container", COUNTER,
            _counted("oom_kills")),
    _Metric("container_processes", "Number of processes running inside the container.", GAUGE, _counted("processes")),
    _Metric("container_sockets", "Number of open sockets for the container.", GAUGE, _counted("sockets")),
    _Metric("container_spec_cpu_period", "CPU period of the container.", GAUGE,
            _plain(lambda one: one.status.resources.cpu_period)),
    _Metric("container_spec_cpu_quota", "CPU quota of the container.", GAUGE,
            _plain(lambda one: max(one.status.resources.cpu_quota, 0))),
    _Metric("container_spec_cpu_shares", "CPU share of the container.", GAUGE,
            _plain(lambda one: one.status.resources.cpu_shares)),
    _Metric("container_spec_memory_limit_bytes", "Memory limit for the container.", GAUGE,
            _plain(lambda one: one.status.resources.memory_limit_in_bytes)),
    _Metric("container_spec_memory_swap_limit_bytes", "Memory swap limit for the container.", GAUGE,
            _plain(lambda one: one.status.resources.memory_limit_in_bytes)),
    _Metric("container_start_time_seconds", "Start time of the container since unix epoch in seconds.", GAUGE,
            _plain(lambda one: one.status.started_at // _SECOND)),
    _Metric("container_threads", "Number of threads running inside the container.", GAUGE,
            _plain(lambda one: one.stats.process_count)),
    _Metric("container_threads_max", "Maximum number of threads allowed inside the container, infinity if value is "
            "zero.", GAUGE, _counted("pids_limit")),
    _Metric("container_ulimits_soft", "Soft ulimit values for the container root process.", GAUGE,
            lambda one: iter([(("max_open_files",), one.counters.counts["soft_files"])])
            if "soft_files" in one.counters.counts else iter(()), ("ulimit",)),
    *(
        _Metric(f"container_pressure_{resource}_{name}_seconds_total",
                f"Total time duration {what} due to {resource} pressure.", COUNTER,
                _counted(f"{resource}_{key}", _SECOND))
        for resource in ("cpu", "io", "memory")
        for key, name, what in (
            ("full", "stalled", "no tasks in the container could make progress"),
            ("some", "waiting", "tasks in the container have waited"),
        )
    ),
)  # fmt: skip
POD_METRICS = tuple(
    _Metric(f"container_network_{way}_{what}_total", f"Cumulative count of {said} {done}", COUNTER,
            _network(first + place), ("interface",))
    for first, way, done in ((0, "receive", "received"), (4, "transmit", "transmitted"))
    for place, what, said in (
        (0, "bytes", "bytes"), (1, "packets", "packets"), (2, "errors", "errors while being"),
        (3, "packets_dropped", "packets dropped while being"),
    )
)  # fmt: skip


def descriptors() -> list[Any]:
    return [
        new("MetricDescriptor", name=each.name, help=each.help, label_keys=[*LABELS, *each.labels])
        for each in (*CONTAINER_METRICS, *POD_METRICS)
    ]


def metrics_of(sample: Sample, metrics: tuple[_Metric, ...], labels: tuple[str, ...]) -> list[Any]:
    """`labels`: the values of LABELS."""
    return [
        new(
            "Metric",
            name=each.name,
            timestamp=sample.now,
            metric_type=each.kind,
            label_values=[*labels, *own],
            value=new("UInt64Value", value=max(value, 0)),
        )
        for each in metrics
        for own, value in each.values(sample)
    ]
