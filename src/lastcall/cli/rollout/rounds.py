"""Run as many experiments as the options or the page ask for, report them, and return the exit status."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from lastcall.cli.options import json_text
from lastcall.cli.output import FOR_CI, stdout_console, takes_stdout
from lastcall.cli.rollout import own_cluster as own
from lastcall.cli.rollout.keep import has_failed
from lastcall.cli.rollout.output import summarize, write
from lastcall.cli.terminal import note, say, say_all, say_from, show
from lastcall.errors import Interrupted, LastcallError, causes_of
from lastcall.experiment.rollout import RolloutOptions
from lastcall.kube.cluster import parse_propagation
from lastcall.manifests import Manifest
from lastcall.traffic import merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lastcall.cli.rollout.page import RolloutPage
    from lastcall.experiment.rollout import Result

    Experiment = Callable[[Sequence[Manifest], RolloutOptions], Result]


class Experimenting(Protocol):
    """Makes one experiment, and shows it on the page, if there is one."""

    def __call__(
        self, manifests: Sequence[Manifest], options: RolloutOptions, *, page: "RolloutPage | None" = None
    ) -> "Result": ...


def run_rollout(
    manifests: Sequence[Manifest], options: RolloutOptions, experiment: Experimenting = own.experiment
) -> int:
    """Run the experiment, and more if the advice is to be applied or its page asks for them; return the exit status.

    The result of the first one is reported whatever becomes of the others."""
    if options.page is None:
        return _run(manifests, options, experiment)
    # late: only with --ui
    from lastcall.cli.rollout.page import RolloutPage

    page = RolloutPage(options.page, of=options.runs)
    try:
        return _run(manifests, options, partial(experiment, page=page), page)
    finally:
        page.close()


def _run(
    manifests: Sequence[Manifest],
    options: RolloutOptions,
    experiment: "Experiment",
    page: "RolloutPage | None" = None,
) -> int:
    if options.find_safe:
        return _find_safe(manifests, options, experiment, page)
    try:
        results, failure = _repeated(manifests, options, experiment)
    except LastcallError as error:
        if options.output in FOR_CI or (options.output == "json" and causes_of(error)):
            write(options, [], error)
        summarize(options, [], str(error))
        raise
    # late: what reports need, when there is something to report
    from lastcall.experiment.rollout import exit_status, pool, tell_limits, tell_results, with_advice

    console = None if takes_stdout(options.output, options.output_file) else stdout_console()
    last = results
    if console is not None:
        tell_results(console, results)
    patch = _patch_to_try(results) if options.apply_advice else {}
    if patch and failure is None:
        if options.output_file is not None:
            write(options, results)
        say("", "once more, with the advice applied", err=True)
        if page is not None:
            page.advised(options.runs)
        manifests = with_advice(manifests, results[0].owner, patch)
        last, failure = _repeated(manifests, options, experiment, advised=True, known=results)
        if last and console is not None:
            tell_results(console, last, before=results)
        results = [*results, *last]
    # A cluster that was kept has been looked at, until Ctrl-C.
    kept = options.keep_on_failure and any(has_failed(each) for each in last)
    if page is not None and failure is None and not kept:
        try:
            for result in _as_its_page_asks(page, manifests, options, experiment):
                last = [replace(result, run=len(results) + 1, advised=True)]
                if console is not None:
                    tell_results(console, last, before=results)
                results = [*results, *last]
        except Exception as error:
            failure = error
    if console is not None and last:
        tell_limits(console, last, options.thresholds)
    write(options, results, failure)
    summarize(options, results, str(failure or ""))
    if failure is not None:
        raise failure
    return exit_status(pool(last), options.thresholds)


def _patch_to_try(results: "Sequence[Result]") -> dict[str, Any]:
    """Return what all advice changes in the manifest; say why if it changes nothing there."""
    advice = [each for result in results for each in result.judgement.advice]
    patch = merged(each.patch for each in advice)
    if advice and not patch:
        program = all(each.program for each in advice)
        why = "the change is in the program" if program else "no change of the manifest follows from the advice"
        note(f"--apply-advice: nothing to try, {why}; no second run")
    return patch


def _as_its_page_asks(
    page: "RolloutPage", manifests: Sequence[Manifest], options: RolloutOptions, experiment: "Experiment"
) -> "Iterator[Result]":
    """More experiments, each with what the page's user has changed by then, until nobody looks at it any more."""
    # late: only with --ui
    from lastcall.experiment.rollout import find_target, with_advice

    while (asked := page.next()) is not None:
        if asked.patch:
            manifests = with_advice(manifests, find_target(manifests, options).workload.obj, asked.patch)
        plan = parse_propagation([asked.propagation] if asked.propagation else [])
        options = options.with_cluster(propagation=plan)
        say("", "once more, as the page asks", err=True)
        try:
            yield experiment(manifests, options)
        except Interrupted:
            raise
        except LastcallError as error:
            say_all(str(error), err=True)


def _repeated(
    manifests: Sequence[Manifest],
    options: RolloutOptions,
    experiment: "Experiment",
    *,
    advised: bool = False,
    known: "Sequence[Result]" = (),
) -> "tuple[list[Result], Exception | None]":
    """Return as many runs as were asked for, each on a cluster of its own, and what cut them short; raise that where
    there is no other result to report."""
    results: list[Result] = []
    for number in range(1, options.runs + 1):
        if options.runs > 1:
            say(f"run {number} of {options.runs}", err=True)
        try:
            result = experiment(manifests, options)
        except Exception as error:
            if results or known:
                return results, error
            raise
        results.append(replace(result, run=number, advised=advised))
        if options.runs > 1:
            say(f"run {number} of {options.runs}: {result.judgement.verdict}", err=True)
    return results, None


def _find_safe(
    manifests: Sequence[Manifest], options: RolloutOptions, experiment: "Experiment", page: "RolloutPage | None"
) -> int:
    """The status is the search's, whatever its page's user has run afterwards."""
    # late: 140 ms of `rollout --help`
    from lastcall.experiment.rollout import INCONCLUSIVE, LOSES, as_json, exit_is_good, find_safe, tell_results
    from lastcall.experiment.rollout import find_safe_report as report

    found = find_safe(
        manifests, options, experiment, partial(say_from, "lastcall"), tell=page.searched if page is not None else None
    )
    console = stdout_console() if options.output == "text" else None
    if console is not None:
        report.tell_text(console, found)
    more: list[Result] = []
    if page is not None:
        page.searched(found, done=True)
        for result in _as_its_page_asks(page, manifests, options, experiment):
            more.append(replace(result, run=len(more) + 1, advised=True))
            if console is not None:
                tell_results(console, more[-1:])
    if console is None:
        document = {**as_json([*found.runs, *more]), "findSafe": report.as_json(found)}
        show(json_text(document, indent=1))
    if found.measured.judgement.verdict == "inconclusive":
        return INCONCLUSIVE
    return 0 if exit_is_good(found) else LOSES
