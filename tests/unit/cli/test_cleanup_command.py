"""`lastcall cleanup` and `lastcall doctor --context` with forged ledgers: what they print, and their exit status."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fake_api import FakeAPI

from lastcall.cli import leftovers as looking
from lastcall.cli.cleanup import _cleanup
from lastcall.cli.errors import guarded
from lastcall.contexts.options import ContextOptions
from lastcall.experiment.existing import connection as reaching
from lastcall.experiment.existing.changes import this_process
from lastcall.experiment.existing.ledger import LABEL, Created, Holder, Ledger, Target, as_config_map
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import CONFIGMAPS, SECRETS
from lastcall.world.world import World

GONE = Holder("another-machine", 1, 1)
DEEP = {"entries": "[" * 100_000, "holder": "{}"}


def config_map(name: str, data: dict[str, str], namespace: str = "shop") -> Object:
    return {
        "metadata": {"name": f"lastcall-ledger-{name}", "namespace": namespace, "labels": {LABEL: name}},
        "data": data,
    }


def ledger(id_: str, holder: Holder = GONE, *names: str) -> Object:
    entries = tuple(Created(Target.of(SECRETS, name, "shop")) for name in names)
    return as_config_map(Ledger(id_, holder, entries), "shop")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeAPI:
    """The cluster of context `mine`, without ledgers."""
    api = FakeAPI(World())

    @asynccontextmanager
    async def reached(asked: ContextOptions, warn: Callable[[str], None]) -> AsyncIterator[reaching.Reached]:
        yield reaching.Reached(api, "mine", "https://h", "shop")  # type: ignore[arg-type]

    monkeypatch.setattr("lastcall.experiment.existing.reached", reached)
    monkeypatch.setattr(looking, "reached", reached)
    return api


@pytest.fixture
def run() -> Callable[[], int]:
    """Clean context `mine` up without asking. Return the exit status."""
    asked = ContextOptions(context="mine")

    def clean() -> int:
        asyncio.run(_cleanup(asked, "mine"))
        return 0

    return lambda: guarded(clean)


def test_a_cluster_without_ledgers_is_clean(cluster: FakeAPI, run: Callable[[], int], capsys: Any) -> None:
    assert run() == 0 and capsys.readouterr().out == "nothing is left in context mine\n"


def test_a_forged_ledger_is_named_and_the_rest_is_cleaned(cluster: FakeAPI, run: Any, capsys: Any) -> None:
    secret = {"metadata": {"name": "s", "namespace": "shop", "labels": {LABEL: "a1"}}}
    for resource, obj in (
        (CONFIGMAPS, config_map("deep", DEEP)),
        (SECRETS, secret),
        (CONFIGMAPS, ledger("a1", GONE, "s")),
    ):
        cluster.put(resource, obj)
    assert run() == 1
    out, err = capsys.readouterr()
    assert out == "deleted Secret s\n"
    assert "namespace shop: ConfigMap lastcall-ledger-deep is not a ledger: it is nested too deeply" in err
    assert "kubectl delete configmap NAME -n NAMESPACE" in err
    assert cluster.of(SECRETS) == []
    assert [name_of(each) for each in cluster.of(CONFIGMAPS)] == ["lastcall-ledger-deep"]


def test_a_forged_ledger_alone_is_not_nothing(cluster: FakeAPI, run: Any, capsys: Any) -> None:
    cluster.put(CONFIGMAPS, config_map("deep", DEEP))
    assert run() == 1 and "nothing is left" not in capsys.readouterr().out


def test_an_experiment_that_runs_is_not_nothing(cluster: FakeAPI, run: Any, capsys: Any) -> None:
    cluster.put(CONFIGMAPS, ledger("a1", this_process(), "s"))
    assert run() == 2
    out, err = capsys.readouterr()
    assert out == "" and "an experiment is still running: its changes were not undone" in err


def test_doctor_reports_a_forged_ledger(cluster: FakeAPI, capsys: Any) -> None:
    cluster.put(CONFIGMAPS, config_map("deep", DEEP, "kube-system"))
    assert looking.look_for_leftovers(ContextOptions(context="mine"), "text") == 1
    assert "namespace kube-system: ConfigMap lastcall-ledger-deep is not a ledger" in capsys.readouterr().out
