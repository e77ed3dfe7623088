"""metrics.k8s.io: two samples of what kubelets count."""

import asyncio
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import NODE_METRICS, NODES, POD_METRICS, POD_METRICS_V1, PODS
from lastcall.kube.apiserver.subresources.metrics import (
    Point,
    Sample,
    duration,
    node_metrics,
    pod_metrics,
    rate,
    read_summary,
)
from lastcall.kube.apiserver.subresources.metrics_server import MetricsServer
from lastcall.kube.node.metrics.stats import resource_metrics
from lastcall.world.virtual import run_virtual

START = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = 1_000_000_000
POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"a": "b"}}}


def at(seconds: float, cpu: int, memory: int = 0) -> Point:
    return Point(START + timedelta(seconds=seconds), cpu, memory)


@pytest.mark.parametrize(
    ("before", "after", "cores"),
    [
        (at(0, 0), at(2, SECOND), SECOND // 2),
        (at(0, 5), at(10, 5), 0),
        (at(0, 5), at(0.1, 10), None),  # too close
        (at(0, 5), at(10, 4), None),  # began anew
        (None, at(10, 5), None),
    ],
)
def test_a_rate_is_what_was_used_between_two_samples(before: Point | None, after: Point, cores: int | None) -> None:
    assert rate(before, after) == cores


def test_a_pod_is_shown_with_its_containers_when_all_of_them_are_known() -> None:
    key = ("ns", "p", "u")
    before = Sample(pods={key: {"b": at(0, 0), "a": at(0, 0)}})
    after = Sample(pods={key: {"b": at(15, 15_000_000, 2048), "a": at(15.5, 31 * SECOND, 1000)}})
    shown = pod_metrics(POD_METRICS, POD, before, after)
    assert shown is not None
    assert shown["containers"] == [
        {"name": "a", "usage": {"cpu": "2", "memory": "1k"}},
        {"name": "b", "usage": {"cpu": "1m", "memory": "2Ki"}},
    ]
    assert (shown["timestamp"], shown["window"]) == ("2026-01-01T00:00:15Z", "15.5s")
    assert shown["metadata"]["labels"] == {"a": "b"}
    of_v1 = pod_metrics(POD_METRICS_V1, POD, before, after)
    assert of_v1 == {**shown, "apiVersion": "metrics.k8s.io/v1"}, "the same since 1.37 (kubernetes#139223)"
    new = Sample(pods={key: {**after.pods[key], "c": at(15, 1)}})
    assert pod_metrics(POD_METRICS, POD, before, new) is None
    assert pod_metrics(POD_METRICS, {"metadata": {**POD["metadata"], "uid": "another"}}, before, after) is None


def test_a_node_is_shown_when_it_was_counted_twice() -> None:
    node = {"metadata": {"name": "n"}}
    assert node_metrics(NODE_METRICS, node, Sample(), Sample(nodes={"n": at(1, 1)})) is None
    shown = node_metrics(NODE_METRICS, node, Sample(nodes={"n": at(0, 0)}), Sample(nodes={"n": at(1, 123, 1 << 30)}))
    assert shown is not None
    assert shown["usage"] == {"cpu": "123n", "memory": "1Gi"}


def test_windows_are_written_as_go_does() -> None:
    assert [duration(timedelta(seconds=each)) for each in (1.008, 15, 59.9994, 65.5)] == [
        "1.008s",
        "15s",
        "59.999s",
        "1m5.5s",
    ]


def told(cpu: int, moment: str) -> dict:
    counted = {
        "cpu": {"time": moment, "usageCoreNanoSeconds": cpu},
        "memory": {"time": moment, "workingSetBytes": 4096},
    }
    pod = {
        "podRef": {"name": "p", "namespace": "default", "uid": "u"},
        "containers": [{"name": "c", **counted}],
        **counted,
    }
    return {"node": {"nodeName": "n", **counted}, "pods": [pod]}


def test_what_a_kubelet_says_wrongly_is_left_out() -> None:
    sample = Sample()
    for wrong in (None, [], {}, {"node": 3}, {"node": {"cpu": {"time": "x"}}}, {"pods": [{"containers": [{}]}]}):
        read_summary(sample, "n", wrong)
    assert sample == Sample()


def test_the_text_of_metrics_resource_has_every_container_pod_and_the_node() -> None:
    text = resource_metrics(told(2 * SECOND, "2026-01-01T00:00:00Z"))
    assert 'container_cpu_usage_seconds_total{container="c",namespace="default",pod="p"} 2 1767225600000\n' in text
    assert "node_memory_working_set_bytes 4096 1767225600000\n" in text
    assert 'pod_cpu_usage_seconds_total{namespace="default",pod="p"} 2 1767225600000\n' in text


def test_kubelets_are_asked_only_when_somebody_asks_and_many_ask_once() -> None:
    asked: list[str] = []

    async def main(world) -> None:
        async def ask(node: dict, path: str) -> bytes:
            asked.append(path)
            if node["metadata"]["name"] == "gone":
                raise StatusError({"code": 500, "message": "gone"})
            seconds = world.clock.monotonic_ns() / SECOND
            moment = (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
            return orjson.dumps(told(int(seconds * SECOND / 2), moment))

        pod = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}}
        stored = {NODES: [{"metadata": {"name": "n"}}, {"metadata": {"name": "gone"}}], PODS: [pod]}

        async def find(resource, namespace: str, name: str):
            return next((each for each in stored[resource] if each["metadata"]["name"] == name), None)

        async def all_of(resource, namespace: str):
            return stored[resource]

        server = MetricsServer(world, find, all_of, ask)
        await world.clock.sleep(600)
        assert asked == []
        both = await asyncio.gather(
            server.get(POD_METRICS, "default", "p"), server.all_of(NODE_METRICS, "", lambda each: True)
        )
        assert asked == ["/stats/summary"] * 4
        assert both[0]["containers"][0]["usage"] == {"cpu": "500m", "memory": "4Ki"}
        assert [each["metadata"]["name"] for each in both[1]["items"]] == ["n"]
        assert both[0]["window"] == "1s"
        await world.clock.sleep(30)
        assert (await server.get(POD_METRICS, "default", "p"))["window"] == "30s"
        assert len(asked) == 6
        with pytest.raises(StatusError, match='"default/other" not found'):
            await server.get(POD_METRICS, "default", "other")
        assert (await server.all_of(POD_METRICS, "", lambda each: False))["items"] == []

    run_virtual(main)
