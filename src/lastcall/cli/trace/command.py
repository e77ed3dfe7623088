"""`lastcall trace`: the story of Pods' ends on any cluster."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastcall.cli.context_options import context_options
from lastcall.cli.node_agent_options import node_agent_options
from lastcall.cli.options import Seconds
from lastcall.cli.output import checked_output, output_options
from lastcall.cli.page_options import asked_page, page_options
from lastcall.cli.sectioned_help import SectionedCommand
from lastcall.cli.trace.audit_options import AuditSource, audit_source_options
from lastcall.cli.trace.serve_options import ServeOptions, serve_options
from lastcall.contexts import ContextOptions

if TYPE_CHECKING:
    from lastcall.trace.node_agent import AgentOptions


@click.command(cls=SectionedCommand)
@click.argument("targets", nargs=-1, metavar="[KIND/NAME…]")
@context_options()
@click.option("--all-namespaces", "-A", is_flag=True, help="Follow the Pods of all namespaces.")
@click.option("--selector", "-l", metavar="SELECTOR", default="", help="Follow only Pods with these labels.")
@click.option(
    "--logs/--no-logs",
    default=True,
    show_default=True,
    help="Read what containers print from the DELETE to their end.",
)
@click.option("--count", type=click.IntRange(1), metavar="N", default=None, help="End after N Pods have ended.")
@click.option(
    "--timeout", type=Seconds(), metavar="TIME", default=None, help="End after this time.  [default: at Ctrl-C]"
)
@audit_source_options
@serve_options
@node_agent_options
@page_options
@output_options
def trace(
    targets: tuple[str, ...],
    asked: ContextOptions,
    all_namespaces: bool,
    selector: str,
    logs: bool,
    count: int | None,
    timeout: float | None,
    audit: AuditSource,
    agents: "AgentOptions | None",
    output: str | None,
    output_file: Path | None,
    explain: bool,
    serve: ServeOptions,
    **page: Any,
) -> None:
    """Follow Pods on any cluster and report how each of them ends, as it happens. Without --node-agent it only reads.

    KIND/NAME is a Pod, an owner of Pods (deployment/web), or node/NAME. Without it, trace follows all Pods of the
    namespace. It runs until Ctrl-C, or until every named Pod has ended. Facts that the API does not expose are
    reported as unknown. The page of --ui shows what the trace sees, and sends the cluster no other requests.

    Exit status: 0 all ended gracefully; 3 a container was SIGKILLed, a preStop hook failed, or a container crashed or
    was restarted by a probe; 2 bad input; 1 how a Pod ended is not known, nothing that was named ended within
    --timeout, or the cluster cannot be reached.
    """
    if asked.namespace and all_namespaces:
        raise click.UsageError("--namespace and --all-namespaces: give one of them")
    if serve.serve is not None and (count or timeout is not None or output or output_file):
        raise click.UsageError("--serve runs until a signal; fix: leave out --count, --timeout and --output…")
    shown = asked_page(page)
    if serve.serve is not None and shown is not None:
        raise click.UsageError("--serve and --ui do not work together; fix: leave one of them out")
    if serve.serve is not None and agents is not None:
        raise click.UsageError("--serve only reads, and --node-agent creates Jobs; fix: leave out --node-agent")
    # late: 100 ms of `trace --help`
    from lastcall.cli.trace.session import Asked, run_trace, scope_of
    from lastcall.contexts import choose

    wanted = Asked(
        targets=targets,
        all_namespaces=all_namespaces,
        selector=selector,
        logs=logs,
        audit=audit,
        count=count or 0,
        timeout=timeout,
        agents=agents,
        output=checked_output(output, output_file),
        output_file=output_file,
        explain=explain,
        page=shown,
    )
    chosen = choose(asked)
    if serve.serve is not None:
        # late: 300 ms of `trace`, Prometheus's library among them, which no other command has
        from lastcall.cli.trace.serving import run_serve

        raise SystemExit(run_serve(chosen, scope_of(wanted, chosen.namespace), serve, logs=logs))
    raise SystemExit(run_trace(chosen, wanted))
