"""Every `lastcall …` in README, docs and examples is one that the command line takes: names, options and their values.

That they do what is said of them, others try: tests/clients/shown.
"""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from lastcall.cli.commands import cli

ROOT = Path(__file__).parents[3]
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")], key=lambda page: str(page)
)
_INLINE = re.compile(r"`(lastcall(?: [^`\n]+)?)`")
_BLOCK = re.compile(r"```(?:console|sh|bash|)\n(.*?)```", re.DOTALL)
_LINE = re.compile(r"(?:^\$ |\| |&& |\$\(|^)(?P<command>lastcall(?: [^#|;&)\n]*)?)")
_PLACEHOLDER = re.compile(r"…|\.\.\.| \| |\b(?:FILE|DIR|POD|NAME|COMMAND|OPTIONS|SHELL)\b")


def commands(text: str) -> Iterator[str]:
    """Of inline code, and of blocks the lines after a prompt, or all lines where a block has no prompt."""
    yield from (each[1].strip() for each in _INLINE.finditer(re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
    for block in _BLOCK.findall(text):
        lines = [line for line in block.splitlines() if line.startswith("$ ")]
        for line in lines or [line for line in block.splitlines() if line.startswith("lastcall ")]:
            yield from (each["command"].strip() for each in _LINE.finditer(line))


ALL = sorted(
    {
        command
        for page in PAGES
        if page.name != "CHANGELOG.md"
        for command in commands(page.read_text())
        if not _PLACEHOLDER.search(command)
    }
)


def parse(words: list[str]) -> None:
    """As the command line would, but nothing runs. Raises click.UsageError."""
    command: click.Command = cli
    context: click.Context | None = None
    while words and isinstance(command, click.Group):
        context = click.Context(command, parent=context, info_name=words[0])
        if words[0].startswith("-"):
            break
        name, found, words = command.resolve_command(context, words)
        assert found is not None, name
        command = found
    if words and words != ["--help"] and words != ["--version"]:
        with suppress(click.MissingParameter):  # "with `lastcall run --output json`": of no file in particular
            command.make_context(command.name, words, parent=context)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory in which every file is that the pages speak of."""
    for directory in ("k8s", "deploy", "manifests", "overlays/production"):
        (tmp_path / directory).mkdir(parents=True)
    for command in ALL:
        for word in command.split():
            if re.search(r"\.(ya?ml|tar|json)$", word) and not word.startswith("-"):
                path = tmp_path / word
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
    monkeypatch.chdir(tmp_path)


def test_the_pages_have_commands() -> None:
    assert len(ALL) > 60


@pytest.mark.parametrize("command", ALL)
def test_what_a_page_shows_is_taken(command: str) -> None:
    parse(shlex.split(command, comments=True)[1:])


@pytest.mark.parametrize(
    "command", ["lastcall rum x.yaml", "lastcall run --no-such-option", "lastcall up --nodes many"]
)
def test_what_would_not_be_taken_is_seen(command: str) -> None:
    with pytest.raises(click.UsageError):
        parse(shlex.split(command)[1:])
