"""Write a story for `run`, `demo` and `story`: `--output` and `--output-file`."""

import os
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lastcall._version import __version__
from lastcall.cli.exit_status import WORLD
from lastcall.cli.options import json_text, output_file_option, output_option
from lastcall.cli.terminal import say, show
from lastcall.endings.render import quoted_json

if TYPE_CHECKING:
    from rich.console import Console

    from lastcall.endings import Ending
    from lastcall.endings.render import Check
    from lastcall.errors import UnreadyCause
    from lastcall.experiment import Note
    from lastcall.experiment.rollout import Result

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("text", "json", "html", "chrome-trace", "junit", "github")
FOR_CI = ("junit", "github")
FILES = {"html": "story.html", "chrome-trace": "story.trace.json"}
"""Formats that are not for a terminal, each with a file name to suggest."""

_BY_SUFFIX = {
    ".html": "html", ".htm": "html", ".trace.json": "chrome-trace", ".json": "json",
    ".txt": "text", ".xml": "junit", ".text": "text", ".log": "text",
}  # fmt: skip

PIPED_WIDTH = 100
"""Columns when stdout is not a terminal and COLUMNS does not say."""

_OPTIONS = [
    output_option(
        FORMATS,
        "Output format; chrome-trace: for Perfetto; github: annotations.  [default: that of --output-file, or text]",
    ),
    output_file_option(),
    click.option("--explain", is_flag=True, help="Show the Kubernetes rule and source function behind each step."),
]


def output_options(command: F) -> F:
    """Add the options to a command: `output`, `output_file`, `explain`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def checked_output(output: str | None, file: Path | None) -> str:
    """Return the format. Raises click.UsageError, before anything is done, for a place where it cannot be written."""
    if output is None:
        output = _by_suffix(file)
    if file is None:
        if output in FILES and sys.stdout.isatty():
            raise click.UsageError(
                f"--output {output} is a file, and stdout is a terminal: add --output-file {FILES[output]}, or "
                f"redirect stdout (> {FILES[output]})"
            )
        return output
    directory = file.absolute().parent
    if not directory.is_dir():
        raise click.UsageError(f"--output-file {str(file)!r}: there is no directory {str(directory)!r}")
    if not os.access(file if file.exists() else directory, os.W_OK):
        raise click.UsageError(f"--output-file {str(file)!r}: you have no permission to write there")
    return output


def _by_suffix(file: Path | None) -> str:
    """The format that a file's name asks for; text for a name without a suffix. Raises click.UsageError."""
    if file is None or not file.suffix:
        return "text"
    for suffix, format_ in _BY_SUFFIX.items():
        if file.name.lower().endswith(suffix):
            return format_
    raise click.UsageError(
        f"--output-file {str(file)!r}: {file.suffix} is not a format of reports: use .html, .json (data), .trace.json "
        f"(Perfetto), .xml (JUnit) or .txt, or say which with --output ({', '.join(FORMATS)})"
    )


def stdout_console() -> "Console":
    """Return the console for a story: as wide as the terminal, PIPED_WIDTH without one."""
    # late: 39 ms of `story --help`
    from lastcall.cli.console import CommandConsole

    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else PIPED_WIDTH
    return CommandConsole(width=width)


def takes_stdout(output: str, file: Path | None) -> bool:
    """Return whether stdout is the document's alone."""
    return output != "text" and file is None


