"""A new sandbox waits for the NetworkPolicies about it, and only while there are some."""

import asyncio

import pytest

from lastcall.kube.cluster.nodes import policy_gate
from lastcall.kube.cluster.nodes.policy_gate import PolicyGate
from lastcall.kube.cri.api import PodSandboxConfig, PodSandboxMetadata, RuntimeServiceError

CONFIG = PodSandboxConfig(PodSandboxMetadata("web", "u1", "default"), labels={"app": "web"})


class Network:
    def __init__(self) -> None:
        self.attached: list[str] = []

    async def attach(self, sandbox_id: str, netns_fd: int, pod_uid: str, config: PodSandboxConfig | None = None) -> str:
        self.attached.append(sandbox_id)
        return "10.244.0.2"

    async def adopt(self, sandbox_id: str, ip: str, config: PodSandboxConfig | None = None) -> None:
        self.attached.append(sandbox_id)

    async def detach(self, sandbox_id: str, ip: str) -> None:
        self.attached.remove(sandbox_id)

    async def status(self) -> str:
        return ""


async def test_without_policies_nobody_waits_and_who_is_attached_is_known() -> None:
    gate = PolicyGate(Network())
    assert await gate.attach("s", 0, "u1", CONFIG) == "10.244.0.2"
    (known,) = gate.attached.values()
    assert (known.pod, known.uid, known.address, known.labels) == (
        ("default", "web"),
        "u1",
        "10.244.0.2",
        {"app": "web"},
    )
    await gate.detach("s", "10.244.0.2")
    await gate.adopt("t", "10.244.0.3", CONFIG)
    assert [each.address for each in gate.attached.values()] == ["10.244.0.3"]


async def test_a_new_pod_is_admitted_when_its_address_is_known_to_who_admits() -> None:
    gate = PolicyGate(Network())
    seen: list[list[str]] = []

    async def admit() -> None:
        seen.append(list(gate.attached))

    gate.enforce(admit)
    await gate.attach("s", 0, "u1", CONFIG)
    assert seen == [["s"]]
    gate.enforce(None)
    await gate.attach("t", 0, "u2", CONFIG)
    assert len(seen) == 1


async def test_a_pod_waits_until_the_policies_are_known() -> None:
    gate = PolicyGate(Network())
    gate.expect()
    attaching = asyncio.ensure_future(gate.attach("s", 0, "u1", CONFIG))
    await asyncio.sleep(0)
    assert not attaching.done()
    gate.enforce(None)
    assert await attaching == "10.244.0.2"


async def test_a_sandbox_whose_policies_do_not_come_fails_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_gate, "WAIT_SECONDS", 0.0)
    gate = PolicyGate(Network())
    gate.expect()
    with pytest.raises(RuntimeServiceError, match="its NetworkPolicies are not in force yet"):
        await gate.attach("s", 0, "u1", CONFIG)


async def test_after_an_agent_that_failed_new_pods_wait_for_the_next_one() -> None:
    gate = PolicyGate(Network())
    assert not gate.expecting

    async def admit() -> None:
        pass

    gate.enforce(admit)
    gate.expect()
    assert gate.expecting
    waiting = asyncio.ensure_future(gate.attach("s", 0, "u1", CONFIG))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.enforce(admit)
    assert await waiting == "10.244.0.2"
    assert not gate.expecting
