"""What experiments on an existing cluster share: who may begin, and what an error says."""

from types import SimpleNamespace
from typing import Any

import pytest
from fake_api import FakeAPI

from lastcall.errors import LastcallError, UserError
from lastcall.experiment.existing.changes import this_process
from lastcall.experiment.existing.connection import Reached
from lastcall.experiment.existing.ledger import Created, Holder, Ledger, Target, as_config_map
from lastcall.experiment.existing.namespace import ExistingNamespace
from lastcall.experiment.existing.plan import Plan
from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.resources import CONFIGMAPS, SECRETS
from lastcall.kube.client.access.config import Impersonation
from lastcall.trace.node_agent import AgentOptions
from lastcall.world.world import World

KILLED = Holder("another-machine", 1, 1)


def namespace(api: FakeAPI, asked: list[Plan], agents: AgentOptions | None = None) -> ExistingNamespace:
    config: Any = SimpleNamespace(server="https://h", impersonate=Impersonation())
    cluster = Reached(api, "mine", "https://h", "shop", config=config)  # type: ignore[arg-type]
    return ExistingNamespace(cluster=cluster, confirm=asked.append, agents=agents)


async def with_ledger(api: FakeAPI, holder: Holder) -> None:
    entries = (Created(Target.of(SECRETS, "a", "shop")),)
    await api.create(CONFIGMAPS, as_config_map(Ledger("0123abcd", holder, entries), "shop"), "shop")


@pytest.mark.parametrize(
    ("holder", "words"),
    [
        (this_process(), "another experiment is running in namespace shop"),
        (KILLED, "has not put back what it changed\nfix: lastcall cleanup --context mine -n shop"),
    ],
)
async def test_a_second_experiment_in_a_namespace_is_refused_before_its_plan(
    holder: Holder, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("getpid", "getppid"):
        monkeypatch.setattr(f"lastcall.experiment.existing.preflight.os.{name}", lambda: -1)
    api, asked = FakeAPI(World()), list[Plan]()
    await with_ledger(api, holder)
    with pytest.raises(UserError) as refused:
        await namespace(api, asked).agree("shop", ["end it"], [], World())
    assert words in str(refused.value) and not asked
    await namespace(api, asked).agree("other", ["end it"], [], World())
    assert [each.steps for each in asked] == [("end it",)]


@pytest.mark.parametrize("whose", ["getpid", "getppid"])
async def test_a_program_may_begin_another_one_beside_its_own(whose: str, monkeypatch: pytest.MonkeyPatch) -> None:
    api, asked, own = FakeAPI(World()), list[Plan](), this_process()
    await with_ledger(api, own)
    for name in ("getpid", "getppid"):
        pid = own.pid if name == whose else -1
        monkeypatch.setattr(f"lastcall.experiment.existing.preflight.os.{name}", lambda pid=pid: pid)
    await namespace(api, asked).agree("shop", ["end it"], [], World())
    assert len(asked) == 1


async def test_who_may_not_see_ledgers_may_begin() -> None:
    api, asked = FakeAPI(World()), list[Plan]()
    await with_ledger(api, KILLED)
    api.fail_next("list", "configmaps", status_failure(403, "Forbidden", "configmaps is forbidden"))
    await namespace(api, asked).agree("shop", ["end it"], [], World())
    assert len(asked) == 1


async def test_the_plan_names_the_agents_and_where_their_jobs_are() -> None:
    asked = list[Plan]()
    place = namespace(FakeAPI(World()), asked, AgentOptions(namespace="tools"))
    await place.agree("shop", ["end it"], ["take it back"], World())
    (plan,) = asked
    assert plan.steps == ("run an agent, which reads the node, on each node of these Pods", "end it")
    assert plan.restored == ("take it back", "delete the Jobs of these agents in namespace tools")


async def test_a_right_that_is_lost_meanwhile_is_named_with_the_context() -> None:
    place = namespace(FakeAPI(World()), [])

    async def work() -> None:
        raise ExceptionGroup("tasks", [status_failure(403, "Forbidden", 'pods is forbidden: User "ann" cannot list')])

    with pytest.raises(LastcallError) as error:
        await place.alive(work())
    assert "context 'mine' (https://h): pods is forbidden" in str(error.value)
