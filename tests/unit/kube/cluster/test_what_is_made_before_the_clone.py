"""`make_plan` leaves nothing open when a part of it cannot be made."""

import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lastcall.kube.cluster import plan, tree
from lastcall.kube.cluster.layout import layouts
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.plan import Plan
from lastcall.kube.cluster.staying.credentials import Identity, issue_credentials
from lastcall.kube.cluster.user_ids import UserIDBlocks

pytestmark = pytest.mark.loopback


@pytest.mark.parametrize("fails", ["_other_runtime", "make_place", "claim_blocks"])
def test_what_was_made_is_ended_when_the_next_part_fails(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    ended: list[str] = []
    listening: list[socket.socket] = []
    listen = plan._listen

    def listened(port: int) -> socket.socket:
        listening.append(listen(port))
        return listening[0]

    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(plan, "_listen", listened)
    monkeypatch.setattr(plan, "_other_runtime", lambda *_: SimpleNamespace(end=lambda: ended.append("runtime")))
    monkeypatch.setattr(plan, fails, fail)
    with pytest.raises(OSError, match="no room"):
        plan.make_plan(ClusterOptions(name="plan"), issue_credentials(Identity.new(), layouts(1)))
    assert ended == ([] if fails == "_other_runtime" else ["runtime"])
    assert listening[0].fileno() == -1


@pytest.mark.parametrize(
    ("why", "note"),
    [
        ("", ""),
        (
            "/d: its file system is NFS",
            "what containers write counts as their memory, because no disk can hold it (/d: its file system is NFS); "
            "see lastcall doctor",
        ),
    ],
)
def test_a_note_says_why_files_are_in_memory(why: str, note: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "claim", lambda *_, **__: (None, why))
    scratch, found = plan._scratch(ClusterOptions(name="plan"), "boot", UserIDBlocks())
    assert (scratch, found) == (None, why)
    monkeypatch.setattr(tree, "write_id_maps", lambda *_: None)
    planned = Plan(ClusterOptions(name="plan"), *[cast("Any", None)] * 5, 0, [], why_in_memory=found)
    monkeypatch.setattr(planned.cgroups, "settle", lambda pid: None)
    assert tree._prepare(planned, 1) == note
