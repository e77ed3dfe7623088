"""What is asked of node agents, by whatever command."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lastcall.kube.client import HTTPClient
    from lastcall.records.record import Record
    from lastcall.trace.node_agent.agents import NodeAgents
    from lastcall.world.world import World


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """`image` "" is that of `lastcall image build-agent`; `namespace` "" is that of the followed Pods.

    `traces` gives the agents CAP_SYS_PTRACE, `rules` CAP_NET_ADMIN.
    """

    image: str = ""
    namespace: str = ""
    traces: bool = False
    rules: bool = False

    def agents(
        self,
        client: "HTTPClient",
        namespace: str,
        on_record: "Callable[[Record], None]",
        on_note: Callable[[str], None],
        world: "World",
    ) -> "NodeAgents":
        """Return the agents of one client, which are not started yet."""
        # late: only with --node-agent
        from lastcall.trace.node_agent.agents import NodeAgents
        from lastcall.trace.node_agent.job import DEFAULT_IMAGE

        return NodeAgents(
            client,
            namespace=self.namespace or namespace or "default",
            image=self.image or DEFAULT_IMAGE,
            traces=self.traces,
            rules=self.rules,
            on_record=on_record,
            on_note=on_note,
            world=world,
        )
