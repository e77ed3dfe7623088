"""Flag > variable > lastcall.yaml > default; and what a lastcall.yaml that came with a repository cannot do."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner
from published_schema import problems

from lastcall.cli.commands import COMMANDS, OTHER_WORDS, cli
from lastcall.cli.settings import file as settings_file
from lastcall.cli.settings.context import ALIASES
from lastcall.cli.settings.keys import COMMAND_LINE, PROJECT, key_of
from lastcall.errors import UserError

ROOT = Path(__file__).parents[4]
sys.path.insert(0, str(ROOT / "tools"))

import config_schema  # noqa: E402

SCHEMA = json.loads((ROOT / "docs" / "config-v1.schema.json").read_text())


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory; nothing is set."""
    for name in [name for name in os.environ if name.startswith("LASTCALL_")]:
        monkeypatch.delenv(name)
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / ".git").mkdir()
    monkeypatch.chdir(directory)
    return directory


@pytest.fixture
def lastcall(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`lastcall("up", "--nodes", "3", LASTCALL_…="…")`: the values with which the command's own function is called,
    or the text of the error."""

    def call(*words: str, **variables: str) -> Any:
        found: list[dict[str, Any]] = []
        names = [word for word in words if not word.startswith("-")]
        command = cli.get_command(click.Context(cli), names[0])
        assert command is not None
        if isinstance(command, click.Group):
            command = command.commands[names[1]]
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        # What decorators make of the values belongs to them: the wrapper is told, not its function.
        monkeypatch.setattr(command, "callback", lambda **values: found.append(values))
        try:
            result = CliRunner().invoke(cli, list(words), prog_name="lastcall")
        finally:
            for name in variables:
                monkeypatch.delenv(name)
        if found:
            return found[0]
        return str(result.exception) if isinstance(result.exception, UserError) else result.output

    return call


def write(text: str, path: str = "lastcall.yaml") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def test_a_flag_is_before_a_variable_before_the_file_before_the_default(lastcall: Any) -> None:
    told = [lastcall("up")["nodes"]]
    write("all: {nodes: 2}")
    told.append(lastcall("up")["nodes"])
    write("up: {nodes: 3}\nall: {nodes: 2}")
    told.append(lastcall("up")["nodes"])
    told.append(lastcall("up", LASTCALL_NODES="4")["nodes"])
    told.append(lastcall("up", LASTCALL_NODES="4", LASTCALL_UP_NODES="5")["nodes"])
    told.append(lastcall("up", "--nodes", "6", LASTCALL_NODES="4", LASTCALL_UP_NODES="5")["nodes"])
    assert told == [1, 2, 3, 4, 5, 6]


def test_an_empty_variable_is_unset_and_one_of_no_option_is_ignored(lastcall: Any) -> None:
    write("up: {nodes: 3}")
    assert lastcall("up", LASTCALL_UP_NODES="", LASTCALL_UP_NODE="7", LASTCALL_DEBUG="1")["nodes"] == 3


def test_numbers_lists_and_flags_are_taken_as_they_are_written(lastcall: Any) -> None:
    write("up: {kubernetes-version: 1.27, wait: yes, propagation: [1s, node-1:watch=2s], timeout: 90}")
    values = lastcall("up")
    assert (values["kubernetes_version"], values["wait"], values["timeout"]) == ("1.27", True, 90.0)
    both = values["propagation"]
    write("up: {propagation: 1s}")
    one = lastcall("up")["propagation"]
    spaced = lastcall("up", LASTCALL_UP_PROPAGATION="1s node-1:watch=2s")["propagation"]
    assert list(spaced.nodes) == list(both.nodes) == ["node-1"] and list(one.nodes) == []
    sizes = lastcall("up", LASTCALL_UP_NODE_CAPACITY="cpu=1,memory=1Gi node-1:cpu=500m")["node_capacity"]
    assert (sizes.of("node-1"), sizes.of("node-2")) == (
        {"cpu": "500m"} | {"memory": "1Gi"},
        {"cpu": "1", "memory": "1Gi"},
    )
    assert lastcall("up", LASTCALL_UP_CONTROLLERS="false")["controllers"] is False


@pytest.mark.parametrize("words", [("create", "cluster"), ("up",)])
def test_another_word_for_a_command_has_the_same_values(lastcall: Any, words: tuple[str, ...]) -> None:
    write("up: {nodes: 3}")
    assert lastcall(*words)["nodes"] == 3
    assert lastcall(*words, LASTCALL_UP_NODES="4")["nodes"] == 4


def test_a_command_below_a_command_has_a_section_below_a_section(lastcall: Any) -> None:
    write("node: {shutdown: {grace: 7s}}\nimage: {pull: {platform: linux/arm64}}")
    assert lastcall("node", "shutdown", "node-1")["grace"] == 7
    assert lastcall("image", "pull", "x")["platform"] == "linux/arm64"


def test_the_cluster_of_a_variable_is_that_of_every_command_and_yields_to_a_name() -> None:
    runner = CliRunner(env={"LASTCALL_CLUSTER": "meant"})
    for words in (["logs"], ["story"], ["node", "connect", "node-1"], ["kubeconfig"], ["status"]):
        assert "'meant' is running" in str(runner.invoke(cli, words).exception), words
    for words in (["logs", "other"], ["logs", "--name", "other"], ["story", "--cluster", "other"]):
        assert "'other' is running" in str(runner.invoke(cli, words).exception), words
    assert "'meant' is running" in runner.invoke(cli, ["down"]).output
    Path("lastcall.yaml").write_text("down: {cluster: of-file}")
    assert "'of-file' is running" in CliRunner().invoke(cli, ["down"]).output


def test_all_clusters_are_all_whatever_a_variable_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lastcall.cli.down.names", list)  # nobody's clusters end for a test
    result = CliRunner(env={"LASTCALL_CLUSTER": "meant"}).invoke(cli, ["down", "--all"])
    assert (result.exit_code, result.output) == (0, "no cluster is running\n")


# -- errors


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        ("upp: {}", ["up"], "lastcall.yaml:1: upp: unknown section; did you mean up?"),
        ("xyzzy: {}", ["up"], "lastcall.yaml:1: xyzzy: unknown section; there are all, run, demo"),
        ("up:\n  node: 3", ["up"], "lastcall.yaml:2: up.node: unknown key; did you mean nodes?"),
        ("up:\n  max_pods: 3", ["up"], "lastcall.yaml:2: up.max_pods: unknown key; did you mean max-pods?"),
        ("up:\n  --nodes: 3", ["up"], "lastcall.yaml:2: up.--nodes: unknown key; did you mean nodes?"),
        ("up: {name: shop}", ["up"], "lastcall.yaml:1: up.name: unknown key; did you mean cluster?"),
        ("all: {outputt: json}", ["up"], "lastcall.yaml:1: all.outputt: unknown key; did you mean output?"),
        ("image: {pul: {}}", ["image", "ls"], "lastcall.yaml:1: image.pul: unknown command; did you mean pull?"),
        ("up: 3", ["up"], "lastcall.yaml:1: up: '3' is not a mapping of options to values"),
        ("- up", ["up"], "lastcall.yaml:1: is not a mapping; fix: write a command"),
        ("up:\n  nodes: [1, 2]", ["up"], "lastcall.yaml:2: up.nodes: a list is not a string or number"),
        ("up:\n  nodes:", ["up"], "lastcall.yaml:2: up.nodes: an empty value is not a string or number"),
        ("up:\n  wait: maybe", ["up"], "'--wait': lastcall.yaml:2: up.wait: 'maybe' is not a valid boolean"),
        ("up:\n  nodes: two", ["up"], "'--nodes': lastcall.yaml:2: up.nodes: 'two' is not a whole number"),
        ("up:\n\n  timeout: soon", ["up"], "'--timeout': lastcall.yaml:3: up.timeout: 'soon' is not a time"),
        ("status: {output: xml}", ["status"], "lastcall.yaml:1: status.output: 'xml' is not one of"),
        ("up: {cluster: NOT-OK}", ["up"], "lastcall.yaml:1: up.cluster: 'NOT-OK' is not a valid cluster name"),
        ("up: {nodes: 1}\nup: {}", ["up"], "lastcall.yaml:2: key 'up' is given twice (first on line 1): keep one"),
        ("up: {nodes: 1", ["up"], "lastcall.yaml:2: not readable as YAML"),
        ("up: {}\n---\nrun: {}", ["up"], "lastcall.yaml:3: the file has a second document: keep one"),
        ("down: {all: true}", ["down"], "lastcall.yaml:1: down.all: --all works on the command line only"),
        ("run: {yes: shop}", ["run", "x"], "lastcall.yaml:1: run.yes: --yes works on the command line only"),
        ("all: {fix: true}", ["up"], "lastcall.yaml:1: all.fix: --fix works on the command line only"),
        ("all: {name: x}", ["lint", "x"], "lastcall.yaml:1: all.name: only a file given by --config may set this"),
        ("a: &a [*a]", ["up"], "lastcall.yaml:1: "),
        ("up: " + "[" * 5000, ["up"], "lastcall.yaml:1: nested more than 100 levels deep"),
        ("up: !!python/object/apply:os.system [true]", ["up"], "lastcall.yaml:1: "),
        ("#" * (settings_file.MAX_BYTES + 1), ["up"], "lastcall.yaml: is larger than 1 MiB"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else None,
)
def test_what_is_wrong_in_the_file_is_told_with_its_place(
    text: str, words: list[str], told: str, lastcall: Any
) -> None:
    write(text)
    answer = lastcall(*words)
    assert isinstance(answer, str), answer
    assert told in answer


def test_a_file_that_explodes_when_its_aliases_are_written_out_is_refused(lastcall: Any) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    write("\n".join(lines))
    assert "more than 1000000 values with its aliases written out" in lastcall("up")


def test_a_wrong_variable_is_told_by_its_name(lastcall: Any) -> None:
    assert "'--nodes': LASTCALL_UP_NODES: 0 is too few" in lastcall("up", LASTCALL_UP_NODES="0")
    assert "LASTCALL_OUTPUT: 'xml' is not one of" in lastcall("status", LASTCALL_OUTPUT="xml")


def test_help_works_with_a_broken_file_and_shows_defaults() -> None:
    write("up: {nodes: 3")
    result = CliRunner().invoke(cli, ["up", "--help"])
    assert result.exit_code == 0 and "Number of nodes" in result.output and "3" not in _default(result.output, "nodes")
    write("up: {nodes: 3}")
    assert "default: 1" in _default(CliRunner().invoke(cli, ["up", "--help"]).output, "nodes")


def _default(page: str, option: str) -> str:
    match = re.search(rf"--{option} .*?\[(default: [^\]]*)\]", " ".join(page.split()))
    assert match
    return match[1]


def test_a_fifo_is_not_waited_for_and_no_directory_is_read(lastcall: Any) -> None:
    os.mkfifo("lastcall.yaml")
    assert "lastcall.yaml: is not a regular file" in lastcall("up")
    assert "is not a regular file" in lastcall("up", LASTCALL_CONFIG="/dev/zero")
    assert "is not a regular file" in lastcall("up", LASTCALL_CONFIG=".")


# -- which file


def test_the_nearest_file_is_read_up_to_the_repository(
    project: Path, lastcall: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("up: {nodes: 9}", str(project.parent / "lastcall.yaml"))
    inner = project / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert lastcall("up")["nodes"] == 1, "above the repository"
    write("up: {nodes: 2}", str(project / "lastcall.yaml"))
    assert lastcall("up")["nodes"] == 2
    write("up: {nodes: 3}", str(project / "a" / "lastcall.yaml"))
    assert lastcall("up")["nodes"] == 3
    assert lastcall("up", LASTCALL_CONFIG=str(project / "lastcall.yaml"))["nodes"] == 2
    assert lastcall("up", LASTCALL_CONFIG="")["nodes"] == 1
    assert lastcall("up", LASTCALL_CONFIG="/dev/null")["nodes"] == 1


def test_the_search_ends_at_home(project: Path, lastcall: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".git").rmdir()
    write("up: {nodes: 9}", str(project.parent / "lastcall.yaml"))
    assert lastcall("up", HOME=str(project))["nodes"] == 1
    assert lastcall("up", HOME=str(project.parent))["nodes"] == 9


def test_a_directory_above_that_everybody_may_write_to_is_not_looked_into(project: Path, lastcall: Any) -> None:
    (project / ".git").rmdir()
    write("up: {nodes: 9}", str(project.parent / "lastcall.yaml"))
    project.parent.chmod(0o1777)
    assert lastcall("up")["nodes"] == 1


def test_the_file_can_be_named_before_the_command_and_after_it(tmp_path: Path, lastcall: Any) -> None:
    file = tmp_path / "other.yaml"
    write("up: {nodes: 5}", str(file))
    assert lastcall("up", "--config", str(file))["nodes"] == 5
    result = CliRunner().invoke(cli, ["--config", str(tmp_path / "none.yaml"), "up"])
    assert isinstance(result.exception, UserError) and "none.yaml: No such file" in str(result.exception)


# -- what came with a repository

FORBIDDEN = [
    ("up", "egress", "true"),
    ("up", "publish", "8080:svc/web:80"),
    ("up", "state", "/tmp/x"),
    ("up", "cni-bin-dir", "/tmp/x"),
    ("up", "static-pods", "/tmp/x"),
    ("up", "kubeconfig-merge", "true"),
    ("run", "output-file", "/tmp/x"),
    ("run", "filename", "evil.yaml"),
    ("run", "seccomp-default", "false"),
    ("lint", "suppressions", "x.yaml"),
    ("exec", "up", "--egress"),
    ("controller-manager", "kubeconfig", "/tmp/x"),
    ("controller-manager", "controllers", "-garbage-collector-controller"),
]


@pytest.mark.parametrize(("command", "key", "value"), FORBIDDEN)
def test_a_file_that_was_merely_found_opens_no_door(command: str, key: str, value: str, lastcall: Any) -> None:
    words = {"run": ["run", "x.yaml"], "lint": ["lint", "x.yaml"], "exec": ["exec", "true"]}.get(command, [command])
    for section in (command, "all"):
        write(f"{section}: {{{key}: {value}}}")
        answer = lastcall(*words)
        assert isinstance(answer, str)
        assert f"lastcall.yaml:1: {section}.{key}: only a file given by --config may set this" in answer
        assert f"fix: use --{key}, LASTCALL_" in answer and "--config lastcall.yaml" in answer


def test_a_file_that_was_named_sets_what_a_flag_sets(lastcall: Any) -> None:
    write("up: {egress: true, filename: [a.yaml, b.yaml]}")
    values = lastcall("up", LASTCALL_CONFIG="lastcall.yaml")
    assert values["egress"] is True and values["filenames"] == ("a.yaml", "b.yaml")
    Path("lastcall.yaml").unlink()
    assert lastcall("up", LASTCALL_UP_EGRESS="true")["egress"] is True


def test_a_file_of_somebody_else_is_refused_unless_named(lastcall: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write("up: {nodes: 3}")
    owner = os.stat("lastcall.yaml").st_uid
    if os.geteuid() == 0:
        owner = 12345
        os.chown("lastcall.yaml", owner, owner)
    else:
        monkeypatch.setattr(settings_file, "users", lambda: {0})
    assert f"lastcall.yaml: belongs to user {owner}, not to you, and was not read" in lastcall("up")
    assert lastcall("up", LASTCALL_CONFIG="lastcall.yaml")["nodes"] == 3
    if os.geteuid() == 0:
        assert lastcall("up", SUDO_UID=str(owner))["nodes"] == 3


def test_a_link_is_not_followed_unless_named(tmp_path: Path, lastcall: Any) -> None:
    write("up: {nodes: 3}", str(tmp_path / "real.yaml"))
    Path("lastcall.yaml").symlink_to(tmp_path / "real.yaml")
    assert "lastcall.yaml: is a symbolic link" in lastcall("up")
    assert lastcall("up", LASTCALL_CONFIG="lastcall.yaml")["nodes"] == 3


# -- complete


def options() -> Iterator[tuple[tuple[str, ...], click.Option]]:
    """Every option of every command, kind's words too."""

    def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Option]]:
        if isinstance(command, click.Group):
            for name, below in command.commands.items():
                yield from walk(below, (*path, name))
        else:
            yield from ((path, each) for each in command.params if isinstance(each, click.Option))

    for name in (*COMMANDS, *OTHER_WORDS):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        yield from walk(command, (name,))


