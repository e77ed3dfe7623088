"""`make_plan` leaves nothing open when a part of it cannot be made."""

import socket
from types import SimpleNamespace

import pytest

from lastcall.kube.cluster import plan
from lastcall.kube.cluster.layout import layouts
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.staying.credentials import Identity, issue_credentials

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
