"""Tokens of a ServiceAccount that a component acts by: made, renewed, made again after a 401."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.resources import NAMESPACES, SERVICEACCOUNTS, Resource
from lastcall.kube.client.access.config import ClientConfig
from lastcall.kube.client.access.credentials import CredentialsFailed
from lastcall.kube.client.access.service_account import AccountCredentials, renew_at
from lastcall.kube.client.api import ConnectionLost

CONFIG = ClientConfig(server="http://127.0.0.1:1")


class Server:
    """Answers what `AccountCredentials` asks. `there` are the objects, by plural and name."""

    def __init__(self, *there: tuple[str, str]) -> None:
        self.there = set(there)
        self.asked: list[str] = []
        self.tokens = 0
        self.now = 1_000_000.0
        self.seconds = 3600.0
        self.error: Exception | None = None
        self.answer: Any = None

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
        self.asked.append(f"get {resource.plural} {name}")
        if (resource.plural, name) not in self.there:
            raise status_failure(404, "NotFound", "no")
        return {}

    async def create(self, resource: Resource, obj: Any, namespace: str = "", **options: Any) -> Any:
        name = options.get("name") or obj["metadata"]["name"]
        self.asked.append(f"create {resource.plural} {name} {options.get('subresource', '')}".strip())
        if self.error is not None:
            raise self.error
        if options.get("subresource") != "token":
            self.there.add((resource.plural, name))
            return obj
        self.tokens += 1
        if self.answer is not None:
            return self.answer
        expires = self.now + self.seconds
        return {"status": {"token": f"token-{self.tokens}", "expirationTimestamp": _stamp(expires)}}


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


def credentials(server: Server) -> AccountCredentials:
    return AccountCredentials(server, CONFIG, "job-controller", wall=lambda: server.now)  # type: ignore[arg-type]


ACCOUNT = (SERVICEACCOUNTS.plural, "job-controller")


async def test_a_token_is_used_until_a_fifth_of_its_life_is_left() -> None:
    server = Server(ACCOUNT)
    own = credentials(server)
    assert (await own.proof()).authorization == "Bearer token-1"
    server.now += 0.79 * 3600
    assert (await own.proof()).authorization == "Bearer token-1"
    server.now += 0.02 * 3600
    assert (await own.proof()).authorization == "Bearer token-2"


@pytest.mark.parametrize(("now", "expires", "at"), [(0, 100, 80), (100, 100, 100), (100, 50, 100)])
def test_a_token_that_is_over_already_is_renewed_at_once(now: float, expires: float, at: float) -> None:
    assert renew_at(now, expires) == at


async def test_requests_at_once_ask_for_one_token() -> None:
    server = Server(ACCOUNT)
    own = credentials(server)
    proofs = await asyncio.gather(*(own.proof() for _ in range(10)))
    assert {each.authorization for each in proofs} == {"Bearer token-1"}


async def test_an_account_that_is_missing_is_made_and_its_namespace_too() -> None:
    server = Server()
    await credentials(server).proof()
    assert server.asked == [
        "get serviceaccounts job-controller",
        "get namespaces kube-system",
        "create namespaces kube-system",
        "create serviceaccounts job-controller",
        "create serviceaccounts job-controller token",
    ]


async def test_a_namespace_that_may_not_be_looked_at_is_no_reason_to_give_up() -> None:
    class Closed(Server):
        async def get(self, resource: Resource, name: str, namespace: str = "") -> Any:
            if resource is NAMESPACES:
                raise status_failure(403, "Forbidden", "no")
            return await super().get(resource, name, namespace)

    assert (await credentials(Closed()).proof()).authorization == "Bearer token-1"


async def test_after_a_401_the_account_is_looked_at_and_another_token_is_asked_for() -> None:
    server = Server(ACCOUNT)
    own = credentials(server)
    old = await own.proof()
    server.there.clear()
    assert await own.refused(old)
    assert (await own.proof()).authorization == "Bearer token-2"
    assert ACCOUNT in server.there
    assert await own.refused(old), "somebody else has a new one already: it is good for this request, too"
    assert (await own.proof()).authorization == "Bearer token-2"


@pytest.mark.parametrize(
    "error", [status_failure(403, "Forbidden", "may not create tokens"), ConnectionLost("connection refused")]
)
async def test_without_a_token_nothing_is_sent_and_the_reason_is_told(error: StatusError | ConnectionLost) -> None:
    server = Server(ACCOUNT)
    server.error = error
    with pytest.raises(
        CredentialsFailed, match=r"token of the ServiceAccount kube-system/job-controller: .*(may not|refused)"
    ):
        await credentials(server).proof()


@pytest.mark.parametrize("answer", [{}, {"status": {}}, {"status": {"token": "a", "expirationTimestamp": "soon"}}, []])
async def test_an_answer_without_a_token_is_told_as_that(answer: Any) -> None:
    server = Server(ACCOUNT)
    server.answer = answer
    with pytest.raises(CredentialsFailed, match="has no token"):
        await credentials(server).proof()
