"""Which sandboxes of a runtime have ended though this node did not stop them, by their states in its listings. Pure."""

from collections.abc import Iterable
from dataclasses import field

from lastcall.kube.cri.api import PodSandboxState, PodSandboxStatus
from lastcall.world.dataclass import dataclass


@dataclass(slots=True)
class SandboxEnds:
    """`run` when this node has begun one, `look` at each listing, `stopping` before this node stops or removes one."""

    ready: dict[str, int] = field(default_factory=dict)
    """Id → when it was seen ready last, monotonic ns."""
    _stopped: set[str] = field(default_factory=set)

    def run(self, sandbox_id: str, now_ns: int) -> None:
        """Note a sandbox that is ready."""
        self.ready[sandbox_id] = now_ns

    def stopping(self, sandbox_id: str) -> None:
        """Note that this node stops a sandbox, however often it has to try."""
        self._stopped.add(sandbox_id)

    def look(self, listed: Iterable[PodSandboxStatus], now_ns: int) -> list[tuple[PodSandboxStatus, float]]:
        """Return the sandboxes that are no longer ready, once each, with the seconds since they were seen ready."""
        found, there = [], set()
        for each in listed:
            there.add(each.id)
            if (seconds := self.ended(each, now_ns)) is not None:
                found.append((each, seconds))
        self.ready = {key: at for key, at in self.ready.items() if key in there}
        self._stopped &= there
        return found

    def ended(self, sandbox: PodSandboxStatus, now_ns: int) -> float | None:
        """Return the seconds since a sandbox was seen ready, once, if it no longer is and this node did not stop it."""
        if sandbox.state == PodSandboxState.SANDBOX_READY:
            self.ready[sandbox.id] = now_ns
            return None
        since = self.ready.pop(sandbox.id, None)
        return None if since is None or sandbox.id in self._stopped else (now_ns - since) / 1e9
