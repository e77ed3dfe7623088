"""A story and a rollout are made of the same records, and say the same of each container's end."""

import pytest
from scenario.replay import Replay

from lastcall.endings.ending import build_endings
from lastcall.endings.story import ContainerEnding, PodFacts
from lastcall.traffic.moments import Moment
from lastcall.traffic.reduce import pod_lives

RECORDINGS = ["graceful-exit0", "ignores-term", "prestop-exec-ok", "prestop-hangs", "delete-grace-1", "delete-twice",
              "force-delete-nohook", "liveness-fail-restart", "crashloop-delete", "kubelet-restart-in-prestop",
              "exit-during-prestop-exec", "sidecar-order-clean",
              "sidecar-crash-during-run", "sidecar-ignores-term", "spec-grace-0"]  # fmt: skip


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_rollout_says_of_each_container_what_its_story_says(name: str) -> None:
    cluster = Replay(name).run().cluster
    records = list(cluster.all_records)
    pods = [PodFacts(uid, "", "") for uid in dict.fromkeys(each.pod_uid for each in records if each.pod_uid)]
    endings = build_endings(records, pods, kubernetes_version="1.36")
    compared = 0
    for ending in endings:
        for told in (each for each in ending.containers if each.kind in ("container", "sidecar") and each.started):
            (life,) = [each for each in pod_lives(records, None, {told.name}) if each.uid == ending.pod.uid]
            found = (life.hook, life.term, life.exited, life.killed)
            assert tuple(map(_rounded, found)) == tuple(map(_rounded, _of_story(told, ending.zero_ns)))
            compared += 1
    assert compared


def _of_story(told: ContainerEnding, zero_ns: int) -> tuple[Moment | bool | None, ...]:
    def moment(at: float | None) -> Moment | None:
        return None if at is None else Moment.at(zero_ns / 1e9 + at)

    hook = told.hook.started_at if told.hook is not None else None
    return moment(hook), moment(told.stop.signal_at), moment(told.exit.at), told.exit.killed_by_grace


def _rounded(value: Moment | bool | None) -> object:
    """Microseconds: one counts from the DELETE, the other one from the clock's beginning."""
    return round(value.latest, 6) if isinstance(value, Moment) else value