def test_the_tables_name_options_that_there_are() -> None:
    keys = {key_of(option) for _, option in options()}
    assert keys > PROJECT | COMMAND_LINE and not PROJECT & COMMAND_LINE
    assert all(path[0] in COMMANDS for path in ALIASES.values())


def test_every_option_has_the_variable_that_its_long_name_makes(lastcall: Any) -> None:
    """Also where the command's function calls it otherwise."""
    for path, option in options():
        key, words = key_of(option), ALIASES.get(path, path)
        if key in COMMAND_LINE:
            continue
        name = "_".join(("LASTCALL", *words, key)).replace("-", "_").upper()
        command: Any = cli
        context = click.Context(cli, info_name="lastcall")
        for word in path:
            command = command.get_command(context, word)
            context = click.Context(command, info_name=word, parent=context, **command.context_settings)
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv(name, "x")
            assert option.value_from_envvar(context) in ("x", ["x"]), name
            patched.delenv(name)
            assert option.value_from_envvar(context) is None


def test_what_consents_or_destroys_has_no_variable(lastcall: Any) -> None:
    every = {"LASTCALL_DOWN_ALL": "true", "LASTCALL_DOWN_ALL_OF_THEM": "true", "LASTCALL_ALL": "true"}
    assert lastcall("down", **every)["all_of_them"] is False
    assert lastcall("run", "x", LASTCALL_RUN_YES="shop", LASTCALL_YES="shop")["yes"] == ""


