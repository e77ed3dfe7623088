"""ControllerRevisions: the templates that a StatefulSet or DaemonSet has had, as patches to go back to.

Source: pkg/controller/history/controller_history.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_already_exists, is_not_found
from lastcall.kube.api.meta import Object, copy_object, labels_of, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import CONTROLLERREVISIONS, Resource
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.deployment.revisions import template_hash
from lastcall.kube.controllers.ownership import controller_reference

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.workloads import ControllerRevision, DaemonSet, StatefulSet

    Owner = StatefulSet | DaemonSet

REVISION_LABEL = "controller-revision-hash"
HASH_LABEL = "controller.kubernetes.io/hash"


def revision_data(owner: Owner) -> Object:
    """Return the strategic merge patch in a revision, which restores the template, keys in order as Go writes them.

    Clients compare it byte by byte (`daemon.Match`). (`getPatch`)
    """
    return {"spec": {"template": _in_order({**owner["spec"]["template"], "$patch": "replace"})}}


def _in_order(value: object) -> object:
    """A copy."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def with_revision(owner: StatefulSet, revision: ControllerRevision) -> StatefulSet:
    """Return the owner as it was at `revision`. (`ApplyRevision`)"""
    template = copy_object(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return {**owner, "spec": {**owner["spec"], "template": template}}


def by_revision(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Sort oldest first. (`SortControllerRevisions`)"""
    return sorted(revisions, key=lambda each: (each["revision"], each["metadata"]["creationTimestamp"], name_of(each)))


def new_revision(
    owner: Owner,
    resource: Resource,
    number: int,
    collisions: int | None,
    labels: dict[str, str],
    hash_label: str = HASH_LABEL,
) -> ControllerRevision:
    """Make a ControllerRevision that is not stored yet, named after the hash of its data (label `hash_label`)."""
    data = revision_data(owner)
    value = template_hash(data, collisions)
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{name_of(owner)}-{value}",
            "namespace": namespace_of(owner),
            "labels": {**labels, hash_label: value},
            "ownerReferences": [controller_reference(owner, resource)],
        },
        "data": data,
        "revision": number,
    }


def equal(one: ControllerRevision, other: ControllerRevision) -> bool:
    return bool(one["data"] == other["data"])


def next_number(revisions: Sequence[ControllerRevision]) -> int:
    """Return the number of the next revision; `revisions` oldest first."""
    return int(revisions[-1]["revision"]) + 1 if revisions else 1


class RevisionWriter:
    """Stores revisions for one kind of owner."""

    def __init__(self, client: Client, resource: Resource, hash_label: str = HASH_LABEL) -> None:
        self._client = client
        self._resource = resource
        self._hash_label = hash_label

    async def current(
        self, owner: Owner, revisions: Sequence[ControllerRevision], collisions: int | None, labels: dict[str, str]
    ) -> tuple[ControllerRevision, int | None]:
        """Return the revision of the owner's template, made or renumbered as needed, and the collision count.

        `revisions` are all of the owner, oldest first. Raises StatusError.
        """
        wanted = new_revision(owner, self._resource, next_number(revisions), collisions, labels, self._hash_label)
        equals = [each for each in revisions if equal(each, wanted)]
        if equals and equals[-1] is revisions[-1]:
            return revisions[-1], collisions
        if equals:
            # An earlier template is wanted again: its revision becomes the latest.
            again = copy_object(equals[-1])
            again["revision"] = wanted["revision"]
            stored = await self._client.update(CONTROLLERREVISIONS, again, namespace_of(owner))
            return cast("ControllerRevision", stored), collisions
        return await self._create(owner, wanted, collisions, labels)

    async def _create(
        self, owner: Owner, wanted: ControllerRevision, collisions: int | None, labels: dict[str, str]
    ) -> tuple[ControllerRevision, int | None]:
        """(`CreateControllerRevision`): a name that is taken by something else asks for another one."""
        while True:
            try:
                stored = await self._client.create(CONTROLLERREVISIONS, wanted, namespace_of(owner))
                return cast("ControllerRevision", stored), collisions
            except StatusError as error:
                if not is_already_exists(error):
                    raise
            there = cast(
                "ControllerRevision", await self._client.get(CONTROLLERREVISIONS, name_of(wanted), namespace_of(owner))
            )
            if equal(there, wanted):
                return there, collisions
            collisions = (collisions or 0) + 1
            wanted = new_revision(owner, self._resource, wanted["revision"], collisions, labels, self._hash_label)

    async def truncate(self, revisions: Sequence[ControllerRevision], live: Iterable[str], limit: int) -> None:
        """Delete the oldest of those that are not `live` (names) beyond `limit`. (`truncateHistory`)"""
        kept = set(live)
        dead = [each for each in revisions if name_of(each) not in kept]
        for each in dead[: max(0, len(dead) - limit)]:
            try:
                await self._client.delete(CONTROLLERREVISIONS, name_of(each), namespace_of(each), uid=uid_of(each))
            except StatusError as error:
                if not is_not_found(error):
                    raise


def revision_of_pod(pod: Pod) -> str:
    return labels_of(pod).get(REVISION_LABEL, "")
