"""node-semantics 17.1: which ended containers, sandboxes and logs go, and in which order."""

import os

import pytest

from lastcall.kube.cri.api import (
    ContainerMetadata,
    ContainerState,
    ContainerStatus,
    PodSandboxMetadata,
    PodSandboxState,
    PodSandboxStatus,
    RuntimeServiceError,
)
from lastcall.kube.node.garbage.decide import (
    ContainerGCPolicy,
    containers_to_evict,
    log_directories_to_remove,
    sandboxes_to_evict,
)
from lastcall.kube.node.garbage.manager import ContainerGC
from lastcall.kube.node.logs.files import LogLinks, log_link_name, remove_log, remove_log_directory
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual

EXITED, RUNNING = ContainerState.CONTAINER_EXITED, ContainerState.CONTAINER_RUNNING
READY, NOT_READY = PodSandboxState.SANDBOX_READY, PodSandboxState.SANDBOX_NOTREADY
S = 1_000_000_000


def container(uid, name, created, state=EXITED):
    identity = f"{uid}/{name}/{created}"
    return uid, ContainerStatus(identity, ContainerMetadata(name), "s", state, "i", "r", created_at=created * S)


def evicted(containers, *, removable=(), now=1000, **policy):
    gone = containers_to_evict(containers, ContainerGCPolicy(**policy), now * S, lambda uid: uid in removable)
    return [each.id for each in gone]


THREE = [container("a", "c", n) for n in (3, 2, 1)]


@pytest.mark.rule("node-semantics 17.1/kept")
@pytest.mark.parametrize(
    ("containers", "options", "expected"),
    [
        # one dead instance of each container stays, the newest
        (THREE, {}, ["a/c/1", "a/c/2"]),
        ([container("a", "c", 9, RUNNING), *THREE], {}, ["a/c/1", "a/c/2"]),
        ([*THREE, container("a", "d", 1), container("b", "c", 1)], {}, ["a/c/1", "a/c/2"]),
        # of a Pod that is gone none
        (THREE, {"removable": "a"}, ["a/c/1", "a/c/2", "a/c/3"]),
        ([container("a", "c", 9, RUNNING), *THREE], {"removable": "a"}, ["a/c/1", "a/c/2", "a/c/3"]),
        # young ones are spared, whoever's they are
        (THREE, {"min_age": 998, "removable": "a"}, ["a/c/1", "a/c/2"]),
        (THREE, {"min_age": 999.5, "removable": "a"}, []),
        # other policies
        (THREE, {"max_per_pod_container": 0}, ["a/c/1", "a/c/2", "a/c/3"]),
        (THREE, {"max_per_pod_container": -1}, []),
        # too many on the node: an equal part for each container of each Pod …
        (
            [*THREE, *(container("b", "c", n) for n in (6, 5, 4))],
            {"max_per_pod_container": -1, "max_containers": 4},
            ["a/c/1", "b/c/4"],
        ),
        # … at least one, and then the oldest of the node
        (
            [container(uid, "c", n) for uid in "ab" for n in (3, 2)] + [container("z", "c", 1)],
            {"max_per_pod_container": -1, "max_containers": 2},
            ["a/c/2", "b/c/2", "z/c/1"],
        ),
        ([container("a", "c", 3), container("b", "c", 2)], {"max_containers": 0}, ["b/c/2", "a/c/3"]),
        ([container("a", "c", 3), container("b", "c", 2)], {"max_containers": 2}, []),
    ],
)
def test_which_containers_go_and_the_oldest_first(containers, options, expected):
    assert evicted(containers, **options) == expected


def sandbox(uid, created, state=NOT_READY):
    return PodSandboxStatus(f"{uid}{created}", PodSandboxMetadata("p", uid, "n"), state, created)


@pytest.mark.rule("node-semantics 17.1/sandboxes")
def test_the_newest_sandbox_of_a_pod_stays_and_none_of_a_pod_that_is_gone():
    sandboxes = [sandbox("a", n) for n in (3, 2, 1)] + [sandbox("b", 2, READY), sandbox("b", 1)]
    assert [s.id for s in sandboxes_to_evict(sandboxes, [], lambda uid: False)] == ["a1", "a2", "b1"]
    assert [s.id for s in sandboxes_to_evict(sandboxes, [], lambda uid: True)] == ["a1", "a2", "a3", "b1"]


