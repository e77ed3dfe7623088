"""Create objects on an existing cluster: each is written to a ledger first, and `restore` removes it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from lastcall.errors import UserError, WorldError
from lastcall.experiment.existing.changes import GONE_SECONDS, Changes
from lastcall.experiment.existing.connection import AGENT, PATIENCE_SECONDS
from lastcall.experiment.existing.ledger import KINDS, LABEL, labelled
from lastcall.experiment.existing.preflight import check_alone, check_exists, objects_around
from lastcall.experiment.existing.retries import PatientClient
from lastcall.experiment.existing.run_checks import overlaps, refusal
from lastcall.experiment.ready.objects import FIELD_MANAGER, Objects
from lastcall.kube.api import PODS, Object, Resource, labels_of, name_of
from lastcall.kube.client import JSON_PATCH, discover
from lastcall.kube.controllers import controller_of
from lastcall.manifests import Document, Manifest, Place
from lastcall.manifests.applying import Named, with_namespace
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.experiment.existing.connection import Reached

GRACE_SECONDS = 30.0
"""Of a Pod that names none."""


class ExistingObjects(Objects):
    """Objects of a context. Only what was created here may be changed or deleted, and Pods that have a controller.
    `warn` gets a line for what could not be checked."""

    patience: ClassVar[float] = PATIENCE_SECONDS

    def __init__(self, cluster: "Reached", world: World, warn: Callable[[str], None]) -> None:
        super().__init__(cluster.client, world.clock)
        self._cluster = cluster
        self._world = world
        self._warn = warn
        self._changes: dict[str, Changes] = {}
        """By namespace."""

    async def restore(self) -> None:
        """Remove everything that was created, the latest namespace first. Raise WorldError with what is left."""
        left = []
        while self._changes:
            _, changes = self._changes.popitem()
            try:
                await changes.restore(lambda line: None)
            except WorldError as error:
                left.append(str(error))
        if left:
            left.append(f"fix: lastcall cleanup --context {self._cluster.context}")
            raise WorldError("\n".join(left))

    # -- before anything is changed -----------------------------------------------------------------------------------

    async def check_apply(self, found: Sequence[Object], namespace: str) -> None:
        await check_alone(self.client, self._cluster.context, namespace)
        manifests = [await self._manifest(obj, namespace) for obj in found]
        refused = [f"{_what(each)}: {why}" for each in manifests if (why := _why_not(each, namespace))]
        for each in manifests if not refused else ():
            named = Named(each.resource, namespace, name_of(each.obj))
            there = await self.get(named)
            if there is not None and not self._is_own(there):
                refused.append(f"{named} exists, and lastcall changes only what it has created: give it another name")
        if not refused:
            refused = overlaps(manifests, await self._around(manifests, namespace))
        if refused:
            raise UserError("\n".join([f"apply on {self._cluster.where}: nothing was created", *refused]))

    def check_delete(self, named: Named, obj: Object) -> None:
        if self._is_own(obj) or (named.resource == PODS and controller_of(obj)):
            return
        raise UserError(
            f"delete on {self._cluster.where}: {named} was not created by this program, and nothing would put it back\n"
            f"fix: apply a copy of it under another name and delete that; or kubectl --context {self._cluster.context} "
            f"-n {named.namespace} delete {named.resource.kind.lower()}/{named.name}"
        )

    async def ensure_namespace(self, name: str) -> None:
        """Raise UserError if it does not exist: a namespace would be more than the ledger in it can remove."""
        missing = f"{self._cluster.where} has no namespace {name}"
        await check_exists(self.client, self._cluster.context, name, missing)

    async def _manifest(self, obj: Object, namespace: str) -> Manifest:
        name = obj["metadata"].get("name") or "generated"
        named = await self.find({**obj, "metadata": {**obj["metadata"], "name": name}}, namespace)
        return Manifest(with_namespace(obj, named.resource, namespace), named.resource, Place("", Document(obj, 1, 1)))

    def _is_own(self, obj: Object) -> bool:
        return labels_of(obj).get(LABEL) in {each.id for each in self._changes.values() if each.id}

    async def _around(self, manifests: Sequence[Manifest], namespace: str) -> dict[Resource, Sequence[Object]]:
        """Return what others have in the namespace, of the kinds that could affect the Pods of the manifests."""
        found, unknown = await objects_around(self.client, manifests, namespace)
        if unknown:
            self._warn(
                f"{self._cluster.where}: whether {', '.join(unknown)} of namespace {namespace} affect the new Pods is "
                "unknown: you have no permission to read them"
            )
        return {resource: [each for each in there if not self._is_own(each)] for resource, there in found.items()}

    # -- the requests -------------------------------------------------------------------------------------------------

    async def _write(self, named: Named, obj: Object) -> Object:
        there = await self.get(named)
        changes = self._changes_in(named.namespace)
        if there is not None and self._is_own(there):
            await self._hand_over(named, there)
            return await self._apply(named, labelled(obj, changes.id, named.namespace))
        changes.gone_seconds = max(changes.gone_seconds, GONE_SECONDS + _grace_of(obj))
        return await changes.create(named.resource, obj)

    async def _hand_over(self, named: Named, there: Object) -> None:
        """Make the fields of the creation those of an apply, so that the next one removes what it leaves out.

        (client-go util/csaupgrade)
        """
        meta = there["metadata"]
        patch: list[Object] = [{"op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]}]
        for number, each in enumerate(meta.get("managedFields") or ()):
            if (each.get("manager"), each.get("operation"), each.get("subresource", "")) == (AGENT, "Update", ""):
                entry = {**each, "manager": FIELD_MANAGER, "operation": "Apply"}
                patch.append({"op": "replace", "path": f"/metadata/managedFields/{number}", "value": entry})
        if len(patch) > 1:
            await self.client.patch(named.resource, named.name, patch, named.namespace, content_type=JSON_PATCH)

    def _changes_in(self, namespace: str) -> Changes:
        client = PatientClient(self.client, self.clock)
        return self._changes.setdefault(namespace, Changes(client, namespace, self._world))

    async def declared(self) -> list[Resource]:
        """Return nothing: a cluster of others may have hundreds of kinds."""
        return []

    async def _learn(self) -> None:
        """Learn the kinds by discovery, which every user may ask."""
        kinds = [each.resource for each in (await discover(self.client.request)).kinds if each.preferred]
        self._custom = [Resource(k.group, k.version, k.plural, k.kind, k.namespaced) for k in kinds]


def _what(manifest: Manifest) -> str:
    return f"{manifest.resource.kind} {manifest.obj['metadata'].get('name') or ''}".strip()


def _why_not(manifest: Manifest, namespace: str) -> str:
    if why := refusal(namespace, manifest):
        return why
    if manifest.resource not in KINDS:
        return f"lastcall removes only what it knows: {', '.join(each.kind for each in KINDS)}"
    return ""


def _grace_of(obj: Object) -> float:
    spec = obj.get("spec") or {}
    pod = (spec.get("template") or {}).get("spec") or spec
    return float(pod.get("terminationGracePeriodSeconds") or GRACE_SECONDS)
