"""What headers and queries hold that is no text, no number, or asks for half a user (asked of Kubernetes 1.36)."""

import asyncio
import json
from typing import Any

import pytest
from api_server import RunningServer, running_server
from asker import Asker, raw_answer

from lastcall.kube.apiserver.wire.options import ListOptions

pytestmark = pytest.mark.loopback

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def raw(running: RunningServer, request: bytes) -> tuple[int, Any]:
    """Status and JSON of the answer to bytes as they are."""
    head, _, body = raw_answer(running, request).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def ask_raw(running: RunningServer, path: str, *headers: bytes, token: bool = True, body: bytes = b"") -> Any:
    lines = [
        f"{'POST' if body else 'GET'} {path} HTTP/1.1".encode(),
        b"Host: localhost",
        b"Connection: close",
        *headers,
    ]
    lines += [f"Authorization: Bearer {running.token}".encode()] * token
    lines += [f"Content-Length: {len(body)}".encode()] * bool(body)
    return await asyncio.to_thread(raw, running, b"\r\n".join([*lines, b"", body]))


async def test_a_user_that_is_no_text_is_refused_and_not_a_fault_of_the_server() -> None:
    async with running_server() as running:
        status, answer = await ask_raw(running, CONFIGMAPS, b"Impersonate-User: a\xff")
        assert (status, answer["reason"]) == (403, "Forbidden")
        status, answer = await ask_raw(running, CONFIGMAPS, b"Impersonate-User: a\tb", b"Impersonate-Group: \xff")
        assert (status, 'User "a\\tb" cannot list' in answer["message"]) == (403, True)
        status, answer = await ask_raw(
            running, SELF, b"Impersonate-User: a\xff", b"Impersonate-Uid: u", b"Impersonate-Extra-Some%2fKey: v",
            b"Impersonate-Extra-%zz: q", b"Impersonate-Group: g", body=b"{}",
        )  # fmt: skip
        assert status == 201
        assert answer["status"]["userInfo"] == {
            "username": "a\ufffd",
            "uid": "u",
            "groups": ["g", "system:authenticated"],
            "extra": {"some/key": ["v"], "%zz": ["q"]},
        }


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        (b"Impersonate-Group: a", 'UID:"", Groups:[]string{"a"}, Extra:map[string][]string(nil)}'),
        (b"Impersonate-Uid: a", 'UID:"a", Groups:[]string(nil), Extra:map[string][]string(nil)}'),
        (b"Impersonate-Extra-A: b", 'UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"b"}}}'),
    ],
)
async def test_who_names_no_user_does_not_act_as_itself(header: bytes, shown: str) -> None:
    async with running_server() as running:
        status, answer = await ask_raw(running, CONFIGMAPS, header)
        assert status == 400
        assert answer["message"] == f'requested &user.DefaultInfo{{Name:"", {shown} without impersonating a user name'


@pytest.mark.parametrize("token", [b"\xff", b"eyJ.\xe9.x", b"a.b.c", b"x"])
async def test_a_token_that_nobody_gave_is_unauthorized(token: bytes) -> None:
    async with running_server() as running:
        status, answer = await ask_raw(running, "/api", b"Authorization: Bearer " + token, token=False)
        assert (status, answer["message"]) == (401, "Unauthorized")


@pytest.mark.parametrize("header", [b"User-Agent: \xff\xfe/1", b"Accept: \xff, */*", b"X: \xff"])
async def test_other_headers_that_are_no_text_do_no_harm(header: bytes) -> None:
    async with running_server() as running:
        status, _ = await ask_raw(
            running, CONFIGMAPS, header, b"Content-Type: application/json", body=b'{"metadata":{"name":"x"}}'
        )
        assert status in (201, 400)
        status, _ = await ask_raw(running, f"{CONFIGMAPS}/x", header)
        assert status in (200, 400, 404)


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [(0, 0), (1, 1), (-1, -1), (9223372036, 9223372036), (2**63 - 1, -1), (-(2**63), 0)],
)
def test_seconds_of_a_watch_are_nanoseconds_in_64_bits(asked: int, seconds: float) -> None:
    assert ListOptions(timeout_seconds=asked).watch_seconds == seconds


async def test_a_watch_for_less_than_no_time_ends_at_once_and_without_events() -> None:
    async with running_server() as running:
        ask = Asker(running)
        assert (await ask("POST", CONFIGMAPS, {"metadata": {"name": "x"}}))[0] == 201
        for seconds in ("-1", str(2**63 - 1)):
            assert await ask("GET", f"{CONFIGMAPS}?watch=1&timeoutSeconds={seconds}") == (200, b"")
        assert b"ADDED" in (await ask("GET", f"{CONFIGMAPS}?watch=1&timeoutSeconds=1"))[1]
        for wrong in ("x", "", "1.5", str(2**63)):
            assert (await ask("GET", f"{CONFIGMAPS}?watch=1&timeoutSeconds={wrong}"))[0] == 400
        assert (await ask("GET", f"{CONFIGMAPS}?watch=1&continue=x"))[0] == 422


async def test_what_is_not_http_is_a_line_in_the_log_and_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    async with running_server() as running:
        headers = (b"Transfer-Encoding: chunked", b"Content-Length: 5")
        lines = (b"POST /version HTTP/1.1", b"Host: localhost", *headers, b"", b"")
        answer = await asyncio.to_thread(raw_answer, running, b"\r\n".join(lines))
        assert answer.split()[1] == b"400"
    (record,) = [each for each in caplog.records if each.name == "lastcall.http"]
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert record.getMessage().startswith("Error handling request from 127.0.0.1: ")
