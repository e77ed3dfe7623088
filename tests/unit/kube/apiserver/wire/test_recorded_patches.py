"""Patches (and a few other requests) that a real Kubernetes 1.36.2 refused or took, asked of this server."""

import json
import re
import ssl
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from api_server import running_server
from yarl import URL

pytestmark = pytest.mark.loopback

RECORDED = json.loads(Path(__file__).with_name("recorded_patches.json").read_text())
"""`made` are the objects that are there; each of `answers` is asked after the one before it. In messages, uids, times
and resource versions are UID, TIME and RV."""

PLACES = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z"), "TIME"),
    (re.compile(r'(resourceVersion\\?":\\?")\d+'), r"\1RV"),
]


def with_places(message: str) -> str:
    for pattern, place in PLACES:
        message = pattern.sub(place, message)
    return message


async def test_what_is_wrong_with_a_patch_is_said_as_kubernetes_says_it() -> None:
    async with running_server() as running:
        trust = ssl.create_default_context(cadata=running.ca.certificate_pem.decode())
        headers = {"Authorization": f"Bearer {running.token}", "User-Agent": "differential/1"}
        async with aiohttp.ClientSession(
            running.url, headers=headers, connector=aiohttp.TCPConnector(ssl=trust)
        ) as http:

            async def ask(method: str, path: str, content_type: str, body: object) -> tuple[int, str]:
                data = None if body is None else json.dumps(body)
                kind = {"Content-Type": content_type} if content_type else {}
                async with http.request(method, URL(path, encoded=True), data=data, headers=kind) as response:
                    told = await response.json()
                    return response.status, with_places(told["message"]) if response.status >= 300 else ""

            for path, body in RECORDED["made"]:
                assert (await ask("POST", path, "application/json", body))[0] == 201
            found = {}
            for answer in RECORDED["answers"]:
                got = await ask(*answer["ask"])
                if got != (answer["status"], answer["message"]):
                    found[json.dumps(answer["ask"])] = (got, answer)
    assert found == {}
    assert Counter(answer["status"] for answer in RECORDED["answers"])[422] > 40
