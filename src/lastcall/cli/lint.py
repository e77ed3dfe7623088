"""`lastcall lint`: what is wrong with manifests, without a cluster."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from lastcall._version import __version__
from lastcall.cli.exit_status import FINDINGS, OK, USAGE
from lastcall.cli.options import Sources, json_text, manifest_options, output_file_option, output_option
from lastcall.cli.terminal import show
from lastcall.endings.render import takes_escapes
from lastcall.errors import UserError, WorldError
from lastcall.lint import (
    RULES,
    SEVERITIES,
    Entry,
    LintResult,
    Located,
    Read,
    Spot,
    Subject,
    at_least,
    edited,
    read,
    read_entries,
    spot_of,
    suppressed,
)
from lastcall.lint import lint as lint_subjects
from lastcall.lint.render import data, plain, text
from lastcall.manifests import YAMLProblem, parsed_path, read_documents, waits
from lastcall.world.os_errors import describe_os_error

FORMATS = ("text", "json", "sarif", "github", "junit")
SUPPRESSIONS = ".lastcall-lint.yaml"
MOST_ROUNDS = 500
"""Of `--fix`, with a patch for each file: what one changes moves, and may show, the next thing."""

_FIRST = ("unknownApiVersion", "unknownField")
"""Rules whose patches come first: what the object says is not known before."""


@click.command()
@manifest_options("FILE", required=False)
@output_option(
    FORMATS,
    "Output format: text; json (lastcall/lint/v1); sarif (2.1.0); github, annotations for GitHub Actions; junit.",
    default="text",
)
@output_file_option("Write the report to this file.")
@click.option(
    "--fail-on",
    type=click.Choice((*SEVERITIES, "never")),
    default="error",
    show_default=True,
    help="Lowest severity that makes the exit status 3.",
)
@click.option(
    "--suppressions",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"File of suppressed findings, each with a reason.  [default: {SUPPRESSIONS}, if it exists]",
)
@click.option("--fix", is_flag=True, help="Fix the files wherever only one fix makes sense. Comments are kept.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules and exit.")
def lint(
    sources: Sources,
    output: str,
    output_file: Path | None,
    fail_on: str,
    suppressions: Path | None,
    fix: bool,
    list_rules: bool,
) -> None:
    """Check manifests without a cluster: what `kubectl apply` would refuse, what cannot work, and what loses requests
    when Pods end or are updated.

    FILE is a file, a directory, a chart (a directory with a Chart.yaml, or a .tgz), or - for stdin. lint reads all of
    them as one application, and checks Services, Ingresses, budgets and autoscalers against the Pods. Exit status: 0
    no finding of the severity of --fail-on or above, 3 at least one, 2 bad input, 1 anything else.

    \b
    Each finding says how sure it is
      certain               the manifests alone prove it
      dependsOnApplication  it depends on the program or its image: try
                            `lastcall rollout`
      dependsOnCluster      it depends on objects or nodes that are not in these
                            files

    Only certain findings are errors. Suppressions need a reason: `# lastcall-lint: ignore RULE -- reason` after a
    field or on the line before it; an annotation `lint.lastcall/ignore.RULE: reason`; or a file with a list
    `suppressions`, each with rule and reason, and optionally object (Kind/name), namespace, file, path.
    """
    if list_rules:
        show(_rules())
        raise SystemExit(OK)
    if not sources:
        raise click.UsageError("give a FILE, a directory, a chart, - for stdin, or -k DIR")
    if fix and (sources.kustomizations or sources.chart or "-" in sources.manifests):
        raise click.UsageError(
            "--fix changes files: it cannot change stdin, a chart's templates, or the sources of a kustomization"
        )
    entries = _entries(suppressions)
    done = _read(sources)
    result = _look(done, entries, fail_on)
    if fix:
        result = _fix(done, result, sources, entries, fail_on)
    _write(result, output, output_file)
    raise SystemExit(result.exit_status)


def _read(sources: Sources) -> Read:
    return read(
        sources.manifests,
        sources.kustomizations,
        sources.chart,
        recursive=sources.recursive,
        namespace=sources.namespace,
    )


def _entries(file: Path | None) -> list[Entry]:
    """The file of suppressions. Raises UserError."""
    path = file or Path(SUPPRESSIONS)
    if file is None and not path.is_file():
        return []
    try:
        if what := waits(path):
            raise UserError(f"{path}: it is {what}, not a file")
        documents = list(read_documents(path.read_text(encoding="utf-8-sig")))
        return [entry for document in documents for entry in read_entries(document.value)]
    except OSError as error:
        raise UserError(describe_os_error(error)) from error
    except YAMLProblem as problem:
        raise UserError(f"{path}:{problem.line}: {problem}") from problem
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text: {error.reason}") from error
    except ValueError as error:
        raise UserError(f"{path}: {error}") from error


def _look(done: Read, entries: Sequence[Entry], fail_on: str) -> LintResult:
    report = lint_subjects(done.subjects)
    located = [Located(each, _spot(each.subject, each.path)) for each in report.findings]
    subjects = [(each, _spot(each, ("metadata", "annotations"))) for each in done.subjects]
    for comment in done.comments:
        comment.used.clear()
    findings = suppressed([*done.of_texts, *located], done.comments, entries, subjects)
    findings.sort(key=lambda each: (list(done.texts).index(each.spot.file), each.spot.line, each.spot.column))
    unreadable = any(each.finding.rule in ("unreadable", "unrendered") and not each.finding.path for each in findings)
    failing = fail_on != "never" and any(
        at_least(each.finding.severity, fail_on)  # type: ignore[arg-type]
        for each in findings
        if each.suppressed is None
    )
    return LintResult(
        findings=findings,
        not_here=[(each, _spot(each.subject, each.path)) for each in report.not_here],
        files=list(done.texts),
        objects=len(done.subjects),
        exit_status=USAGE if unreadable else FINDINGS if failing else OK,
        version=__version__,
        not_checked=[(each, _spot(each.subject, ())) for each in report.not_checked],
    )


def _spot(subject: Subject, path: tuple[str | int, ...]) -> Spot:
    return spot_of(subject.where, path)


# -- fixing ----------------------------------------------------------------------------------------------------------


def _fix(done: Read, result: LintResult, sources: Sources, entries: Sequence[Entry], fail_on: str) -> LintResult:
    """The files with all automatic patches in them, and what is left."""
    # late: 48 ms of `lint --help`
    from lastcall.cli.output import write_file

    fixed: list[Located] = []
    texts = dict(done.texts)
    for _ in range(MOST_ROUNDS):
        changed = _one_round(texts, result)
        if not changed:
            break
        fixed += changed
        for file in dict.fromkeys(each.spot.file for each in changed):
            try:
                write_file(Path(file), texts[file])
            except OSError as error:
                raise WorldError(f"cannot write {file}: {error.strerror}") from error
        done = _read(sources)
        texts = dict(done.texts)
        result = _look(done, entries, fail_on)
    return result._replace(fixed=fixed)


def _one_round(texts: dict[str, str], result: LintResult) -> list[Located]:
    """Changes `texts`: one patch for each file, for each moves what is behind it."""
    changed: list[Located] = []
    for each in sorted(result.open, key=lambda each: each.finding.rule not in _FIRST):
        if not each.finding.automatic or any(each.spot.file == other.spot.file for other in changed):
            continue
        place = each.finding.subject.where
        new = edited(texts[place.file], place.document.number, parsed_path(place.path), each.finding.patch)
        if new is not None:
            texts[place.file] = new
            changed.append(each)
    return changed


# -- output ----------------------------------------------------------------------------------------------------------


def _write(result: LintResult, output: str, file: Path | None) -> None:
    text = _document(result, output, colours=file is None and takes_escapes(sys.stdout))
    if file is None:
        show(text)
        return
    # late: 48 ms of `lint --help`
    from lastcall.cli.output import write_file

    try:
        write_file(file, text)
    except OSError as error:
        raise WorldError(f"{file} cannot be written: {error.strerror}") from error


def _document(result: LintResult, output: str, *, colours: bool) -> str:
    if output == "text":
        return text(result, click.style if colours and not os.environ.get("NO_COLOR") else plain)
    if output == "github":
        return data.as_github(result)
    if output == "junit":
        return data.as_junit(result)
    made: dict[str, Any] = data.as_json(result) if output == "json" else data.as_sarif(result)
    return json_text(made)


def _rules() -> str:
    width = max(map(len, RULES))
    return "".join(f"{each.id:{width}}  {each.severity:7}  {each.title}\n" for each in RULES.values())