def test_a_sandbox_that_holds_a_container_stays():
    held = ContainerStatus("c", ContainerMetadata("c"), "a1", EXITED, "i", "r", created_at=1)
    assert [s.id for s in sandboxes_to_evict([sandbox("a", 1), sandbox("a", 2)], [held], lambda uid: True)] == ["a2"]


@pytest.mark.rule("node-semantics 17.1/logs")
def test_log_directories_go_by_the_uid_in_their_name():
    names = ["ns_p_u1", "ns_p_u2", "lost+found", "my_u1"]
    assert log_directories_to_remove(names, lambda uid: uid == "u1") == ["ns_p_u1"]


@pytest.mark.rule("node-semantics 17.1/logs")
def test_a_log_goes_with_its_rotated_parts_and_no_other(tmp_path):
    for name in ("1.log", "1.log.20300101-000000", "1.log.20300101-000000.gz", "1.logs", "11.log", "0.log"):
        (tmp_path / name).touch()
    remove_log(f"{tmp_path}/1.log")
    remove_log(f"{tmp_path}/none/1.log")
    remove_log("")
    assert sorted(os.listdir(tmp_path)) == ["0.log", "1.logs", "11.log"]


def test_removing_logs_follows_no_link(tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "file").touch()
    (tmp_path / "ns_p_u").symlink_to(tmp_path / "victim")
    remove_log_directory(f"{tmp_path}/ns_p_u")
    (tmp_path / "ns_q_u").mkdir()
    (tmp_path / "ns_q_u" / "c").symlink_to(tmp_path / "victim")
    remove_log_directory(f"{tmp_path}/ns_q_u")
    assert os.listdir(tmp_path) == ["victim"]
    assert os.listdir(tmp_path / "victim") == ["file"]


@pytest.mark.rule("node-semantics 17.2/symlinks")
async def test_dangling_links_go_but_not_those_of_a_log_between_two_files(tmp_path):
    links = LogLinks(f"{tmp_path}/links")
    for name in ("here", "gone", "between"):
        (tmp_path / f"{name}.log").touch()
        links.add("p", "ns", "c", name, f"{tmp_path}/{name}.log")
    links.add("p", "ns", "c", "never", f"{tmp_path}/never.log")
    (tmp_path / "gone.log").unlink()
    (tmp_path / "between.log").unlink()
    (tmp_path / "links" / "note").write_text("a collector's own")

    async def between(container_id):
        return container_id == "between"

    await links.remove_dangling(between)
    assert sorted(os.listdir(tmp_path / "links")) == ["note", "p_ns_c-between.log", "p_ns_c-here.log"]


@pytest.mark.rule("node-semantics 17.2/symlinks")
def test_names_of_links_fit_into_a_directory():
    assert log_link_name("web", "shop", "app", "1f") == "web_shop_app-1f.log"
    long = log_link_name("p" * 200, "n" * 63, "c", "1" * 64)
    assert (len(long), long[-4:]) == (255, ".log")


class Events(list):
    def event(self, obj, event_type, reason, message):
        self.append(f"{event_type} {reason}: {message}")


class BrokenRuntime:
    """Says that it was asked, and nothing more."""

    def __init__(self):
        self.asked = 0

    async def list_containers(self):
        self.asked += 1
        raise RuntimeServiceError("no answer")


def test_a_runtime_that_does_not_answer_is_an_event_of_the_node_and_asked_again_in_a_minute():
    runtime, events = BrokenRuntime(), Events()

    async def main(world):
        gc = ContainerGC(
            world=world,
            runtime=runtime,
            events=events,
            node={},
            may_remove=lambda uid: True,
            has_ended=lambda uid: True,
            kill_unknown=lambda container, message: None,
            log_root="/nonexistent",
            log_links=LogLinks(""),
        )
        async with Tasks() as tasks:
            tasks.spawn(gc.run(), name="gc")
            await world.clock.sleep(61)
            tasks.cancel()

    run_virtual(main)
    assert runtime.asked == 2
    assert events == ["Warning ContainerGCFailed: no answer"] * 2