def document(
    endings: "Sequence[Ending]",
    output: str,
    *,
    kubernetes_version: str,
    status: int,
    explain: bool = False,
    width: int = PIPED_WIDTH,
    error: str = "",
    with_steps: bool = True,
    notes: "Sequence[Note] | None" = None,
    not_ready: "Sequence[UnreadyCause]" = (),
    cluster: str = "",
    context: str = "",
    requests: "Result | None" = None,
) -> str:
    """Return the story in one of FORMATS, with a newline at its end. `cluster` is one that stays, `context` an existing
    one. `requests` is what became of those that were sent, None for none."""
    if output == "json":
        # late: 34 ms of `run --help`
        from lastcall.endings.render import NotSimulated, about_cluster, endings_document

        made = endings_document(
            endings,
            kubernetes_version=kubernetes_version,
            lastcall_version=__version__,
            exit_status=status,
            error=error,
            not_ready=not_ready,
            not_simulated=None if notes is None else [NotSimulated(each.id, each.what, each.text) for each in notes],
            cluster=about_cluster(kubernetes_version, name=cluster, context=context),
            requests=None if requests is None else _json_of(requests),
        )
        return json_text(made)
    if output == "html" and requests is not None:
        # late: only with --load
        from lastcall.experiment.rollout import html_page as page_of_requests

        return page_of_requests([replace(requests, endings=endings)])
    if output == "html":
        # late: 24 ms of `story --help`
        from lastcall.ui import html_page

        return html_page(endings, kubernetes_version=kubernetes_version, lastcall_version=__version__, error=error)
    if output in ("junit", "github"):
        # late: 51 ms of `story --help`
        from lastcall.endings.render import as_github, as_junit
        from lastcall.experiment.run import checks_of

        checks = [*checks_of(endings, error), *_checks_of(requests)]
        return as_junit("lastcall run", checks, "no Pod") if output == "junit" else as_github(checks)
    if output == "chrome-trace":
        # late: 7 ms of `story --help`
        from lastcall.endings.render import trace_document

        trace = trace_document(endings, kubernetes_version=kubernetes_version, lastcall_version=__version__)
        return quoted_json(trace)
    # late: 51 ms of `story --help`
    from lastcall.endings.render import plain_text

    return plain_text(endings, width, explain=explain, with_steps=with_steps) + _text_of(requests)


def _json_of(requests: "Result") -> dict[str, Any]:
    # late: only with --load
    from lastcall.experiment.rollout import experiment_json

    return dict(experiment_json(requests))


def _checks_of(requests: "Result | None") -> "Sequence[Check]":
    if requests is None:
        return ()
    # late: only with --load
    from lastcall.experiment.rollout import checks_of

    return checks_of([requests])


def _text_of(requests: "Result | None") -> str:
    if requests is None:
        return ""
    # late: only with --load
    from lastcall.experiment.rollout import plain_text

    return f"\n{plain_text([requests])}"


def tell(
    out: "Console",
    endings: "Sequence[Ending]",
    output: str,
    file: Path | None,
    *,
    kubernetes_version: str,
    status: int,
    explain: bool = False,
    error: str = "",
    seen_live: bool = False,
    notes: "Sequence[Note] | None" = None,
    not_ready: "Sequence[UnreadyCause]" = (),
    cluster: str = "",
    context: str = "",
    requests: "Result | None" = None,
) -> None:
    """Write the story where it was asked for. `seen_live`: `out` has the steps already; they are not repeated
    but for the rules of `explain`. Raises OSError."""
    with_steps = explain or not seen_live

    def text_of(format_: str, *, with_steps: bool = True) -> str:
        return document(
            endings,
            format_,
            kubernetes_version=kubernetes_version,
            status=status,
            explain=explain,
            width=out.width,
            error=error,
            with_steps=with_steps,
            notes=notes,
            not_ready=not_ready,
            cluster=cluster,
            context=context,
            requests=requests,
        )

    if takes_stdout(output, file):
        show(text_of(output))
        return
    if file is not None:
        write_file(file, text_of(output))
    if out.is_terminal:
        # late: 51 ms of `story --help`
        from lastcall.endings.render import print_endings

        print_endings(out, endings, explain=explain, with_steps=with_steps)
        if requests is not None:
            # late: only with --load
            from lastcall.experiment.rollout import tell_results

            tell_results(out, [requests])
    else:
        show(text_of("text", with_steps=with_steps))
    if file is not None:
        say(f"Report written to {file}", err=True)


def tell_failure(
    output: str,
    file: Path | None,
    error: str,
    *,
    kubernetes_version: str,
    status: int = WORLD,
    not_ready: "Sequence[UnreadyCause]" = (),
) -> None:
    """Write a test report, or annotations, of a run that ended without a story, and JSON where Pods did not become
    Ready for known causes; nothing in another format. Raises OSError."""
    if output not in FOR_CI and not (output == "json" and not_ready):
        return
    text = document([], output, kubernetes_version=kubernetes_version, status=status, error=error, not_ready=not_ready)
    if file is None:
        show(text)
    else:
        write_file(file, text)


def write_file(file: Path, text: str) -> None:
    """Write all of it or nothing; what is not a regular file (/dev/stdout, a pipe) is written to as it is."""
    content = text.encode("utf-8", "replace")
    if file.exists() and not stat.S_ISREG(file.stat().st_mode):
        file.write_bytes(content)
        return
    target = file.resolve()  # a link stays one
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        unfinished.write_bytes(content)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
