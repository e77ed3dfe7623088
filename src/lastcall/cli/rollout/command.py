"""`lastcall rollout`: does an update of this manifest lose requests, which ones, and what would have saved them?"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastcall.api.meta import name_of
from lastcall.cli.clusters.options import ContextOptions
from lastcall.cli.errors import CommandError, WorldError, start_failure, takes_escapes
from lastcall.cli.interrupts import Interrupts
from lastcall.cli.manifests.read import Manifest
from lastcall.cli.options import Sources, is_set, json_text
from lastcall.cli.rollout.flags import rollout_options
from lastcall.cli.rollout.keeping import kept_on_failure
from lastcall.cli.rollout.options import RolloutOptions
from lastcall.cli.run.options import check_cni, check_propagation_nodes
from lastcall.cli.run.output import FOR_CI, checked_output, stdout_console, takes_stdout, write_file
from lastcall.cli.run.summary import append_summary, is_wanted
from lastcall.cli.waiting.status_line import StatusLine
from lastcall.cluster.errors import ClusterStartError
from lastcall.cluster.options import ClusterOptions
from lastcall.traffic.patches import merged
from lastcall.world.clock import RealClock, monotonic

if TYPE_CHECKING:
    from collections.abc import Callable

    from lastcall.cli.manifests.not_simulated import Note
    from lastcall.cli.rollout.result import Result

    Experiment = Callable[[Sequence[Manifest], RolloutOptions], Result]


@click.command()
@rollout_options
def rollout(
    sources: Sources,
    taken: str,
    asked: ContextOptions,
    url: str,
    url_ca: Path | None,
    image: str,
    copy_to: str,
    yes: str,
    **options: Any,
) -> None:
    """Disrupt the workload of MANIFEST… under load, and account for every request.

    The manifests must have a workload (Deployment, StatefulSet, DaemonSet, ReplicaSet) and a Service that selects its
    Pods. lastcall creates everything else in them, too, and waits for other workloads. It starts a cluster for this
    and removes it afterwards. With --from-cluster the workload comes from a cluster that is only read, and the report
    says what differs here.

    With --context and the name of a workload (deployment/web) the experiment is made on that cluster: lastcall says
    what it will do, and begins when the context's name was typed or given (--yes=NAME). It puts back what it changed;
    lastcall cleanup does so after a kill.

    Exit status: 0 no request was lost (or no more than --max-lost); 3 requests were lost, --max-p99 was exceeded, or a
    container crashed or was restarted by a probe; 4 requests were lost before the disruption, or nothing answered; 2
    bad input; 1 anything else. With --apply-advice the run with the advice decides. With --find-safe: 0 a safe lag was
    found; 3 there is none, or --propagation is larger.

    \b
    Kinds of load
      fresh       HTTP/1.1, a connection for each request
      keep-alive  HTTP/1.1, on connections that are reused
      slow        like fresh, with an answer that takes a while (--slow-path)
      tcp         a line and its echo, without HTTP
      stream      an answer that goes on (server-sent events, chunks); the client
                  leaves after --stream-length
      websocket   held for --stream-length; a message every 500 ms, which the
                  application must echo unchanged
      http2       requests on --http2-connections, with prior knowledge (h2c)

    \b
    Every request carries its id: X-Request-ID: lc-7, in raw TCP the line lc-7,
    in a WebSocket messages lc-7.0, lc-7.1, … If the application prints the id
    when it begins and again when it has answered, lastcall compares its log with
    what the client saw.

    \b
    Lost: refused, unreachable, connect timeout; reset or closed before a byte of
    the answer, reset after some; truncated (a body or a stream that ends before
    its last chunk or byte); timeout; 5xx. A WebSocket also: not upgraded; no
    close frame (1006); closed with an error (1002, 1011, …); unanswered (closed
    properly, but a message sent 250 ms or more before was not echoed).

    \b
    Not lost, but listed, because the client continues elsewhere: a WebSocket closed
    with 1000, 1001 (going away), 1012 or 1013; a stream that an ending Pod ends
    with its last chunk; an HTTP/2 request that the server has not begun (above
    GOAWAY's last stream id, or REFUSED_STREAM) and that is answered when the
    client sends it again. An HTTP/2 stream that is cut off is lost.
    """
    file = options["output_file"]
    if options["output"] is None and file is not None and file.suffix and not _is_told_as(file.name.lower()):
        raise click.UsageError(
            f"--output-file {str(file)!r}: the formats of rollout are .html, .json, .xml (JUnit) and .txt"
        )
    options["output"] = checked_output(options["output"], options["output_file"])
    if options["find_safe"] and (
        options["output"] not in ("text", "json") or options["output_file"] is not None or options["summary"]
    ):
        raise click.UsageError("--find-safe writes text or json, to stdout")
    if options["find_safe"] and (options["runs"] > 1 or options["max_lost"] or options["max_p99"]):
        raise click.UsageError(
            "--find-safe does not take --runs, --max-lost and --max-p99; its number of runs is --confirm"
        )
    if options["keep_on_failure"] and (options["find_safe"] or options["runs"] > 1 or options["apply_advice"]):
        raise click.UsageError(
            "--keep-on-failure leaves one cluster running: it excludes --find-safe, --runs and --apply-advice"
        )
    # late: 18 ms of `rollout --help`
    from lastcall.cli.linting.early import tell_certain_errors

    if asked.context and not taken:
        raise SystemExit(_on_a_cluster(sources, asked, url, url_ca, image, copy_to, yes, options))
    if url or url_ca or yes or image or copy_to or options["source"] == "client":
        raise click.UsageError(
            "--url, --url-ca, --image, --copy-to, --yes and --from client are for an experiment on the cluster of "
            "--context"
        )
    if taken:
        loaded, differences = _taken(sources, taken, asked)
        options |= {"workload": taken, "differences": differences}
    else:
        if asked != ContextOptions():
            raise click.UsageError("options of a cluster are for --context or --from-cluster: give one of them, too")
        sources.check("MANIFEST")
        loaded = sources.load()
    tell_certain_errors(loaded)
    raise SystemExit(run_rollout(loaded, RolloutOptions(**options)))


_ALONE = ("apply_advice", "find_safe", "keep_on_failure")
"""Options that need clusters of our own."""


def _on_a_cluster(
    sources: Sources,
    there: ContextOptions,
    url: str,
    url_ca: Path | None,
    image: str,
    copy_to: str,
    yes: str,
    options: dict[str, Any],
) -> int:
    """The exit status of an experiment on somebody's cluster. Raises UserError, WorldError."""
    # late: 104 ms of `rollout --help`
    from lastcall.cli.image.build_agent import AGENT_IMAGE
    from lastcall.cli.rollout.experiments.confirming import confirm
    from lastcall.cli.rollout.experiments.handshaking import read_ca
    from lastcall.cli.rollout.experiments.plan import check_yes
    from lastcall.cli.rollout.experiments.reaching import reached
    from lastcall.cli.rollout.experiments.rolling import TheirRollout
    from lastcall.cli.rollout.experiments.taking import parsed_workload

    if len(sources.manifests) != 1 or sources.kustomizations:
        raise click.UsageError("with --context give the name of one workload there, such as deployment/web")
    (asked,) = sources.manifests
    parsed_workload(asked)
    check_yes(there.context, yes)
    if given := [f"--{each.replace('_', '-')}" for each in _ALONE if options[each]]:
        raise click.UsageError(f"{given[0]} starts clusters of lastcall: it is not for the cluster of --context")
    if options["runs"] > 1:
        raise click.UsageError("--runs is not for the cluster of --context: each run is allowed by itself")
    if not is_set("source"):
        options["source"] = "client" if url else "pod"
    if options["source"] not in ("client", "pod"):
        raise click.UsageError(f"--from {options['source']} is not for the cluster of --context: --from pod or client")
    if url and options["source"] == "pod":
        raise click.UsageError("--url is for requests from this machine: --from client")
    if url_ca and not url.startswith("https:"):
        raise click.UsageError("--url-ca is for an https:// URL: give --url https://…")
    ca_pem = read_ca(url_ca)
    if copy_to and options["source"] != "pod":
        raise click.UsageError("--copy-to: only a Pod there reaches the copy: leave out --url and --from client")
    made, context, there = RolloutOptions(**options), there.context, _in_namespace(there, sources)

    def experiment(manifests: Sequence[Manifest], options: RolloutOptions) -> "Result":
        progress = _Progress()

        async def work() -> "Result":
            async with reached(there) as cluster:
                return await TheirRollout(
                    cluster,
                    options,
                    asked,
                    url,
                    image or AGENT_IMAGE,
                    copy_to,
                    ca_pem,
                    confirm=lambda plan: confirm(context, plan.lines, yes),
                    say=progress.say,
                    show=progress.show,
                ).run()

        message = f"what was changed is put back; lastcall doctor --context {context} shows whether all of it"
        with Interrupts(message=message) as interrupts:
            try:
                return interrupts.run(work())
            finally:
                progress.end()

    return run_rollout((), made, experiment)


def _in_namespace(there: ContextOptions, sources: Sources) -> ContextOptions:
    """With `-n`, where it was given: the context has one of its own."""
    return replace(there, namespace=sources.namespace if is_set("namespace") else "")


def _taken(sources: Sources, workload: str, there: ContextOptions) -> "tuple[list[Manifest], tuple[Note, ...]]":
    """The manifests of a workload of somebody's cluster, and what differs here. Raises UserError, WorldError."""
    # late: 104 ms of `rollout --help`
    from lastcall.cli.rollout.experiments.reaching import reached
    from lastcall.cli.rollout.experiments.taking import Taking, parsed_workload

    if sources:
        raise click.UsageError("--from-cluster takes the place of MANIFEST, -f and -k: leave those out")
    parsed_workload(workload)
    there = _in_namespace(there, sources)

    async def take() -> "tuple[list[Manifest], tuple[Note, ...]]":
        async with reached(there) as cluster:
            found = await Taking(cluster.client, cluster.where, cluster.namespace).run(workload)
            names = ", ".join(f"{each.resource.kind} {name_of(each.obj)}" for each in found.manifests)
            click.echo(f"taken from {cluster.where}, namespace {cluster.namespace}: {names}", err=True)
            return found.manifests, found.notes

    with Interrupts() as interrupts:
        return interrupts.run(take())


def _is_told_as(name: str) -> bool:
    return name.endswith((".html", ".htm", ".json", ".xml", ".txt", ".text", ".log")) and not name.endswith(
        ".trace.json"
    )


def run_rollout(manifests: Sequence[Manifest], options: RolloutOptions, experiment: "Experiment | None" = None) -> int:
    """The experiment, and a second one with the advice applied where that is asked for; the exit status.

    What the first one found is told whatever becomes of the second."""
    # late: 57 ms of `rollout --help`
    from lastcall.cli.rollout.pool import exit_status, pool
    from lastcall.cli.rollout.report import tell_limits, tell_results
    from lastcall.cli.rollout.target import with_advice

    if options.find_safe:
        return _run_find_safe(manifests, options)
    console = None if takes_stdout(options.output, options.output_file) else stdout_console()
    try:
        results, failure = _repeated(manifests, options, experiment=experiment)
    except CommandError as error:
        if options.output in FOR_CI:
            _write(options, [], error)
        _summarize(options, [], str(error))
        raise
    last = results
    if console is not None:
        tell_results(console, results)
    patch = merged(each.judgement.patch for each in results)
    if options.apply_advice and patch and failure is None:
        if options.output_file is not None:
            _write(options, results)
        click.echo("\nonce more, with the advice applied", err=True)
        changed = with_advice(manifests, results[0].owner, patch)
        last, failure = _repeated(changed, options, advised=True, known=results)
        if last and console is not None:
            tell_results(console, last)
        results = [*results, *last]
    if console is not None and last:
        tell_limits(console, last, options.thresholds)
    _write(options, results, failure)
    _summarize(options, results, str(failure or ""))
    if failure is not None:
        raise failure
    return exit_status(pool(last), options.thresholds)


def _repeated(
    manifests: Sequence[Manifest],
    options: RolloutOptions,
    *,
    advised: bool = False,
    known: "Sequence[Result]" = (),
    experiment: "Experiment | None" = None,
) -> "tuple[list[Result], Exception | None]":
    """As many runs as were asked for, each on a cluster of its own; and what cut them short, which is raised where
    nothing else is known that could be told."""
    results: list[Result] = []
    for number in range(1, options.runs + 1):
        if options.runs > 1:
            click.echo(f"run {number} of {options.runs}", err=True)
        try:
            result = (experiment or _experiment)(manifests, options)
        except Exception as error:
            if results or known:
                return results, error
            raise
        results.append(replace(result, run=number, advised=advised))
        if options.runs > 1:
            click.echo(f"run {number} of {options.runs}: {result.judgement.verdict}", err=True)
    return results, None


def _summarize(options: RolloutOptions, results: "Sequence[Result]", error: str) -> None:
    if is_wanted(options.summary):
        # late: 69 ms of `rollout --help`
        from lastcall.cli.rollout.checks import summary_of

        append_summary(options.summary, summary_of(results, options.thresholds, error))


def _write(options: RolloutOptions, results: "Sequence[Result]", failure: Exception | None = None) -> None:
    """The document, where one was asked for: into the file, or to stdout. Raises WorldError."""
    file = options.output_file
    if file is None and options.output == "text":
        return
    document = _document(options, results, str(failure or ""))
    if file is None:
        click.echo(document, nl=False)
        return
    try:
        write_file(file, document)
    except OSError as error:
        raise WorldError(f"{file} cannot be written: {error.strerror}") from error
    click.echo(f"Report written to {file}", err=True)


def _document(options: RolloutOptions, results: "Sequence[Result]", failure: str) -> str:
    if options.output == "json":
        # late: 53 ms of `rollout --help`
        from lastcall.cli.rollout.report import as_json

        return json_text(as_json(results, options.thresholds), indent=1)
    if options.output == "html":
        # late: 64 ms of `rollout --help`
        from lastcall.cli.rollout.html import html_page

        return html_page(results, options.thresholds)
    # late: 69 ms of `rollout --help`
    from lastcall.cli.rollout.checks import checks_of, plain_text
    from lastcall.timeline.render.checks import as_github, as_junit

    if options.output == "text":
        return plain_text(results, options.thresholds)
    told = checks_of(results, options.thresholds, failure)
    return as_junit("lastcall rollout", told, "nothing was measured") if options.output == "junit" else as_github(told)


def _run_find_safe(manifests: Sequence[Manifest], options: RolloutOptions) -> int:
    # late: 140 ms of `rollout --help`
    from lastcall.cli.rollout import find_safe_report as report
    from lastcall.cli.rollout.find_safe import exit_is_good, find_safe
    from lastcall.cli.rollout.pool import INCONCLUSIVE, LOSES
    from lastcall.cli.rollout.report import as_json

    found = find_safe(manifests, options, _experiment)
    if options.output == "json":
        document = {**as_json(found.runs), "findSafe": report.as_json(found)}
        click.echo(json_text(document, indent=1), nl=False)
    else:
        report.tell_text(stdout_console(), found)
    if found.measured.judgement.verdict == "inconclusive":
        return INCONCLUSIVE
    return 0 if exit_is_good(found) else LOSES


class _Progress:
    """Lines on stderr with the seconds since now: an experiment takes longer than anybody waits in silence. What is
    waited for changes in place on a terminal, and is told once in a log."""

    def __init__(self) -> None:
        self._clock = RealClock()
        self._began = monotonic(self._clock)
        terminal = sys.stderr if takes_escapes(sys.stderr) else None
        self._status = StatusLine(self._line, terminal)

    def say(self, text: str) -> None:
        self._status.clear()
        self._line(text)

    def show(self, now: float, waited: float, text: str) -> None:
        self._status.show(now, waited, text)

    def end(self) -> None:
        self._status.clear()

    def _line(self, text: str) -> None:
        click.echo(f"{monotonic(self._clock) - self._began:7.3f}s  {text}", err=True)


def _experiment(manifests: Sequence[Manifest], options: RolloutOptions) -> "Result":
    # late: 104 ms of `rollout --help`
    from lastcall.cli.rollout.session import RolloutSession
    from lastcall.cli.rollout.target import find_target
    from lastcall.cli.waiting.not_well import ends_of_all, told_once

    target = find_target(manifests, options)
    nodes = 2 if options.disrupt == "drain" else 1
    check_propagation_nodes(options.propagation, nodes)
    check_cni(options.cni_conf_dir, options.cni_bin_dir, nodes)
    # late: 41 ms of `rollout --help`
    from lastcall.cluster.embedded import start

    wanted = ClusterOptions(
        kubernetes_version=options.kubernetes_version,
        load=options.source != "published",
        propagation=options.propagation,
        nodes=nodes,
        max_pods=options.max_pods,
        seccomp_default=options.seccomp_default,
        cni_conf_dir=options.cni_conf_dir,
        cni_bin_dir=options.cni_bin_dir,
    )
    with Interrupts() as interrupts:
        interrupts.check()
        try:
            cluster = start(wanted)
        except ClusterStartError as error:
            raise start_failure(error) from error
        try:
            interrupts.check()
            progress = _Progress()
            session = RolloutSession(cluster, options, target, say=progress.say, show=progress.show, nodes=nodes)

            async def experiment() -> "Result":
                result = await session.run(manifests)
                found = ends_of_all(session.records, options.kubernetes_version)
                for names, each in told_once(found):
                    for line in (f"not well: {names}", *each.lines):
                        progress.say(line)
                return replace(result, not_well=found)

            async def run() -> "Result":
                task, loop = asyncio.current_task(), asyncio.get_running_loop()
                assert task is not None

                def cancel() -> None:
                    loop.call_soon_threadsafe(task.cancel)

                interrupts.on_first = cancel
                interrupts.check()
                work = experiment()
                if options.keep_on_failure:
                    work = kept_on_failure(work, cluster.kubeconfig_path, progress.say, session.is_dead, interrupts)
                try:
                    return await work
                finally:
                    interrupts.on_first = None
                    progress.end()

            return asyncio.run(run())
        except ClusterStartError as error:
            raise start_failure(error) from error
        except asyncio.CancelledError:
            raise interrupts.error() from None
        finally:
            cluster.stop()
