"""`--summary FILE` and $GITHUB_STEP_SUMMARY: where a Markdown summary goes. `run`, `demo` and `rollout` share it."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lastcall.cli.errors import say_on_stderr

if TYPE_CHECKING:
    from lastcall.endings import Ending

F = TypeVar("F", bound=Callable[..., Any])

VARIABLE = "GITHUB_STEP_SUMMARY"
"""GitHub Actions sets it to a file; what a step appends there is shown on the run's page."""


def _checked(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """A click callback: a file that can be written, or "". A run takes minutes: what is wrong is said before it."""
    if not value:
        return ""
    directory = os.path.dirname(os.path.abspath(value))
    if os.path.isdir(value):
        raise click.BadParameter(f"{value!r} is a directory: give a file")
    if not os.path.isdir(directory):
        raise click.BadParameter(f"{value!r}: there is no directory {directory!r}")
    if not os.access(value if os.path.exists(value) else directory, os.W_OK):
        raise click.BadParameter(f"{value!r}: you have no permission to write there")
    return value


def summary_option(command: F) -> F:
    """Add `--summary` to a command: the keyword argument `summary`, "" without one."""
    return click.option(
        "--summary",
        metavar="FILE",
        callback=_checked,
        help=f"Append a Markdown summary to this file, and to ${VARIABLE} if it is set.",
    )(command)


def append_summary(file: str, text: str) -> None:
    """Append to the file, and to that of the variable. A file that cannot be written is reported on stderr and does not
    change the exit status: the result of the run counts."""
    for each in dict.fromkeys(filter(None, (file, os.environ.get(VARIABLE, "")))):
        try:
            with open(each, "a", encoding="utf-8", errors="replace") as out:
                out.write(text)
        except OSError as error:
            say_on_stderr(f"the summary was not written to {each}: {error.strerror}")


def is_wanted(file: str) -> bool:
    """Return whether a summary is wanted."""
    return bool(file or os.environ.get(VARIABLE))


def summarize(file: str, endings: "Sequence[Ending]", kubernetes_version: str, error: str = "") -> None:
    """Append the summary of a run, if one is wanted."""
    if is_wanted(file):
        # late: 9 ms of `demo`
        from lastcall.experiment.run import summary_of

        append_summary(file, summary_of(endings, kubernetes_version=kubernetes_version, error=error))
