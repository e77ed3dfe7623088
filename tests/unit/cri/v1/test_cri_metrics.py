"""cAdvisor's metrics from what the kernel counts."""

import pytest

from lastcall.cri import api
from lastcall.cri.sandbox.cgroups import counters
from lastcall.cri.sandbox.shim.counters import parse_dev
from lastcall.cri.v1 import metrics, stats
from lastcall.cri.v1.messages import new

SECOND = 1_000_000_000
STATUS = api.ContainerStatus(
    "c" * 64, api.ContainerMetadata("app"), "s" * 64, api.ContainerState.CONTAINER_RUNNING, "app:1", "", 1, 9 * SECOND,
    resources=api.LinuxContainerResources(100_000, -1, 512, 1 << 20),
)  # fmt: skip
COUNTS = {"throttled": 2 * SECOND, "pgfault": 5, "pgmajfault": 1, "read_bytes": 512, "pids_limit": 0, "rss": 7}
NETWORK = {"eth0": (1, 2, 3, 4, 5, 6, 7, 8)}
SAMPLE = metrics.Sample(
    STATUS,
    api.ContainerStats(3 * SECOND, 100, 80, 4),
    api.ContainerCounters(COUNTS, NETWORK, "kubepods/podu/c"),
    10 * SECOND,
    metrics.Filesystem("/upper", 4096, 2, 1 << 30, 1000, 998),
)
LABELS = ("app", "kubepods/podu/c", "app:1", "c" * 64, "default", "web")


def told(sample=SAMPLE, which=metrics.CONTAINER_METRICS):
    found = metrics.metrics_of(sample, which, LABELS)
    return {(each.name, *each.label_values[len(LABELS) :]): each.value.value for each in found}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (("container_cpu_usage_seconds_total", "total"), 3),
        (("container_cpu_cfs_throttled_seconds_total",), 2),
        (("container_memory_failures_total", "pgfault", "hierarchy"), 5),
        (("container_memory_failures_total", "pgmajfault", "hierarchy"), 1),
        (("container_blkio_device_usage_total", "", "", "", "Read"), 512),
        (("container_fs_limit_bytes", "/upper"), 1 << 30),
        (("container_fs_inodes_free", "/upper"), 998),
        (("container_spec_cpu_quota",), 0),
        (("container_spec_memory_limit_bytes",), 1 << 20),
        (("container_start_time_seconds",), 9),
        (("container_last_seen",), 10),
        (("container_threads_max",), 0),
        (("container_threads",), 4),
    ],
)
def test_a_metric_has_cadvisors_unit_and_labels(name, value):
    assert told()[name] == value


def test_what_the_kernel_does_not_count_has_no_value():
    names = {name for name, *_ in told()}
    assert not names & {"container_pressure_cpu_waiting_seconds_total", "container_memory_swap", "container_sockets"}


def test_every_value_has_the_labels_of_its_descriptor():
    keys = {each.name: list(each.label_keys) for each in metrics.descriptors()}
    assert len(keys) == len(metrics.CONTAINER_METRICS) + len(metrics.POD_METRICS)
    for which in (metrics.CONTAINER_METRICS, metrics.POD_METRICS):
        for each in metrics.metrics_of(SAMPLE, which, LABELS):
            assert len(each.label_values) == len(keys[each.name])


def test_the_network_is_the_pods():
    found = told(which=metrics.POD_METRICS)
    assert found["container_network_receive_bytes_total", "eth0"] == 1
    assert found["container_network_receive_packets_dropped_total", "eth0"] == 4
    assert found["container_network_transmit_errors_total", "eth0"] == 7
    usage = stats.network_usage(NETWORK, 1)
    assert (usage.default_interface.name, usage.default_interface.tx_bytes.value) == ("eth0", 5)


def test_proc_net_dev_is_read_without_the_loopback():
    text = (
        "Inter-|   Receive  |  Transmit\n face |bytes packets\n"
        "    lo:  10 1 0 0 0 0 0 0  10 1 0 0 0 0 0 0\n"
        "  eth0: 100 2 3 4 0 0 0 0 200 5 6 7 0 0 0 0\n"
    )
    assert parse_dev(text) == {"eth0": [100, 2, 3, 4, 200, 5, 6, 7]}


def test_both_versions_of_control_groups_count_by_the_same_names(tmp_path):
    v1, v2 = tmp_path / "v1", tmp_path / "v2"
    texts = {
        v1: {
            "cpuacct.stat": "user 5\nsystem 2\n",
            "cpu.stat": "nr_periods 9\nnr_throttled 3\nthrottled_time 70000\n",
            "memory.stat": "cache 1\ntotal_cache 10\ntotal_rss 20\ntotal_pgfault 30\n",
            "memory.failcnt": "4\n",
            "pids.max": "max\n",
            "blkio.throttle.io_service_bytes": "8:0 Read 100\n8:16 Read 11\n8:0 Write 7\nTotal 118\n",
        },
        v2: {
            "cpu.stat": "user_usec 50000\nsystem_usec 20000\nnr_periods 9\nnr_throttled 3\nthrottled_usec 70\n",
            "memory.stat": "anon 20\nfile 10\npgfault 30\n",
            "memory.events": "low 0\nmax 4\n",
            "pids.max": "max\n",
            "io.stat": "8:0 rbytes=100 wbytes=7 rios=1 wios=1\n8:16 rbytes=11\n",
            "cpu.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 total=5\n",
        },
    }
    for directory, files in texts.items():
        directory.mkdir()
        for name, text in files.items():
            (directory / name).write_text(text)
    first, second = counters.of_v1(*[str(v1)] * 5), counters.of_v2(str(v2))
    same = ("cpu_user", "cpu_system", "periods", "throttled_periods", "throttled", "cache", "rss", "pgfault", "failcnt",
            "pids_limit", "read_bytes", "write_bytes")  # fmt: skip
    assert {key: first[key] for key in same} == {key: second[key] for key in same}
    assert (first["cpu_user"], first["throttled"], first["read_bytes"]) == (50_000_000, 70_000, 111)
    assert (second["cpu_some"], second["cpu_full"]) == (12_000, 5_000)
    assert counters.of_v1("", "", "", "", "") == {}
    assert counters.of_v2(str(tmp_path / "gone")) == {}


def test_memory_is_told_with_what_is_left_of_the_limit():
    message = stats.container_message(STATUS, SAMPLE.stats, 1)
    stats.add_counts(message, COUNTS, 200, 1)
    memory = message.memory
    assert (memory.rss_bytes.value, memory.page_faults.value, memory.available_bytes.value) == (7, 5, 120)
    pod = new("MemoryUsage")
    stats.sum_memory_counts(pod, memory)
    stats.sum_memory_counts(pod, memory)
    assert pod.rss_bytes.value == 14


def test_swap_is_told_when_the_kernel_counts_it():
    message = stats.container_message(STATUS, SAMPLE.stats, 1)
    stats.add_counts(message, COUNTS, 0, 1)
    assert not message.HasField("swap")
    stats.add_counts(message, {"swap": 0}, 0, 1)
    assert message.HasField("swap")
