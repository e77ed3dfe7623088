"""What nodes may: reviews and requests that a real Kubernetes 1.36.2 answered, with its texts.

The file has setup (as administrator), reviews (user, groups, verb, group, resource, subresource, namespace, name, field
selector → allowed, reason, error) and requests (as whom, method, path, body, content type → code, message, status).
`uid:n1` stands for the uid of what the setup made under that name.
"""

import asyncio
import http.client
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from api_server import running_server

pytestmark = pytest.mark.loopback

RECORDED = json.loads((Path(__file__).parent / "recorded_node_requests.json").read_text())
PREFIX = ": @@ "  # Kubernetes ends one text with a difference as Go prints it

DIFFERS = {
    ("system:node:n1|system:nodes,wn-all", "DELETE", "/api/v1/namespaces/wa/pods?fieldSelector=metadata.name%3Dp2"): (
        "here the refusal is told; there nothing is deleted either, and the answer is 200"
    ),
    ("system:node:n1|system:nodes,wn-all", "POST", "/api/v1/namespaces/wa/bindings"): (
        "here a Binding is looked at as the Pod's; there as a kind of its own, of which NodeRestriction says nothing"
    ),
    ("system:node:n1|system:nodes,wn-all", "DELETE", "/api/v1/nodes"): "here the first Node of the collection is named",
}
"""Requests with other answers, and why. Only a node to which somebody has given more than nodes have can ask them."""


class Asker:
    """Sends requests as whom it is told."""

    def __init__(self, url: str, token: str, trust: ssl.SSLContext) -> None:
        self.connection = http.client.HTTPSConnection(url.removeprefix("https://"), context=trust)
        self.token = token
        self.uids: dict[str, str] = {}

    def ask(self, who: str, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, Any]:
        data = None if body is None else json.dumps(self._with_uids(body)).encode()
        self.connection.putrequest(method, path)
        self.connection.putheader("Authorization", f"Bearer {self.token}")
        self.connection.putheader("Accept", "application/json")
        if who != "admin":
            user, _, groups = who.partition("|")
            self.connection.putheader("Impersonate-User", user)
            for group in filter(None, groups.split(",")):
                self.connection.putheader("Impersonate-Group", group)
        if data is not None:
            self.connection.putheader("Content-Type", content_type or "application/json")
            self.connection.putheader("Content-Length", str(len(data)))
        self.connection.endheaders(data)
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def set_up(self) -> None:
        for method, path, body, content_type, name in RECORDED["setup"]:
            code, answer = self.ask("admin", method, path, body, content_type)
            assert code < 300, (path, answer)
            if name:
                self.uids[name] = answer["metadata"]["uid"]

    def _with_uids(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._with_uids(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._with_uids(each) for each in value]
        return self.uids[value[4:]] if isinstance(value, str) and value.startswith("uid:") else value

    def without_uids(self, text: str) -> str:
        for name, uid in self.uids.items():
            text = text.replace(uid, f"uid:{name}")
        return text


async def asked(run) -> None:
    async with running_server() as running:
        asker = Asker(running.url, running.token, running.trust)

        def all_of_it() -> None:
            asker.set_up()
            run(asker)

        try:
            await asyncio.to_thread(all_of_it)
        finally:
            asker.connection.close()


def _reviewed(asker: Asker, row: list) -> list:
    user, groups, verb, group, resource, subresource, namespace, name, requirements, *_ = row
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    if requirements:
        attributes["fieldSelector"] = {"requirements": requirements}
    review = {"spec": {"user": user, "groups": groups, "resourceAttributes": attributes}}
    code, answer = asker.ask("admin", "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert code == 201, answer
    status = answer["status"]
    return [status["allowed"], status.get("reason", ""), status.get("evaluationError", "")]


def _sorted(status: dict) -> dict:
    """Rules come in no order."""
    return {key: sorted(map(str, value)) if isinstance(value, list) else value for key, value in status.items()}


async def test_reviews_of_what_nodes_and_proxies_may_are_answered_as_by_a_real_cluster() -> None:
    differences = []

    def run(asker: Asker) -> None:
        for row in RECORDED["reviews"]:
            found = _reviewed(asker, row)
            if found != row[-3:]:
                differences.append((row, found))

    await asked(run)
    assert differences == []


@pytest.mark.timeout(120)
async def test_requests_of_nodes_are_answered_as_by_a_real_cluster() -> None:
    differences = []

    def run(asker: Asker) -> None:
        for who, method, path, body, content_type, code, message, status in RECORDED["requests"]:
            got, answer = asker.ask(who, method, path, body, content_type)
            found = asker.without_uids(answer.get("message", "")) if got >= 400 else ""
            same = (got, found) == (code, message.partition(PREFIX)[0])
            if status is not None:
                same = same and _sorted(answer["status"]) == _sorted(status)
            if same is ((who, method, path) in DIFFERS):
                differences.append(
                    (who, method, path, body, (code, message, status), (got, found, answer.get("status")))
                )

    await asked(run)
    assert differences == []
