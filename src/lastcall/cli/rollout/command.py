"""`lastcall rollout`: does an update of this manifest lose requests, which ones, and what would have saved them?"""

from pathlib import Path
from typing import Any

import click

from lastcall.cli.options import Sources
from lastcall.cli.output import checked_output
from lastcall.cli.page_options import asked_page
from lastcall.cli.rollout.options import rollout_options
from lastcall.cli.rollout.rounds import run_rollout
from lastcall.contexts import ContextOptions
from lastcall.experiment.rollout import RolloutOptions


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
    _check_output(options)
    _check_runs(options)
    options["page"] = asked_page(options)
    # late: 18 ms of `rollout --help`
    from lastcall.cli.certain_errors import tell_certain_errors

    if asked.context and not taken:
        # late: 104 ms of `rollout --help`
        from lastcall.cli.rollout.existing import on_a_cluster

        raise SystemExit(on_a_cluster(sources, asked, url, url_ca, image, copy_to, yes, options))
    if url or url_ca or yes or image or copy_to or options["source"] == "client":
        raise click.UsageError(
            "--url, --url-ca, --image, --copy-to, --yes and --from client are for an experiment on the cluster of "
            "--context"
        )
    if taken:
        # late: 104 ms of `rollout --help`
        from lastcall.cli.rollout.existing import from_a_cluster

        loaded, differences = from_a_cluster(sources, taken, asked)
        options |= {"workload": taken, "differences": differences}
    else:
        if asked != ContextOptions():
            raise click.UsageError("options of a cluster are for --context or --from-cluster: give one of them, too")
        sources.check("MANIFEST")
        loaded = sources.load()
    tell_certain_errors(loaded)
    raise SystemExit(run_rollout(loaded, RolloutOptions(**options)))


def _check_output(options: dict[str, Any]) -> None:
    """Whether the report can be written as it is asked for. Raises UsageError."""
    file = options["output_file"]
    if options["output"] is None and file is not None and file.suffix and not _is_told_as(file.name.lower()):
        raise click.UsageError(
            f"--output-file {str(file)!r}: the formats of rollout are .html, .json, .xml (JUnit) and .txt"
        )
    options["output"] = checked_output(options["output"], options["output_file"])


def _is_told_as(name: str) -> bool:
    return name.endswith((".html", ".htm", ".json", ".xml", ".txt", ".text", ".log")) and not name.endswith(
        ".trace.json"
    )


def _check_runs(options: dict[str, Any]) -> None:
    """Whether the kinds of runs that are asked for go together. Raises UsageError."""
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
