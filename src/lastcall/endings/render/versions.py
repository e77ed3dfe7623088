"""The same Pods under several versions of Kubernetes: as columns of text, and as data."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table

from lastcall.endings.render.console import Text, plain_lines
from lastcall.endings.render.envelope import envelope
from lastcall.endings.render.json_v1 import endings_document
from lastcall.endings.render.text import story
from lastcall.endings.story import Ending
from lastcall.endings.versions import Comparison, Difference, VersionStory, compare
from lastcall.records.text import printable

if TYPE_CHECKING:
    from rich.console import Console

SCHEMA = "lastcall/versions/v1"
NARROWEST_COLUMN = 58
"""A story needs so many columns; where there are fewer the versions stand one under the other."""
_GAP = 3


def print_versions(console: "Console", stories: Sequence[VersionStory], *, explain: bool = False) -> None:
    """Print each Pod's stories beside one another where they fit, then what differs."""
    width = (console.width - _GAP * (len(stories) - 1)) // len(stories)
    for comparison in compare(stories):
        console.print()
        if width >= NARROWEST_COLUMN:
            console.print(_side_by_side(comparison, stories, width, explain))
        else:
            for one, ending in zip(stories, comparison.endings, strict=True):
                console.print(Text(f"Kubernetes {one.version}", style="bold reverse"))
                console.print(_story(ending, console.width, explain))
                console.print()
        if width >= NARROWEST_COLUMN:
            console.print()
        console.print(_differences(comparison, stories))
    for one in stories:
        if one.error:
            console.print()
            console.print(Text(f"Kubernetes {one.version}: {printable(one.error, 2000)}", style="bold red"))


def plain_versions(stories: Sequence[VersionStory], width: int, *, explain: bool = False) -> str:
    """Return what `print_versions` prints, without colour and trailing blanks."""
    return plain_lines(width, lambda out: print_versions(out, stories, explain=explain))


def _side_by_side(comparison: Comparison, stories: Sequence[VersionStory], width: int, explain: bool) -> RenderableType:
    table = Table(box=box.MINIMAL, show_edge=False, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for one in stories:
        table.add_column(f"Kubernetes {one.version}", width=width, overflow="fold")
    table.add_row(*(_story(ending, width, explain) for ending in comparison.endings))
    return table


def _story(ending: Ending | None, width: int, explain: bool) -> RenderableType:
    if ending is None:
        return Text("it did not come to an end", style="dim")
    return story(ending, width, with_rules=explain)


def _differences(comparison: Comparison, stories: Sequence[VersionStory]) -> RenderableType:
    head = Text(f"what differs for {comparison.namespace}/{comparison.name}", style="bold")
    if not comparison.differences:
        return Group(head, Text("  nothing", style="green"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", overflow="fold")
    for one in stories:
        table.add_column(one.version, overflow="fold")
    for each in comparison.differences:
        table.add_row(_label(each), *(Text(printable(value, 300)) for value in each.values))
    return Group(head, table)


def _label(difference: Difference) -> Text:
    label = Text(difference.what)
    if difference.container:
        label.append(f" ({difference.container})", style="dim")
    return label


def versions_document(stories: Sequence[VersionStory], *, lastcall_version: str, exit_status: int) -> dict[str, Any]:
    """Return the schema `lastcall/versions/v1` (docs/ending-v1.md): a document of `lastcall/ending/v1` for each
    version."""
    return {
        **envelope(SCHEMA),
        "lastcallVersion": lastcall_version,
        "exitStatus": exit_status,
        "versions": [
            endings_document(
                one.endings,
                kubernetes_version=one.version,
                lastcall_version=lastcall_version,
                exit_status=one.exit_status,
                error=one.error,
            )
            for one in stories
        ],
        "differences": [
            {
                "namespace": comparison.namespace,
                "name": comparison.name,
                "container": each.container or None,
                "what": each.what,
                "values": {
                    one.version: None if value == "-" else value
                    for one, value in zip(stories, each.values, strict=True)
                },
            }
            for comparison in compare(stories)
            for each in comparison.differences
        ],
    }
