"""`--kubernetes-version 1.36,1.37`: the same manifests under each version, and what differs.

One cluster after the other: they share nothing, not even the processor's time, and a hostPath of the Pods is used by
one at a time. What stops one version (an API server that refuses a manifest, a Pod that never becomes Ready) is part
of what is compared.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall._version import __version__
from lastcall.cli import exit_status
from lastcall.cli.options import json_text
from lastcall.cli.output import stdout_console, takes_stdout, tell_failure, write_file
from lastcall.cli.summary import summarize
from lastcall.cli.terminal import say, show
from lastcall.endings import Ending, VersionStory, compare, labelled
from lastcall.endings.render import (
    as_github,
    as_junit,
    plain_versions,
    print_versions,
    quoted_json,
    trace_document,
    versions_document,
)
from lastcall.errors import Interrupted, LastcallError
from lastcall.experiment.run import checks_of
from lastcall.ui import html_page

if TYPE_CHECKING:
    from lastcall.experiment.run import RunOptions

RunOne = Callable[["RunOptions", Callable[[Sequence[Ending], int, LastcallError | None], None]], int]
"""Run one version: (its options, what takes its endings with exit status and error) → exit status."""

_SEVERITY = (exit_status.OK, exit_status.NOT_GRACEFUL, exit_status.USAGE, exit_status.WORLD)


def run_versions(options: "RunOptions", run_one: RunOne) -> int:
    """Run every version in turn, then print the comparison. Return the worst exit status.

    Raises LastcallError when no version had anything to tell, and Interrupted.
    """
    stories: list[VersionStory] = []
    failure: LastcallError | None = None
    for version in options.versions:
        say(f"Kubernetes {version}:", err=True)
        story, error = _run(replace(options.with_cluster(kubernetes_version=version), versions=()), run_one)
        stories.append(story)
        failure = failure or error
    for story in stories:
        summarize(options.summary, story.endings, story.version, story.error)
    if failure is not None and not any(story.endings for story in stories):
        versions = ", ".join(story.version for story in stories)
        tell_failure(options.output, options.output_file, _errors(stories), kubernetes_version=versions)
        raise failure
    status = max((story.exit_status for story in stories), key=_severity)
    tell_versions(stories, options, status)
    return status


def _errors(stories: Sequence[VersionStory]) -> str:
    return "\n".join(f"Kubernetes {story.version}: {story.error}" for story in stories if story.error)


def _run(options: "RunOptions", run_one: RunOne) -> tuple[VersionStory, LastcallError | None]:
    story = [VersionStory(options.kubernetes_version)]

    def tell(endings: Sequence[Ending], status: int, error: LastcallError | None) -> None:
        story[0] = VersionStory(options.kubernetes_version, tuple(endings), status, str(error or ""))

    try:
        run_one(options, tell)
    except Interrupted:
        raise
    except LastcallError as error:
        return replace(story[0], exit_status=exit_status.of_error(error), error=str(error)), error
    return story[0], None


def _severity(status: int) -> int:
    return _SEVERITY.index(status) if status in _SEVERITY else len(_SEVERITY)


def tell_versions(stories: Sequence[VersionStory], options: "RunOptions", status: int) -> None:
    """Write the comparison where it was asked for. Raises OSError."""
    out = stdout_console()
    document = "" if options.output == "text" else _document(stories, options.output, status)
    if takes_stdout(options.output, options.output_file):
        show(document)
        return
    if options.output_file is not None:
        text = document or plain_versions(stories, out.width, explain=options.explain)
        write_file(options.output_file, text)
    if out.is_terminal:
        print_versions(out, stories, explain=options.explain)
    else:
        show(plain_versions(stories, out.width, explain=options.explain))
    if options.output_file is not None:
        say(f"Report written to {options.output_file}", err=True)


def _document(stories: Sequence[VersionStory], output: str, status: int) -> str:
    if output == "json":
        made = versions_document(stories, lastcall_version=__version__, exit_status=status)
        return json_text(made)
    versions = ", ".join(story.version for story in stories)
    if output == "html":
        return html_page(
            labelled(stories),
            kubernetes_version=versions,
            lastcall_version=__version__,
            error=_errors(stories),
            pods=len(compare(stories)),
        )
    if output in ("junit", "github"):
        checks = [each for story in stories for each in checks_of(labelled([story]), story.error)]
        return as_junit("lastcall run", checks, "no Pod") if output == "junit" else as_github(checks)
    trace = trace_document(labelled(stories), kubernetes_version=versions, lastcall_version=__version__)
    return quoted_json(trace)
