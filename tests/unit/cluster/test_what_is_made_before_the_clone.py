"""`make_plan` leaves nothing open when a part of it cannot be made."""

import socket
from types import SimpleNamespace

import pytest

from lastcall.cluster import plan
from lastcall.cluster.options import ClusterOptions
from lastcall.cluster.staying.credentials import no_credentials


@pytest.mark.parametrize("fails", ["_machine", "make_place", "claim_blocks"])
def test_what_was_made_is_ended_when_the_next_part_fails(monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    ended: list[str] = []
    listening: list[socket.socket] = []
    sockets = plan._api_sockets

    def api_sockets(port: int, address: str) -> tuple[socket.socket, socket.socket | None]:
        made = sockets(port, address)
        listening.append(made[0])
        return made

    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(plan, "_api_sockets", api_sockets)
    monkeypatch.setattr(plan, "_joined_place", lambda options: SimpleNamespace(end=lambda: ended.append("joined")))
    monkeypatch.setattr(plan, "_machine", lambda *_: SimpleNamespace(end=lambda: ended.append("machine")))
    monkeypatch.setattr(plan, fails, fail)
    with pytest.raises(OSError, match="no room"):
        plan.make_plan(ClusterOptions(name="plan"), no_credentials())
    assert ended == (["joined"] if fails == "_machine" else ["machine", "joined"])
    assert listening[0].fileno() == -1
