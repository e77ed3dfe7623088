"""What the machine has for a node that joins somebody's cluster: the link, and the kubelet's listening socket."""

import socket
from dataclasses import dataclass
from typing import Self

from lastcall.cluster.joined import link
from lastcall.cluster.joined.facts import Joined


@dataclass(frozen=True, slots=True)
class JoinedPlace:
    """`make` before the node's processes, `connect` when init is there, `end` after them."""

    joined: Joined
    link: link.Link
    kubelet: socket.socket
    """Listens in the machine's network namespace; the node serves it."""

    @classmethod
    def make(cls, joined: Joined) -> Self:
        """Raises OSError, which says the fix."""
        kubelet = link.kubelet_socket(joined)
        try:
            return cls(joined, link.claim(), kubelet)
        except BaseException:
            kubelet.close()
            raise

    def connect(self, init_pid: int) -> None:
        """Raises OSError."""
        self.link.connect(init_pid, self.joined)

    def join(self) -> None:
        """In the node's network namespace. Raises OSError."""
        self.link.join(self.own_address)

    @property
    def own_address(self) -> str:
        """The machine's address, which Pods with hostNetwork have; "" when that is the API server's, too."""
        return "" if self.joined.is_beside_server else self.joined.node_ip

    def end(self) -> None:
        """Idempotent."""
        self.kubelet.close()
        self.link.disconnect()
