"""The options for agents on the nodes of an existing cluster: of `trace`, `run` and `rollout`."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

NODE_AGENT = ("node_agent", "node_agent_image", "node_agent_namespace", "node_agent_ptrace", "node_agent_rules")
"""Their parameters."""

_OPTIONS = (
    click.option(
        "--node-agent", is_flag=True, help="Run an agent on the nodes, which sees what the API does not expose."
    ),
    click.option(
        "--node-agent-image",
        metavar="NAME",
        default="",
        help="Image of the agent.  [default: the one that lastcall image build-agent makes]",
    ),
    click.option(
        "--node-agent-namespace",
        metavar="NAMESPACE",
        default="",
        help="Namespace of the agent's Jobs.  [default: --namespace]",
    ),
    click.option(
        "--node-agent-ptrace",
        is_flag=True,
        help="Give the agent CAP_SYS_PTRACE, to recognize programs without a handler.",
    ),
    click.option(
        "--node-agent-rules",
        is_flag=True,
        help="Give the agent CAP_NET_ADMIN, to read the nodes' rules for Services.",
    ),
)


def node_agent_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, handed to the command as one argument `agents`, None without --node-agent."""

    @wraps(command)
    def gathered(*arguments: Any, **values: Any) -> Any:
        wanted, *more = [values.pop(name) for name in NODE_AGENT]
        if not wanted and any(more):
            raise click.UsageError("--node-agent-… needs --node-agent")
        if not wanted:
            return command(*arguments, agents=None, **values)
        # late: only with --node-agent
        from lastcall.trace.node_agent import AgentOptions

        return command(*arguments, agents=AgentOptions(*more), **values)

    for option in reversed(_OPTIONS):
        gathered = option(gathered)
    return gathered
