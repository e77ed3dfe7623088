"""The report of `lastcall rollout` as a document, and the summary of a CI job."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lastcall.cli.options import json_text
from lastcall.cli.output import write_file
from lastcall.cli.summary import append_summary, is_wanted
from lastcall.cli.terminal import say, show
from lastcall.errors import WorldError
from lastcall.experiment.rollout import RolloutOptions

if TYPE_CHECKING:
    from lastcall.experiment.rollout import Result


def summarize(options: RolloutOptions, results: "Sequence[Result]", error: str) -> None:
    """Append the summary, where one was asked for."""
    if is_wanted(options.summary):
        # late: 69 ms of `rollout --help`
        from lastcall.experiment.rollout import summary_of

        append_summary(options.summary, summary_of(results, options.thresholds, error))


def write(options: RolloutOptions, results: "Sequence[Result]", failure: Exception | None = None) -> None:
    """Write the document, where one was asked for: into the file, or to stdout. Raises WorldError."""
    file = options.output_file
    if file is None and options.output == "text":
        return
    document = _document(options, results, failure)
    if file is None:
        show(document)
        return
    try:
        write_file(file, document)
    except OSError as error:
        raise WorldError(f"{file} cannot be written: {error.strerror}") from error
    say(f"Report written to {file}", err=True)


def _document(options: RolloutOptions, results: "Sequence[Result]", failure: Exception | None) -> str:
    if options.output == "json":
        # late: 53 ms of `rollout --help`
        from lastcall.experiment.rollout import as_json

        return json_text(as_json(results, options.thresholds, failure), indent=1)
    if options.output == "html":
        # late: 64 ms of `rollout --help`
        from lastcall.experiment.rollout import html_page

        return html_page(results, options.thresholds)
    # late: 69 ms of `rollout --help`
    from lastcall.endings.render import as_github, as_junit
    from lastcall.experiment.rollout import checks_of, plain_text

    if options.output == "text":
        return plain_text(results, options.thresholds)
    checks = checks_of(results, options.thresholds, str(failure or ""))
    return (
        as_junit("lastcall rollout", checks, "nothing was measured") if options.output == "junit" else as_github(checks)
    )
