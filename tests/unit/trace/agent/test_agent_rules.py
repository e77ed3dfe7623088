"""What the node agent reads, as texts of real nodes, and what it is told."""

import pytest

from lastcall.kube.cri.sandbox.cgroups import memory
from lastcall.trace.agent.cgroup_tree import container_of, may_lead_to_pods, pod_of
from lastcall.trace.agent.container import main_process
from lastcall.trace.agent.requests import BadRequest, parse_request

UID = "1f4bfe9c-5b1a-4a9c-9a55-2d1c8b8f4d11"
ID = "6832a35f7d2ddd02ded04efcfb0efef2ea77f7926b51f02e7aed4d6abc77f24f"


@pytest.mark.parametrize(
    ("name", "uid"),
    [
        (f"pod{UID}", UID),
        (f"kubepods-burstable-pod{UID.replace('-', '_')}.slice", UID),
        (f"kubepods-pod{UID.replace('-', '_')}.slice", UID),
        (f"kubelet-kubepods-besteffort-pod{UID.replace('-', '_')}.slice", UID),
        ("pod0d1f4bfe9c5b1a4a9c9a552d1c8b8f4d", "0d1f4bfe9c5b1a4a9c9a552d1c8b8f4d"),
        ("kubepods-burstable.slice", ""),
        ("podman-1234.scope", ""),
        ("besteffort", ""),
        (f"pod{UID}.scope", ""),
    ],
)
def test_the_group_of_a_pod_is_known_with_either_driver(name: str, uid: str) -> None:
    assert pod_of(name) == uid


@pytest.mark.parametrize(
    ("name", "id"),
    [
        (ID, ID),
        (f"cri-containerd-{ID}.scope", ID),
        (f"crio-{ID}.scope", ID),
        (f"docker-{ID}.scope", ID),
        (f"crio-conmon-{ID}.scope", ""),
        ("init", ""),
        ("cgroup.procs", ""),
    ],
)
def test_the_group_of_a_container_is_known_of_every_runtime(name: str, id: str) -> None:
    assert container_of(name) == id


def test_groups_that_cannot_have_pods_are_not_looked_into() -> None:
    assert may_lead_to_pods("anything", 0)
    assert may_lead_to_pods("kubepods-besteffort.slice", 3)
    assert may_lead_to_pods("besteffort", 2), "cgroupfs: /peers/kubepods/besteffort/pod…"
    assert not may_lead_to_pods("session-4.scope", 3)
    assert not may_lead_to_pods("kubepods", 8)


def test_out_of_memory_kills_are_counted_in_both_versions() -> None:
    assert memory.oom_kills("low 0\nhigh 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 0\n") == 2
    assert memory.oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n") == 1
    assert memory.oom_kills("oom_kill_disable 0\nunder_oom 0\n") is None
    assert memory.oom_kills("") is None


def test_no_limit_is_none_in_both_versions() -> None:
    assert memory.limit("67108864\n") == 67108864
    assert memory.limit("max\n") is None
    assert memory.limit("9223372036854771712\n") is None
    assert memory.limit("") is None


def test_the_main_process_is_pid_1_of_its_namespace() -> None:
    assert main_process([(400, 7, 10), (401, 1, 12)]) == 401
    assert main_process([(400, 400, 10), (399, 399, 12)]) == 400, "a shared namespace: the oldest"
    assert main_process([(400, 1, 0)]) == 0, "it is gone"
    assert main_process([]) == 0


def test_requests_are_read() -> None:
    assert parse_request(b'{"hello": 1, "after": 17}').number == 17
    assert parse_request(b'{"ping": 5}').number == 5
    watch = parse_request(f'{{"watch": "{UID}"}}'.encode())
    assert (watch.verb, watch.uid) == ("watch", UID)
    assert parse_request(f'{{"ending": "{UID}"}}'.encode()).verb == "ending"
    assert parse_request(b'{"end": true}').verb == "end"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"nothing",
        b"[]",
        b"{}",
        b'{"watch": 5}',
        b'{"watch": "../../etc"}',
        b'{"watch": "a/b"}',
        b'{"ping": "now"}',
        b'{"ping": -1}',
        b'{"ping": true}',
        b'{"end": 1}',
        b"[" * 60000,
        b'{"watch": "' + b"a" * 70000 + b'"}',
        b"\xff\xfe",
    ],
)
def test_what_is_not_a_request_is_refused(line: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_request(line)
