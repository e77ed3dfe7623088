"""Where audit events come from: a file that grows and is rotated, and a webhook."""

import json
from pathlib import Path

import aiohttp
import pytest
from waiting import until

from lastcall.errors import UserError
from lastcall.trace.auditing import reading
from lastcall.trace.auditing.index import AuditIndex
from lastcall.trace.auditing.lines import AuditInput
from lastcall.trace.auditing.reading import AuditFile
from lastcall.trace.auditing.webhook import receiving
from lastcall.trace.exporting.addresses import Listen
from lastcall.world.tasks import Background
from lastcall.world.world import World

pytestmark = pytest.mark.loopback

EVENT = {"kind": "Event", "apiVersion": "audit.k8s.io/v1"}
LINE = json.dumps(EVENT) + "\n"


def made() -> tuple[AuditInput, list[str]]:
    notes: list[str] = []
    return AuditInput(AuditIndex(), notes.append), notes


async def test_a_log_is_followed_as_it_grows_and_through_its_rotation(tmp_path: Path) -> None:
    path, (into, notes) = tmp_path / "audit.log", made()
    path.write_text(LINE)
    file = AuditFile(str(path), World(), into)
    file.check()
    running = Background(file.run(), name="audit log")
    await until(lambda: into.events == 1)
    with path.open("a") as writer:
        writer.write(LINE[:20])
        writer.flush()
        await file.is_read.wait()
        writer.write(LINE[20:] + LINE)
    await until(lambda: into.events == 3)
    path.rename(tmp_path / "audit.log.1")
    path.write_text(LINE)
    await until(lambda: into.events == 4)
    path.write_text("")
    await until(lambda: file._at == 0)
    path.write_text(LINE)
    await until(lambda: into.events == 5)
    await running.end()
    file.close()
    assert notes == []


async def test_of_a_log_with_a_long_past_its_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_PAST_BYTES", 5 * len(LINE) + 3)
    path, (into, notes) = tmp_path / "audit.log", made()
    path.write_text(LINE * 100)
    file = AuditFile(str(path), World(), into)
    file.check()
    running = Background(file.run(), name="audit log")
    await file.is_read.wait()
    await running.end()
    file.close()
    assert (into.events, notes) == (5, [])


@pytest.mark.parametrize("name", ["missing", ""])
def test_a_log_that_cannot_be_read_is_an_error_of_the_user(tmp_path: Path, name: str) -> None:
    file = AuditFile(str(tmp_path / name), World(), made()[0])
    with pytest.raises(UserError, match="--audit-log"):
        file.check()


async def test_a_webhook_takes_event_lists_and_refuses_everything_else() -> None:
    into, notes = made()
    body = {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "items": [{}, {}]}
    async with receiving(Listen("127.0.0.1", 0), into) as real, aiohttp.ClientSession() as session:
        async with session.post(f"http://{real}/audit?timeout=30s", json=body) as answer:
            assert answer.status == 200
        async with session.post(f"http://{real}/", data=b"{") as answer:
            assert answer.status == 400
        async with session.get(f"http://{real}/") as answer:
            assert answer.status == 405
    assert (into.events, into.skipped) == (2, 1)
    assert notes[0].startswith("audit log: a request was skipped: it is not JSON")
