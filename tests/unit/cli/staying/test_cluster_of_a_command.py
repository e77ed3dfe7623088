"""Which cluster a command is about that names none."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lastcall.cli.staying.clusters import cluster_option


@click.command()
@cluster_option
def which(cluster: str) -> None:
    click.echo(cluster)


@pytest.mark.parametrize(
    ("there", "kubeconfig", "words", "name"),
    [
        ((), "", (), "lastcall"),
        (("dev",), "", (), "dev"),
        (("dev", "lastcall"), "", (), "lastcall"),
        (("dev", "lastcall", "qa"), "lastcall/dev/kubeconfig", (), "dev"),
        (("dev", "lastcall", "qa"), "lastcall/dev/kubeconfig", ("--name", "qa"), "qa"),
        (("dev", "lastcall"), "lastcall/gone/kubeconfig", (), "lastcall"),
        (("dev", "lastcall"), "elsewhere/dev/kubeconfig", (), "lastcall"),
        (("dev", "lastcall"), "lastcall/dev/config", (), "lastcall"),
    ],
)
def test_a_command_is_about_the_cluster_that_kubectl_uses_unless_it_names_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    there: tuple[str, ...],
    kubeconfig: str,
    words: tuple[str, ...],
    name: str,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/{kubeconfig}" if kubeconfig else "")
    (tmp_path / "lastcall").mkdir(mode=0o700)
    for each in there:
        (tmp_path / "lastcall" / each).mkdir(mode=0o700)
    assert CliRunner().invoke(which, words).output == f"{name}\n"
