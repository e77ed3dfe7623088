"""What is asked of node agents, by whatever command."""

from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """`image` "" is that of `lastcall image build-agent`; `namespace` "" is that of the followed Pods.

    `traces` gives the agents CAP_SYS_PTRACE, `rules` CAP_NET_ADMIN.
    """

    image: str = ""
    namespace: str = ""
    traces: bool = False
    rules: bool = False
