"""Which handler a Pod's RuntimeClass asks for, and what the runtime says to one that it has not."""

import asyncio
from typing import Any

import pytest
from fake_api import FakeAPI

from lastcall.kube.api.resources import RUNTIMECLASSES
from lastcall.kube.cri.api import RuntimeServiceError, check_handler
from lastcall.kube.node.runtime.classes import runtime_handlers
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def asked(name: str | None, *classes: tuple[str, str]) -> str:
    found: list[str] = []

    async def main(world: World) -> None:
        api = FakeAPI(world)
        for each, handler in classes:
            api.put(RUNTIMECLASSES, {"metadata": {"name": each}, "handler": handler})
        spec: dict[str, Any] = {"containers": []} if name is None else {"runtimeClassName": name, "containers": []}
        found.append(await runtime_handlers(api)({"metadata": {}, "spec": spec}))  # type: ignore[typeddict-item]

    run_virtual(main)
    return found[0]


def test_a_pod_without_a_class_gets_the_default_and_nobody_is_asked() -> None:
    nobody: Any = None
    pod: Any = {"metadata": {}, "spec": {"containers": []}}
    assert asyncio.run(runtime_handlers(nobody)(pod)) == ""


def test_a_class_names_its_handler() -> None:
    assert asked("sandboxed", ("sandboxed", "runsc")) == "runsc"


def test_a_class_that_is_gone_is_an_error_of_the_sandbox() -> None:
    with pytest.raises(RuntimeServiceError, match="not found"):
        asked("gone")


@pytest.mark.parametrize("handler", ["", "runc", "test-handler"])
def test_the_handlers_are_those_of_containerd_in_kind(handler: str) -> None:
    check_handler(handler)


def test_another_handler_is_refused_in_containerd_s_words() -> None:
    """As containerd 1.6 and a kubelet of 1.36 said it."""
    with pytest.raises(RuntimeServiceError) as refused:
        check_handler("net-unconfigured")
    assert str(refused.value) == (
        "rpc error: code = Unknown desc = failed to get sandbox runtime: "
        'no runtime for "net-unconfigured" is configured'
    )