def test_the_published_schema_is_that_of_the_commands() -> None:
    assert (ROOT / "docs" / "config-v1.schema.json").read_text() == config_schema.text(), (
        "python tools/config_schema.py"
    )


def test_the_page_s_example_fits_the_schema_and_is_taken(lastcall: Any) -> None:
    example = re.search(r"```yaml\n(.*?)```", (ROOT / "docs" / "config.md").read_text(), re.DOTALL)
    assert example
    write(example[1])
    assert list(problems(yaml.safe_load(example[1]), SCHEMA)) == []
    assert list(problems({"up": {"node": 1}}, SCHEMA)) == ["$.up.node: not in the schema"]
    assert lastcall("up")["nodes"] == 2 and lastcall("up")["kubernetes_version"] == "1.27"
    assert lastcall("rollout", "x")["max_lost"].value == 0


@pytest.mark.loopback
def test_without_a_file_nothing_of_yaml_is_imported() -> None:
    code = (
        "import sys, click; from lastcall.cli.commands import cli; "
        "context = cli.make_context('lastcall', ['status'])\n"
        "cli.resolve_command(context, ['status'])[1].make_context('status', [], parent=context)\n"
        "print('yaml' in sys.modules, 'lastcall.cli.settings.reading' in sys.modules)"
    )
    run = [sys.executable, "-c", code]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "False False\n"
    write("status: {output: json}")
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "True True\n"
