"""How Pods ended, as objects that tests ask: `assert ending.graceful`."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lastcall.endings import WORLD, exit_status, outcome_words, story
from lastcall.errors import NoRequests
from lastcall.testing.sent import Sent
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.endings.render import AboutCluster

__tracebackhide__ = True  # pytest shows the caller's line

_WORST: Sequence[story.Outcome] = ("killed", "crashed", "restarted", "hookFailed", "unknown", "graceful")
WIDTH = 100
NOTHING = "no Pod ended: nothing was checked"
"""What an ending without Pods says."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What a DELETE ended: the story of each Pod, and the requests that were sent meanwhile.

    `pods` are in the order of their ends; all times in them are seconds since the DELETE was accepted.
    """

    pods: tuple[story.Ending, ...]
    kubernetes_version: str
    sent: Sent | None = field(default=None, repr=False)
    cluster: "AboutCluster | None" = field(default=None, repr=False)
    """Which one, as documents have it."""

    @property
    def outcome(self) -> story.Outcome:
        """Return the worst of its Pods': killed, crashed, restarted, hookFailed, unknown, graceful. Without Pods it is
        unknown."""
        return min((pod.outcome for pod in self.pods), key=_WORST.index, default="unknown")

    @property
    def graceful(self) -> bool:
        """Return Pods ended, every container by itself or on its stop signal, and no preStop hook failed."""
        return self.outcome == "graceful"

    @property
    def seconds(self) -> float:
        """Return the seconds from the DELETE until the last Pod was gone."""
        return max((pod.gone for pod in self.pods if pod.gone is not None), default=0.0)

    @property
    def exit_codes(self) -> Mapping[str, int | None]:
        """Exit code by container (`app`; `web-1/app` where several Pods ended), None where nobody saw it."""
        several = len(self.pods) > 1
        return {
            f"{pod.pod.name}/{each.name}" if several else each.name: each.exit.code
            for pod in self.pods
            for each in pod.containers
        }

    @property
    def findings(self) -> tuple[story.Finding, ...]:
        """Return everything worth knowing, with its stable id, its severity, and the fix in `advice`."""
        return tuple(finding for pod in self.pods for finding in pod.findings)

    @property
    def lost_requests(self) -> int:
        """Return requests without a good answer, from just before the DELETE until its Pods were gone. Raises
        NoRequests where none were sent: `delete(…, load="svc/web:80")`."""
        if self.sent is None:
            raise NoRequests('no requests were sent: use delete(…, load="svc/web:80") to send some')
        return len(self.sent.lost)

    @property
    def text(self) -> str:
        """Return the whole story for a terminal, as `lastcall story` prints it; without Pods, that there were none."""
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.endings.render import plain_text

        story = plain_text(self.pods, WIDTH).lstrip("\n") if self.pods else f"{NOTHING}\n"
        return story if self.sent is None else f"{story}\n{self.sent.text}\n"

    def as_dict(self) -> dict[str, Any]:
        """Return the document `lastcall/ending/v1`."""
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall._version import __version__
        from lastcall.endings.render import endings_document

        made = endings_document(
            self.pods,
            kubernetes_version=self.kubernetes_version,
            lastcall_version=__version__,
            exit_status=exit_status(self.pods) if self.pods else WORLD,
            error="" if self.pods else NOTHING,
            not_simulated=None,
            cluster=self.cluster,
        )
        return dict(made)

    def assert_graceful(self) -> None:
        """Raise AssertionError with the causes and the whole story unless Pods ended, all of them gracefully, and no
        request was lost where some were sent."""
        lost = len(self.sent.lost) if self.sent is not None else 0
        if not self.pods:
            raise AssertionError(str(self))
        if not self.graceful or lost:
            why = [line for each in self.findings if each.severity == "problem" for line in _why(each)]
            raise AssertionError("\n".join([str(self), *why, "", self.text]))

    def __str__(self) -> str:
        names = ", ".join(f"{pod.pod.namespace}/{pod.pod.name} {outcome_words(pod)}" for pod in self.pods[:5])
        more = f", and {len(self.pods) - 5} more" if len(self.pods) > 5 else ""
        lost = f"; {len(self.sent.lost)} of {self.sent.total} requests lost" if self.sent is not None else ""
        return f"{names or NOTHING}{more}{lost}"

    def __repr__(self) -> str:
        return f"<Ending: {self}>"


def _why(finding: story.Finding) -> list[str]:
    return [f"✗ {finding.text}", *([f"  → {finding.advice}"] if finding.advice else [])]
