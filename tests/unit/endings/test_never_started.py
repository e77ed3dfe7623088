"""What kept a container from starting."""

from typing import Any

import pytest

from lastcall.endings.ending import build_endings
from lastcall.endings.render.plain import plain_text
from lastcall.endings.story import ContainerFacts, PodFacts
from lastcall.endings.verdict import verdict
from lastcall.kube.api.pods.recorded import status_problems
from lastcall.records import kinds as k
from lastcall.ui.saved_stories import html_page

PULL = {"container": "app", "reason": "ImagePullBackOff", "message": 'Back-off pulling image "x:1"'}


def status(tape: Any, at: float, **facts: Any) -> None:
    tape.add(at, "apiserver", k.POD_STATUS_WRITTEN, phase="Pending", ready=False, reason="", **facts)


def image(tape: Any) -> None:
    status(tape, -3, waiting=[{**PULL, "reason": "ErrImagePull"}])
    status(tape, -2, waiting=[PULL])


def command(tape: Any) -> None:
    status(tape, -2, waiting=[PULL])
    tape.add(-1, "kubelet", k.CONTAINER_START_FAILED, "app", reason="RunContainerError", message="no such file")


def rejected(tape: Any) -> None:
    tape.add(-1, "kubelet", k.POD_REJECTED, reason="OutOfcpu", message="Node didn't have enough resource: cpu")


def volume(tape: Any) -> None:
    tape.add(-2, "apiserver", k.POD_BOUND, node="node-1")
    tape.add(-1, "kubelet", k.VOLUME_FAILED, volume="config", error='configmap "settings" not found')


def init_container(tape: Any) -> None:
    tape.add(-2, "apiserver", k.POD_BOUND, node="node-1")
    status(tape, -1, waiting=[{"container": "setup", "reason": "CrashLoopBackOff", "message": "back-off 10s"}])


def init_container_runs(tape: Any) -> None:
    tape.add(-2, "runtime", k.PROCESS_STARTED, "setup", pid=9)


def unschedulable(tape: Any) -> None:
    tape.add(-3, "apiserver", k.POD_CREATED, namespace="default", name="web", user="u", containers=[])
    status(tape, -2, unschedulable="0/1 nodes are available: 1 Insufficient cpu.")


def nobody(tape: Any) -> None:
    tape.add(-3, "apiserver", k.POD_CREATED, namespace="default", name="web", user="u", containers=[])


def too_early(tape: Any) -> None:
    tape.add(-0.001, "apiserver", k.POD_BOUND, node="node-1")


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (image, 'ImagePullBackOff: Back-off pulling image "x:1"'),
        (command, "RunContainerError: no such file"),
        (rejected, "the node rejected the Pod: OutOfcpu: Node didn't have enough resource: cpu"),
        (volume, 'volume config could not be mounted: configmap "settings" not found'),
        (init_container, "setup comes before it: CrashLoopBackOff: back-off 10s"),
        (init_container_runs, "init container setup had not succeeded"),
        (unschedulable, "no node took the Pod: 0/1 nodes are available: 1 Insufficient cpu."),
        (nobody, "the Pod was never bound to a node"),
        (too_early, "the DELETE came before it could"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_story_says_what_kept_a_container_from_starting(new_tape: Any, story: Any, words: str) -> None:
    tape = new_tape()
    tape.pod = PodFacts(tape.uid, "default", "web", containers=(ContainerFacts("setup", "init"), ContainerFacts("app")))
    story(tape)
    tape.accepted()
    tape.over(0.01, "Failed")
    ending = tape.ending()
    (found,) = [f for f in ending.findings if f.id == "neverStarted" and f.container == "app"]
    assert f"app was never started ({words})" in found.text
    assert words in " ".join(plain_text([ending], 200).split())
    if story is not init_container_runs:
        assert words in verdict(ending)


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (image, 'app has not been started yet (ImagePullBackOff: Back-off pulling image "x:1").'),
        (init_container_runs, "app has not been started yet (init container setup has not succeeded yet)."),
        (nobody, "app has not been started yet (the Pod has not been bound to a node yet)."),
        (too_early, "app has not been started yet."),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_of_a_pod_that_lives_nothing_is_said_to_be_stopped_or_too_late(new_tape: Any, story: Any, words: str) -> None:
    tape = new_tape()
    containers = (ContainerFacts("setup", "init"), ContainerFacts("app"))
    story(tape)
    pod = PodFacts(tape.uid, "default", "web", phase="Pending", containers=containers)
    (ending,) = build_endings(tape.records, [pod], kubernetes_version="1.36")
    (found,) = [f for f in ending.findings if f.id == "neverStarted"]
    assert found.text == words
    page = html_page([ending], kubernetes_version="1.36", lastcall_version="0")
    shown = " ".join(plain_text([ending], 200).split())
    assert "app not started yet" in shown and '"cells":["not started yet","","",""]' in page
    if story is not init_container_runs:
        assert verdict(ending) == words.replace("app has not", "No container of it has")
    for text in (verdict(ending), found.text, shown):
        assert "stopped" not in text and "never started" not in text


def test_a_status_tells_of_what_waits_and_not_of_what_is_on_its_way() -> None:
    waiting = {"reason": "ErrImagePull", "message": "x" * 1000}
    made = {
        "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/1 nodes"}],
        "initContainerStatuses": [{"name": "setup", "state": {"waiting": {"reason": "PodInitializing"}}}],
        "containerStatuses": [
            {"name": "app", "state": {"waiting": waiting}},
            {"name": "other", "state": {"waiting": {"reason": "ContainerCreating"}}},
            {"name": "third", "state": {"running": {}}},
        ],
    }
    assert status_problems(made) == {
        "waiting": [{"container": "app", "reason": "ErrImagePull", "message": "x" * 500}],
        "unschedulable": "0/1 nodes",
    }
    assert status_problems({"conditions": [{"type": "PodScheduled", "status": "True"}]}) == {}


def test_a_pod_that_ran_on_a_node_that_records_nothing_is_not_said_to_have_never_started(new_tape: Any) -> None:
    """A kubelet that is not lastcall's: the API server saw its writes, and nobody saw its containers."""
    tape = new_tape()
    tape.add(-2, "apiserver", k.POD_BOUND, node="other-1")
    tape.add(-1, "apiserver", k.POD_STATUS_WRITTEN, phase="Running", ready=True, reason="")
    tape.accepted()
    tape.add(1, "apiserver", k.POD_STATUS_WRITTEN, phase="Succeeded", ready=False, reason="")
    tape.add(2, "apiserver", k.OBJECT_REMOVED, resourceVersion="152", user="system:node:other-1")
    ending = tape.ending()
    assert ending.outcome == "unknown"
    told = "its node keeps no records here: run lastcall story on the node's machine, if the node is lastcall's."
    assert f"How app ended is not known: {told}" in ending.not_known
    shown = " ".join(plain_text([ending], 200).split())
    assert "app how it ended is not known: its node records nothing" in shown
    assert "never started" not in shown
