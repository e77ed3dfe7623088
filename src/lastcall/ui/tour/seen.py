"""What is known of a run of the tour, which its claims are compared with. Pure."""

# check: pure

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lastcall.endings import ContainerEnding, Ending, Entry, PreStop
from lastcall.kube.api import AnyObject
from lastcall.records import kinds
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.records.record import Facts, Kind


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said to an act: `code` of HTTP, `message` of a refusal; `marked` is what the Pod has then:
    deletionTimestamp and deletionGracePeriodSeconds. It came after `seconds`."""

    what: str
    command: str
    code: int
    seconds: float
    message: str = ""
    marked: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a run: the Pod's story, the object as it was before, the answers, and after how many seconds
    another Pod of the same owner was there (None: no owner, or not yet)."""

    ending: Ending
    pod: AnyObject
    answers: Sequence[Answer]
    replaced: float | None = None

    def at(self, kind: "Kind[Any]", container: str = "") -> float | None:
        """Return when the first record of a kind was written since the DELETE."""
        found = self.entry(kind, container)
        return found.at if found else None

    def entry(self, kind: "Kind[Facts]", container: str = "") -> Entry | None:
        return next(
            (
                each
                for each in self.ending.entries
                if each.record.kind == kind and each.at >= 0 and container in ("", each.record.container)
            ),
            None,
        )

    @property
    def main(self) -> ContainerEnding | None:
        """Return the first regular container."""
        return next((each for each in self.ending.containers if each.kind == "container"), None)

    @property
    def hook(self) -> PreStop | None:
        return self.main.hook if self.main else None

    @property
    def exited(self) -> float | None:
        """Return when the last container ended, once all have."""
        ends = [each.exit.at for each in self.ending.containers if each.started]
        known = [each for each in ends if each is not None]
        return max(known) if known and len(known) == len(ends) else None

    @property
    def rules(self) -> float | None:
        """Return when the last node's proxy stopped sending new connections to the Pod."""
        stopped: dict[str, float] = {}
        for each in self.ending.entries:
            if each.record.kind == kinds.ENDPOINT_RULES_WRITTEN and each.at >= 0:
                facts = each.facts_as(kinds.ENDPOINT_RULES_WRITTEN)
                if facts.get("received") and not facts.get("receives"):
                    stopped.setdefault(str(facts.get("node")), each.at)
        return max(stopped.values()) if stopped else None
