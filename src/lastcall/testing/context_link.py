"""One event loop's connection to an existing cluster: a namespace of a context, with consent for every change."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any, NoReturn
from warnings import warn

from lastcall.contexts import ContextOptions
from lastcall.errors import LastcallError, UserError
from lastcall.experiment.existing import ExistingObjects, check_namespace, is_allowed, of_service, reached
from lastcall.kube.api import NODES, PODS, SERVICES, Object, StatusError, name_of, namespace_of, uid_of
from lastcall.kube.client import HTTPClient
from lastcall.manifests.applying import Named
from lastcall.testing.rollout import Rollout, run_rollout
from lastcall.trace import Follower, Scope, Target
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.endings import Ending as Story
    from lastcall.experiment.existing import Reached
    from lastcall.testing.ending import Ending

__tracebackhide__ = True  # pytest shows the caller's line

SETTLE_SECONDS = 5.0
"""How long the last events of an end may take to arrive when its object is gone."""
_LOOK_SECONDS = 0.05
_NAMESPACES = "lastcall neither creates nor deletes namespaces of an existing cluster"
_NODES = "lastcall neither adds nor removes nodes of an existing cluster"
CANNOT = {
    "create_namespace": (_NAMESPACES, "kubectl --context $context create namespace NAME, then in_namespace(NAME)"),
    "temporary_namespace": (_NAMESPACES, "kubectl --context $context create namespace NAME, then in_namespace(NAME)"),
    "delete_namespace": (_NAMESPACES, "kubectl --context $context delete namespace NAME"),
    "add_node": (_NODES, "add a node as your provider does it"),
    "remove_node": (_NODES, "kubectl --context $context drain NODE, then remove it as your provider does it"),
    "kubeconfig": (
        "other clients would use the current context of that file, which may be another cluster",
        "give them your own kubeconfig and the context, as in kubectl --context $context",
    ),
}
"""Method → why an existing cluster does not have it, and what to do."""


@dataclass(slots=True)
class ContextLink:
    """Like `Link`; `open` comes first, and `close` removes what was created. `yes` has to be the context's name before
    anything is changed. Raises LastcallError."""

    asked: ContextOptions
    yes: str
    world: World = field(default_factory=World)
    objects: ExistingObjects = field(init=False)
    _cluster: "Reached" = field(init=False)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _stories: dict[str, "Story"] = field(default_factory=dict)
    """Of the Pods that were deleted here, by uid, in the order of their ends."""

    async def open(self) -> None:
        """Connect. Raises UserError, WorldError."""
        context, yes = self.asked.context, self.yes
        if yes and not is_allowed(context, yes):
            raise UserError(f"yes={yes!r} allows context {yes}, and this is {context}\nfix: yes={context!r}")
        self._cluster = await self._stack.enter_async_context(reached(self.asked, _warn))
        self.objects = ExistingObjects(self._cluster, self.world, _warn)

    async def close(self) -> None:
        """Remove what was created, and close the connection. Raises WorldError with what is left."""
        try:
            await self.objects.restore()
        finally:
            await self._stack.aclose()

    @property
    def name(self) -> str:
        return self._cluster.context

    @property
    def server(self) -> str:
        return self._cluster.server

    @property
    def namespace(self) -> str:
        """Return the namespace that was asked for, else the context's."""
        return self._cluster.namespace

    @property
    def kubeconfig(self) -> str:
        self.check_own("kubeconfig")

    @property
    def kubernetes_version(self) -> str:
        return self._cluster.minor_version

    @property
    def client(self) -> HTTPClient:
        return self._cluster.client

    @property
    def clock(self) -> Clock:
        return self.world.clock

    # -- what may be done ----------------------------------------------------------------------------------------------

    def check_own(self, method: str) -> NoReturn:
        """Raise UserError for a method that only a cluster of our own has."""
        why, fix = CANNOT[method]
        raise UserError(f"{method} on {self._cluster.where}: {why}\nfix: {fix.replace('$context', self.name)}")

    def allow(self, method: str, namespace: str) -> None:
        """Return if `method` may change something in a namespace. Raises UserError."""
        check_namespace(namespace)
        if not is_allowed(self.name, self.yes):
            raise UserError(
                f"{method} on {self._cluster.where} ({self.server}), namespace {namespace}: this changes the cluster, "
                f"and nobody has allowed it. Nothing was done\nfix: Cluster(context={self.name!r}, yes={self.name!r})"
            )

    async def publish(self, target: str) -> tuple[str, int]:
        """Return where a Service (`svc/NAMESPACE/NAME:PORT`) takes connections outside of its cluster."""
        path, _, port = target.rpartition(":")
        kind, _, rest = path.partition("/")
        namespace, _, name = rest.partition("/")
        where = f"{target} on {self._cluster.where}"
        way = f'fix: port_forward("KIND/NAME", {port if port.isdecimal() else "PORT"}), which leads to a Pod itself'
        named = Named((await self.objects.kind(kind)), namespace, name)
        service = await self.objects.get(named)
        if named.resource != SERVICES:
            raise UserError(f"{where}: only a Service can have an address outside of its cluster\n{way}")
        if service is None:
            raise LastcallError(f"{where}: {named} does not exist")
        offered = service["spec"].get("ports") or ()
        found = next((each for each in offered if port in (str(each.get("port")), each.get("name"))), None)
        if found is None:
            names = ", ".join(f"{each.get('port')} {each.get('name', '')}".strip() for each in offered)
            raise UserError(f"{where}: it has no port {port}\nfix: one of {names or 'none'}")
        try:
            entrance = of_service(service, found, await self._nodes())
        except UserError as error:
            raise UserError(f"{where}: {str(error).splitlines()[0]}\n{way}") from error
        return entrance.address, int(entrance.port)

    async def _nodes(self) -> list[Object]:
        try:
            found: list[Object] = (await self.client.list(NODES)).items
        except StatusError:
            return []
        return found

    async def rollout(self, manifests: Sequence[Any], timeout: float, options: dict[str, Any]) -> Rollout:
        """Disrupt a workload of the namespace, named as in `deployment/web`: `lastcall rollout --context`."""
        if len(manifests) != 1 or not isinstance(manifests[0], str) or "\n" in manifests[0]:
            raise UserError(
                f"rollout on {self._cluster.where}: it disrupts one workload that is there\n"
                'fix: rollout("deployment/web"); lastcall.rollout(…) takes manifests, to a cluster of its own'
            )
        self.allow("rollout", self.namespace)
        there = {"context": self.name, "namespace": self.namespace, "yes": self.yes}
        kubeconfig = {"kubeconfig": self.asked.kubeconfig} if self.asked.kubeconfig else {}
        return await run_rollout(manifests, timeout, {**options, **there, **kubeconfig})

    # -- ends ----------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def following(self, pods: Sequence[Object]) -> AsyncIterator[None]:
        """Follow the ends of these Pods through the API, until they are over."""
        async with AsyncExitStack() as stack:
            for namespace in sorted({namespace_of(each) for each in pods}):
                own = [each for each in pods if namespace_of(each) == namespace]
                await stack.enter_async_context(self._following(namespace, own))
            yield

    @asynccontextmanager
    async def _following(self, namespace: str, pods: Sequence[Object]) -> AsyncIterator[None]:
        scope = Scope(namespace=namespace, targets=tuple(Target(PODS.kind, name_of(each)) for each in pods))
        version = self.kubernetes_version
        follower = Follower(self.client, scope, world=self.world, kubernetes_version=version, on_note=_warn)
        wanted, failed = {uid_of(each) for each in pods}, None

        async def collect() -> None:
            async for story in follower.endings():
                self._stories[story.pod.uid] = story

        async with Tasks() as tasks:
            tasks.spawn(follower.run(), name="follow Pods")
            collecting = tasks.spawn(collect(), name="stories")
            await follower.synced()
            failed = follower.failure
            if failed is None:
                try:
                    yield
                except Exception as error:  # a task group would wrap it
                    failed = error
            until = monotonic(self.clock) + SETTLE_SECONDS
            while failed is None and wanted - self._stories.keys() and monotonic(self.clock) < until:
                await self.clock.sleep(_LOOK_SECONDS)
            for story in follower.ongoing():
                self._stories.setdefault(story.pod.uid, story)
            collecting.cancel()
            tasks.cancel()
        if failed is not None:
            raise failed

    async def endings(self, uids: Sequence[str]) -> "Ending":
        """Return how these Pods ended, as far as the API shows it."""
        return self._ending([self._stories[uid] for uid in uids if uid in self._stories])

    async def story(self, namespace: str, name: str) -> "Ending":
        """Return how the latest Pod of that name ended, of those that were deleted here. Raises UserError."""
        found = [each for each in self._stories.values() if (each.pod.namespace, each.pod.name) == (namespace, name)]
        if not found:
            raise UserError(
                f"story on {self._cluster.where}: an existing cluster keeps no records, and lastcall has not followed "
                f"the end of Pod {namespace}/{name}\nfix: end it with delete(), or watch its end with "
                f"lastcall trace --context {self.name} -n {namespace} pod/{name}"
            )
        return self._ending(found[-1:])

    async def stories(self, namespace: str) -> "Ending":
        """Return how the Pods of a namespace ended that were deleted here."""
        return self._ending([each for each in self._stories.values() if each.pod.namespace == namespace])

    def _ending(self, stories: "Sequence[Story]") -> "Ending":
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.endings.render import about_cluster
        from lastcall.testing.ending import Ending

        version, pods = self.kubernetes_version, sorted(stories, key=lambda each: each.gone or 0.0)
        return Ending(tuple(pods), version, cluster=about_cluster(version, context=self.name))


def _warn(line: str) -> None:
    """Tell what a command would write on stderr."""
    warn(line, stacklevel=2)
