"""Requests that a real Kubernetes 1.36.2 audited, sent again: every event has the same fields.

recorded.json: requests in order, as whom they were sent, and the events that kube-apiserver wrote for each. Left out is
what differs each time: times, uids, versions, and the id of the credential. An
apply in YAML has no event of its end there: kube-apiserver cannot encode its body as JSON, and loses the event.
"""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from api_server import RunningServer, running_server

from lastcall.kube.apiserver.audit.log import AuditOptions
from lastcall.kube.apiserver.audit.policy import parse_policy

pytestmark = pytest.mark.loopback

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [
        {"level": "None", "namespaces": ["quiet"]},
        {"level": "Metadata", "namespaces": ["meta"]},
        {"level": "Request", "namespaces": ["req"]},
        {"level": "RequestResponse", "namespaces": ["full"], "omitManagedFields": True},
        {"level": "Request", "nonResourceURLs": ["/version*"]},
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "Metadata", "omitStages": ["RequestReceived"]},
    ],
}
EACH_TIME = {
    "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "requestReceivedTimestamp", "stageTimestamp",
    "lastTransitionTime",
}  # fmt: skip
AGENT = "kubectl/v1.36.2 (linux/amd64) kubernetes/abc"


async def test_events_have_the_fields_that_kube_apiserver_wrote_for_the_same_requests(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with running_server(audit=AuditOptions(str(log), parse_policy(POLICY))) as server:
        for each in RECORDED:
            await send(server, each)
    found: dict[str, list[Any]] = {}
    for line in log.read_text().splitlines():
        event = without_each_time(json.loads(line))
        assert (event.pop("kind"), event.pop("apiVersion")) == ("Event", "audit.k8s.io/v1")
        event["user"].pop("extra", None)
        found.setdefault(event["auditID"], []).append(event)
    ours = {each["id"]: found.get(each["id"], []) for each in RECORDED if "apply" not in each["type"]}
    assert ours == {each["id"]: each["events"] for each in RECORDED if "apply" not in each["type"]}


async def test_what_the_level_leaves_out_is_nowhere_in_the_log(tmp_path: Path) -> None:
    log, secret = tmp_path / "audit.log", {"metadata": {"name": "s"}, "stringData": {"k": "mostsecret"}}
    policy = parse_policy({**POLICY, "rules": [{"level": "Metadata"}]})
    async with running_server(audit=AuditOptions(str(log), policy)) as server:
        await send(server, _request("POST", "/api/v1/namespaces/default/secrets", secret))
        await send(server, _request("GET", "/api/v1/namespaces/default/secrets/s"))
        await send(server, _request("GET", "/api/v1/secrets"))
    text = log.read_text()
    assert '"name":"s"' in text
    assert "mostsecret" not in text
    assert "bW9zdHNlY3JldA" not in text  # base64 of it
    assert server.token not in text


async def test_a_deletion_has_the_id_of_its_audit_event_in_its_record(tmp_path: Path) -> None:
    log, at = tmp_path / "audit.log", "/api/v1/namespaces/default"
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}], "nodeName": "n"}}
    async with running_server(audit=AuditOptions(str(log))) as server:
        await send(server, _request("POST", f"{at}/serviceaccounts", {"metadata": {"name": "default"}}))
        await send(server, _request("POST", f"{at}/pods", pod))
        await send(server, _request("DELETE", f"{at}/pods/p") | {"id": "of-the-delete"})
    accepted = next(facts for kind, _, _, facts in server.recorder.records if kind == "DeleteAccepted")
    assert (accepted["auditId"], accepted["sourceIPs"]) == ("of-the-delete", ["127.0.0.1"])
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [each["verb"] for each in events if each["auditID"] == "of-the-delete"] == ["delete"]


async def test_requests_of_this_process_are_audited_as_those_that_come_over_https(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    async with running_server(audit=AuditOptions(str(log))):
        await asyncio.sleep(0)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    made = next(each for each in events if each.get("objectRef", {}).get("name") == "system-node-critical")
    assert (made["verb"], made["user"]["username"], made["responseStatus"]["code"]) == (
        "create",
        "system:apiserver",
        201,
    )
    assert made["requestURI"] == "/apis/scheduling.k8s.io/v1/priorityclasses"


async def test_odd_bytes_and_numbers_are_written_and_fail_no_request(tmp_path: Path) -> None:
    log, path = tmp_path / "audit.log", "/api/v1/namespaces/default/configmaps/none"
    policy = parse_policy({**POLICY, "rules": [{"level": "RequestResponse", "omitStages": ["RequestReceived"]}]})
    body = b'{"metadata":{"generation":123456789012345678901234567890}}'
    async with running_server(audit=AuditOptions(str(log), policy)) as server:
        address = server.url.removeprefix("https://").partition(":")
        reader, writer = await asyncio.open_connection(address[0], int(address[2]), ssl=server.trust)
        head = f"PATCH {path} HTTP/1.1\r\nHost: {address[0]}\r\nAuthorization: Bearer {server.token}\r\n"
        head += f"Audit-ID: odd\r\nContent-Type: application/merge-patch+json\r\nContent-Length: {len(body)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\nUser-Agent: \xff\xfe\r\n\r\n" + body)
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 404"), answer[:200]
    (event,) = [each for line in log.read_text().splitlines() if (each := json.loads(line))["auditID"] == "odd"]
    assert event["requestObject"]["metadata"]["generation"] == pytest.approx(1.2345678901234568e29)
    assert len(event["userAgent"]) == 2


def _request(method: str, path: str, body: Any = None) -> dict[str, Any]:
    return {"method": method, "path": path, "body": body, "type": "application/json" if body else "", "headers": {},
            "who": "admin", "id": "x"}  # fmt: skip


async def send(server: RunningServer, each: dict[str, Any]) -> None:
    headers = {"User-Agent": AGENT, "Accept": "application/json", "Audit-ID": each["id"]}
    if each["type"]:
        headers["Content-Type"] = each["type"]
    tokens = {"admin": server.token, "nobody": "nonsense"}
    if each["who"] in tokens:
        headers["Authorization"] = f"Bearer {tokens[each['who']]}"
    body = each["body"] if isinstance(each["body"], str | None) else json.dumps(each["body"])
    trust = ssl.create_default_context(cadata=server.ca.certificate_pem.decode())
    url = aiohttp.client.URL(server.url + each["path"], encoded=True)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, force_close=True)) as session:
        async with session.request(each["method"], url, data=body, headers={**headers, **each["headers"]}) as answer:
            assert answer.headers.get("Audit-Id", each["id"]) == each["id"]
            await answer.read()


def without_each_time(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_each_time(each) for key, each in value.items() if key not in EACH_TIME}
    return [without_each_time(each) for each in value] if isinstance(value, list) else value
