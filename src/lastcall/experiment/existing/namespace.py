"""A namespace of a context as a place for experiments: a plan that is agreed to, a ledger, and all of it put back."""

from collections.abc import Callable, Sequence
from dataclasses import field

from lastcall.contexts import explained
from lastcall.experiment.existing.changes import Changes
from lastcall.experiment.existing.connection import Reached
from lastcall.experiment.existing.plan import Plan
from lastcall.experiment.existing.preflight import check_alone, check_exists
from lastcall.experiment.existing.retries import PatientClient
from lastcall.experiment.workspace import Workspace
from lastcall.kube.api import StatusError
from lastcall.kube.client import Client, ConnectionLost
from lastcall.records.said import tell
from lastcall.trace.node_agent import AgentOptions
from lastcall.world.clock import RealClock
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

Confirm = Callable[[Plan], None]
"""Raises UserError where nobody said yes."""


@dataclass(slots=True, kw_only=True)
class ExistingNamespace(Workspace):
    """Nothing is changed before `agree`, and nothing without the ledger that it begins."""

    cluster: Reached
    confirm: Confirm
    agents: AgentOptions | None = None
    """Of agents on the nodes, None for none."""
    changes: Changes | None = None
    _client: PatientClient = field(init=False)

    def __post_init__(self) -> None:
        self._client = PatientClient(self.cluster.client, RealClock())

    @property
    def client(self) -> Client:
        return self._client

    async def check_free(self, namespace: str, missing: str) -> None:
        """Raise UserError for a namespace that has an experiment, or does not exist (`missing` begins that message)."""
        context = self.cluster.context
        await check_exists(self._client, context, namespace, missing)
        await check_alone(self._client, context, namespace)

    async def agree(
        self, namespace: str, steps: Sequence[str], restored: Sequence[str], world: World, gone_seconds: float = 0.0
    ) -> Changes:
        """Return the ledger of what is agreed to. Raises UserError: nobody said yes, or another experiment is there."""
        await check_alone(self._client, self.cluster.context, namespace)
        if self.agents is not None:
            where = self.agents.namespace or namespace
            steps = ("run an agent, which reads the node, on each node of these Pods", *steps)
            restored = (*restored, f"delete the Jobs of these agents in namespace {where}")
        self.confirm(Plan(self.cluster.context, self.cluster.server, namespace, tuple(steps), tuple(restored)))
        self.changes = Changes(self._client, namespace, world, gone_seconds)
        return self.changes

    async def restore(self, say: Callable[[str], None]) -> None:
        if self.changes is not None and self.changes.id:
            say(tell("puts back what was changed"))
            await self.changes.restore(say)

    async def error(self, found: Exception) -> Exception:
        """Return what a user can do about a server that is lost, or a right that is missing."""
        if isinstance(found, StatusError | ConnectionLost) and self.cluster.config is not None:
            return await explained(found, self.cluster.context, self.cluster.config)
        return found
