"""What the page shows of a Pod's logs and Events: nothing that a terminal or a browser would obey."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from lastcall.ui.actions import events, logs
from lastcall.ui.source import PageClient

POD = {"metadata": {"name": "p", "namespace": "d", "uid": "u"}}


class Client:
    """Answers with what a hostile Pod wrote."""

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        return "\x1b[31mred\r\nabc \u202etxt.exe\n\t\u05e0\u05db 日本\n".encode() + b"\xff\n"

    async def list(self, *_: Any, **__: Any) -> Any:
        event = {"reason": "a\x00b", "message": "one\ntwo \u202e\x07", "source": {"component": "\u2066kubelet"}}
        return SimpleNamespace(items=[event])


def test_logs_have_their_lines_and_their_letters_and_control_characters_are_escaped() -> None:
    shown = asyncio.run(logs(cast(PageClient, Client()), POD, "app", False))
    assert shown == "\\x1b[31mred\nabc \\u202etxt.exe\n    \u05e0\u05db 日本\n\ufffd\n"


def test_events_are_without_control_characters() -> None:
    (shown,) = asyncio.run(events(cast(PageClient, Client()), POD))
    assert (shown["type"], shown["reason"], shown["from"]) == ("Normal", "a\\x00b", "\\u2066kubelet")
    assert shown["message"] == "one\ntwo \\u202e\\x07"
