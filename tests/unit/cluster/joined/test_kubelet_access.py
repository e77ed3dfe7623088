"""Who may use the kubelet's port in somebody's cluster: certificates, tokens, and the rights that the cluster gives."""

import asyncio
from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from lastcall.api.errors import status_failure
from lastcall.api.meta import Object
from lastcall.api.resources import Resource
from lastcall.node.streaming.access import User, WebhookAccess, subresources, user_of_certificate


class Reviewer:
    """An API server that knows one token, and rights by user and subresource."""

    def __init__(self, rights: set[tuple[str, str]]) -> None:
        self.rights = rights
        self.asked: list[str] = []

    async def create(self, resource: Resource, obj: Any, namespace: str = "") -> Object:
        self.asked.append(resource.kind)
        spec = obj["spec"]
        if resource.kind == "TokenReview":
            if spec["token"] != "good":
                return {"status": {"authenticated": False}}
            return {"status": {"authenticated": True, "user": {"username": "reader", "groups": ["g"], "uid": "1"}}}
        attributes = spec["resourceAttributes"]
        assert (attributes["resource"], attributes["name"]) == ("nodes", "n1")
        return {
            "status": {"allowed": (spec["user"], f"{attributes['verb']} {attributes['subresource']}") in self.rights}
        }


def asked(path: str, token: str = "", method: str = "GET") -> Any:
    return make_mocked_request(method, path, headers={"Authorization": f"Bearer {token}"} if token else {})


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/pods", ("pods", "proxy")),
        ("/healthz", ("healthz", "proxy")),
        ("/stats/summary", ("stats",)),
        ("/metrics/cadvisor", ("metrics",)),
        ("/logs/x", ("log",)),
        ("/containerLogs/a/b/c", ("proxy",)),
        ("/exec/a/b/c", ("proxy",)),
        ("/", ("proxy",)),
    ],
)
def test_a_path_is_a_subresource_of_the_node(path: str, wanted: tuple[str, ...]) -> None:
    assert subresources(path) == wanted


def test_a_certificate_s_subject_is_a_user_and_its_groups() -> None:
    subject = ((("organizationName", "system:masters"),), (("commonName", "admin"),))
    assert user_of_certificate({"subject": subject}) == User("admin", ("system:masters",))
    assert user_of_certificate({"subject": ()}) is None
    assert user_of_certificate(None) is None


def test_tokens_and_rights_are_asked_for_once_and_again_later() -> None:
    reviewer, clock = Reviewer({("reader", "get metrics"), ("reader", "get pods")}), Clock()
    access = WebhookAccess(reviewer, clock, "n1")  # type: ignore[arg-type]

    async def status(path: str, token: str = "", method: str = "GET") -> int:
        refused = await access.refusal(asked(path, token, method))
        return 200 if refused is None else refused.status

    async def story() -> None:
        assert await status("/metrics") == 401
        assert await status("/metrics", "bad") == 401
        assert await status("/metrics", "good") == 200
        assert await status("/pods", "good") == 200
        assert await status("/metrics", "good", "POST") == 403
        assert await status("/exec/a/b/c", "good", "POST") == 403
        before = len(reviewer.asked)
        assert await status("/metrics", "good") == 200
        assert await status("/exec/a/b/c", "good", "POST") == 403
        assert len(reviewer.asked) == before, "it remembers"
        reviewer.rights.add(("reader", "create proxy"))
        clock.seconds += 31
        assert await status("/exec/a/b/c", "good", "POST") == 200, "a refusal is remembered for 30 s"
        reviewer.rights.clear()
        assert await status("/metrics", "good") == 200, "what is allowed for 5 minutes"
        clock.seconds += 301
        assert await status("/metrics", "good") == 403

    asyncio.run(story())


def test_an_api_server_that_cannot_be_asked_lets_nobody_in() -> None:
    class Broken(Reviewer):
        async def create(self, resource: Resource, obj: Any, namespace: str = "") -> Object:
            raise status_failure(503, "ServiceUnavailable", "later")

    async def story() -> None:
        refused = await WebhookAccess(Broken(set()), Clock(), "n1").refusal(asked("/pods", "good"))  # type: ignore[arg-type]
        assert refused is not None
        assert refused.status == 500

    asyncio.run(story())


class Clock:
    def __init__(self) -> None:
        self.seconds = 0

    def monotonic_ns(self) -> int:
        return self.seconds * 10**9

    def wall_ns(self) -> int:
        return self.monotonic_ns()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("it waits for nothing")
