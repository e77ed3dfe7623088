"""`lastcall trace`: the story of Pods' ends on any cluster."""

from pathlib import Path
from typing import Any

import click

from lastcall.cli.context_options import context_options
from lastcall.cli.options import Seconds
from lastcall.cli.output import checked_output, output_options
from lastcall.cli.page_options import asked_page, page_options
from lastcall.cli.trace.audit_options import AuditSource, audit_source_options
from lastcall.cli.trace.serve_options import ServeOptions, serve_options
from lastcall.contexts import ContextOptions


@click.command()
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
@click.option("--node-agent", is_flag=True, help="Run an agent on the nodes, which sees what the API does not expose.")
@click.option(
    "--node-agent-image",
    metavar="NAME",
    default="",
    help="Image of the agent.  [default: the one that lastcall image build-agent makes]",
)
@click.option(
    "--node-agent-namespace",
    metavar="NAMESPACE",
    default="",
    help="Namespace of the agent's Jobs.  [default: --namespace]",
)
@click.option(
    "--node-agent-ptrace",
    is_flag=True,
    help="Give the agent CAP_SYS_PTRACE, to recognize programs without a handler.",
)
@click.option(
    "--node-agent-rules",
    is_flag=True,
    help="Give the agent CAP_NET_ADMIN, to read the nodes' rules for Services.",
)
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
    node_agent: bool,
    node_agent_image: str,
    node_agent_namespace: str,
    node_agent_ptrace: bool,
    node_agent_rules: bool,
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
    was restarted by a probe; 2 bad input; 1 how a Pod ended is not known, or the cluster cannot be reached.
    """
    if asked.namespace and all_namespaces:
        raise click.UsageError("--namespace and --all-namespaces: give one of them")
    if serve.serve is not None and (count or timeout is not None or output or output_file):
        raise click.UsageError("--serve runs until a signal; fix: leave out --count, --timeout and --output…")
    shown = asked_page(page)
    if serve.serve is not None and shown is not None:
        raise click.UsageError("--serve and --ui do not work together; fix: leave one of them out")
    if serve.serve is not None and node_agent:
        raise click.UsageError("--serve only reads, and --node-agent creates Jobs; fix: leave out --node-agent")
    if not node_agent and (node_agent_image or node_agent_namespace or node_agent_ptrace or node_agent_rules):
        raise click.UsageError("--node-agent-… needs --node-agent")
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
        node_agent=node_agent,
        node_agent_image=node_agent_image,
        node_agent_namespace=node_agent_namespace,
        node_agent_ptrace=node_agent_ptrace,
        node_agent_rules=node_agent_rules,
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
