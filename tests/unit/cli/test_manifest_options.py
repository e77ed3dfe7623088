"""`-f`, `-k`, `-R` and `-n`: the same for every command that reads manifests."""

import json
import stat

import click
import pytest
from click.testing import CliRunner

from lastcall.cli.commands import cli
from lastcall.cli.options import Sources, manifest_options

POD = "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{rest}}}\nspec: {{containers: [{{name: app, image: a:1}}]}}\n"


@click.command()
@manifest_options("MANIFEST")
def tell(sources: Sources) -> None:
    """Prints what was read."""
    for each in sources.load():
        metadata = each.obj["metadata"]
        click.echo(f"{each.resource.kind} {metadata.get('namespace')}/{metadata['name']}")


@pytest.fixture
def there(tmp_path, monkeypatch):
    """Three Pods: a.yaml, and below it deeper/b.yaml and deeper/still/c.yml (in the namespace `own`)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deeper" / "still").mkdir(parents=True)
    (tmp_path / "a.yaml").write_text(POD.format(name="a", rest=""))
    (tmp_path / "deeper" / "b.yaml").write_text(POD.format(name="b", rest=""))
    (tmp_path / "deeper" / "still" / "c.yml").write_text(POD.format(name="c", rest=", namespace: own"))
    return tmp_path


def told(*arguments, **more):
    result = CliRunner().invoke(tell, arguments, **more)
    assert result.exit_code == 0, result.output + str(result.exception)
    return result.stdout.splitlines()


@pytest.mark.usefixtures("there")
def test_a_filename_is_the_same_as_an_argument_and_both_may_be_repeated():
    assert told("a.yaml", "-f", "deeper/b.yaml", "--filename=deeper/still/c.yml") == [
        "Pod default/a",
        "Pod default/b",
        "Pod own/c",
    ]
    assert told("-f", "-", input=POD.format(name="s", rest="")) == ["Pod default/s"]


@pytest.mark.usefixtures("there")
def test_subdirectories_are_read_only_with_recursive():
    assert told("-f", ".") == ["Pod default/a"]
    assert told("-R", "-f", ".") == ["Pod default/a", "Pod default/b", "Pod own/c"]


@pytest.mark.usefixtures("there")
def test_a_directory_with_manifests_only_below_it_says_how_they_are_read(there):
    (there / "a.yaml").unlink()
    result = CliRunner().invoke(tell, ["."])
    assert "no manifest in this directory: use -R to read its subdirectories" in str(result.exception)


@pytest.mark.usefixtures("there")
def test_the_namespace_is_for_objects_that_name_none():
    assert told("-n", "shop", "-R", ".") == ["Pod shop/a", "Pod shop/b", "Pod own/c"]


@pytest.mark.parametrize("wrong", ["Shop", "-x", "a" * 64, "a.b", "shop\n"])
def test_what_is_no_namespace_is_refused_before_anything_is_read(wrong):
    result = CliRunner().invoke(tell, [f"--namespace={wrong}", "missing.yaml"])
    assert result.exit_code == 2
    assert "is not the name of a namespace" in result.output


@pytest.mark.loopback
def test_a_kustomization_is_read_beside_files(there, monkeypatch):
    program = there / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = kustomize ] && cat "$2/out.yaml"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (there / "overlay").mkdir()
    (there / "overlay" / "out.yaml").write_text(POD.format(name="k", rest=""))
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert told("a.yaml", "-k", "overlay", "-n", "shop") == ["Pod shop/a", "Pod shop/k"]


def test_a_kustomization_needs_a_program_and_the_error_says_which(there, monkeypatch):
    monkeypatch.setenv("PATH", str(there))
    result = CliRunner().invoke(tell, ["-k", "overlay"])
    assert "neither kubectl nor kustomize is on your PATH" in str(result.exception)


@pytest.mark.parametrize("command", ["run", "rollout", "lint"])
def test_every_command_that_reads_manifests_has_them(command):
    text = CliRunner().invoke(cli, [command, "--help"]).output
    for option in ("-f, --filename", "-k, --kustomize DIR", "-R, --recursive", "-n, --namespace NAMESPACE"):
        assert option in text


@pytest.mark.parametrize("command", ["run", "rollout"])
def test_a_command_without_manifests_says_what_to_give(command):
    result = CliRunner().invoke(cli, [command])
    assert result.exit_code == 2
    assert "Missing argument 'MANIFEST': give a file, a directory, - for stdin, or -k DIR" in result.output


@pytest.mark.usefixtures("there")
def test_lint_looks_for_a_service_s_pods_in_the_namespace_given(there):
    (there / "service.yaml").write_text(
        "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"
        "spec: {selector: {app: web}, ports: [{port: 80}]}\n"
    )
    (there / "pod.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {app: web}}\n"
        "spec: {containers: [{name: app, image: 'a:1'}]}\n"
    )

    def rules(*more):
        result = CliRunner().invoke(cli, ["lint", "-f", "service.yaml", "-f", "pod.yaml", "-o", "json", *more])
        return {each["rule"] for each in json.loads(result.output)["findings"]}

    alone, together = rules(), rules("-n", "shop")
    assert alone - together, "the Service has no Pod in its namespace"


@pytest.mark.usefixtures("there")
def test_what_was_read_is_said_on_stderr_so_that_documents_on_stdout_stay_whole():
    result = CliRunner().invoke(tell, ["-R", "."])
    assert result.stderr == "a.yaml, deeper/b.yaml, deeper/still/c.yml: 3 Pods, a, b, c\n"
