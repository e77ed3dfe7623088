"""What a real Kubernetes 1.36.2 answered to requests that look for the edges of a rule, and what is answered here.

Each group was sent to a new server, in this order. Recorded are the status, the message of a Status (without what every
server chooses itself), the warnings, and of some answers a part of the object.
"""

import asyncio
import json
import re
from functools import reduce
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from api_server import running_server

from lastcall.kube.api.resources import NAMESPACES, SERVICEACCOUNTS

pytestmark = pytest.mark.loopback

CHOSEN = re.compile(r'(\\*"(?:uid|resourceVersion|creationTimestamp|time)\\*":\\*"|in object meta: )[^"\\]*')
RECORDED = json.loads((Path(__file__).parent / "recorded_answers.json").read_text())


def part_of(value: Any, key: str | int) -> Any:
    return value[key] if isinstance(key, int) else (value or {}).get(key)


async def answers(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    async with running_server() as server, aiohttp.ClientSession() as session:
        for name in ("n1", "n2"):
            await server.admin.create(NAMESPACES, {"metadata": {"name": name}})
            await server.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, name)
        for request in requests:
            headers = {
                "Authorization": f"Bearer {server.token}",
                "Content-Type": "application/json",
                "Accept": "application/json",
                "User-Agent": "differential/1",
                **request.get("headers", {}),
            }
            body = json.dumps(request["body"]) if "body" in request else None
            async with session.request(
                request["method"], server.url + request["path"], headers=headers, data=body, ssl=server.trust
            ) as answer:
                text = await answer.text()
                said = json.loads(text) if answer.content_type == "application/json" else {}
                told = {key: request[key] for key in ("method", "path", "headers", "body", "part") if key in request}
                told["status"] = answer.status
                if said.get("kind") == "Status" and said.get("message"):
                    told["message"] = CHOSEN.sub(r"\1", said["message"])
                if "part" in request:
                    told["value"] = reduce(part_of, request["part"], said)
                if warnings := answer.headers.getall("Warning", []):
                    told["warning"] = "\n".join(warnings)
                found.append(told)
    return found


@pytest.mark.parametrize("group", RECORDED, ids=lambda each: each["group"])
def test_borderline_requests_are_answered_as_by_a_real_server(group: dict[str, Any]) -> None:
    found = asyncio.run(answers(group["requests"]))
    for ours, real in zip(found, group["requests"], strict=True):
        assert ours == real
