"""The options of commands that talk to somebody's cluster, and what is chosen with them."""

import asyncio

import click
import pytest
from click.testing import CliRunner

from lastcall.cli.context_options import context_options
from lastcall.cli.terminal import note
from lastcall.contexts.connection import choose, connected
from lastcall.contexts.options import ContextOptions
from lastcall.errors import UserError, WorldError
from lastcall.kube.client.access.config import Impersonation

TWO = """
clusters: [{name: a, cluster: {server: "https://a:1"}}, {name: b, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}, {name: b, context: {cluster: b, namespace: shop}}]
current-context: a
"""


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "config"
    path.write_text(TWO)
    return str(path)


def asked(*words: str, **more) -> ContextOptions | str:
    found: list[ContextOptions] = []

    @click.command()
    @context_options(**more)
    def command(asked: ContextOptions) -> None:
        found.append(asked)

    result = CliRunner().invoke(command, list(words))
    return found[0] if found else result.output


def test_the_options_are_kubectl_s():
    told = asked(
        *("--kubeconfig", "f", "--context", "c", "-n", "shop", "--as", "jane", "--as-group", "a", "--as-group", "b"),
        *("--as-uid", "7", "--as-user-extra", "scopes=view", "--as-user-extra", "scopes=a=b"),
        *("--request-timeout", "5s", "--insecure-skip-tls-verify"),
    )
    extra = (("scopes", "view"), ("scopes", "a=b"))
    assert told == ContextOptions("f", "c", "shop", Impersonation("jane", ("a", "b"), "7", extra), 5.0, True)
    assert asked() == ContextOptions()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("-n", "A B"), "is not the name of a namespace"),
        (("--as-user-extra", "scopes"), "is not KEY=VALUE"),
        (("--request-timeout", "soon"), "is not a time"),
    ],
)
def test_a_value_that_is_wrong_is_named(words, part):
    assert part in asked(*words)


def test_a_command_can_leave_out_what_it_has_in_another_sense():
    assert "No such option" in asked("--request-timeout", "5s", without=("request-timeout",))
    assert "No such option" in asked("-n", "a", namespace=False)
    assert asked(without=("request-timeout",)) == ContextOptions()


def test_the_context_says_server_and_namespace_unless_an_option_does(kubeconfig):
    chosen = choose(ContextOptions(kubeconfig))
    assert (chosen.context, chosen.server, chosen.namespace) == ("a", "https://a:1", "default")
    chosen = choose(ContextOptions(kubeconfig, "b"))
    assert (chosen.context, chosen.server, chosen.namespace) == ("b", "http://127.0.0.1:1", "shop")
    assert choose(ContextOptions(kubeconfig, "b", "other")).namespace == "other"


def test_an_unknown_context_is_the_user_s_fault_and_names_those_that_exist(kubeconfig):
    with pytest.raises(UserError, match=r"context 'c' does not exist; there are: a, b"):
        choose(ContextOptions(kubeconfig, "c"))


def test_groups_without_a_user_are_refused_as_by_kubectl(kubeconfig):
    with pytest.raises(UserError, match="without impersonating a user"):
        choose(ContextOptions(kubeconfig, impersonate=Impersonation(groups=("a",))))


@pytest.mark.loopback
def test_a_server_that_does_not_answer_is_the_world_s_fault(kubeconfig):
    async def connect() -> None:
        async with connected(choose(ContextOptions(kubeconfig, "b")), agent="test", warn=note):
            raise AssertionError("there is nobody")

    with pytest.raises(WorldError, match=r"context 'b' \(http://127.0.0.1:1\)"):
        asyncio.run(connect())
