"""Creates the objects of the manifests, as `kubectl create` would."""

from collections.abc import Sequence

from lastcall.errors import UserError, WorldError
from lastcall.kube.api import NAMESPACES, Object, Resource, StatusError, is_already_exists, name_of, namespace_of
from lastcall.kube.client import Client
from lastcall.manifests.read import Manifest, missing_namespaces
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

ACCOUNT_SECONDS = 10.0
"""How long a new namespace may take to get its ServiceAccount `default`, which its Pods need."""

_RETRY_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Applied:
    """An object as the API server answered it."""

    resource: Resource
    obj: Object


async def apply_manifests(
    client: Client, clock: Clock, manifests: Sequence[Manifest]
) -> tuple[list[Applied], list[str]]:
    """Create everything in order: what was created, and notes for the user.

    Raises UserError when the API server refuses an object, WorldError when it cannot.
    """
    notes = []
    for name in missing_namespaces(manifests):
        await _create_namespace(client, name)
        notes.append(f"namespace {name} created: the manifests use it and do not define it")
    applied = [Applied(manifest.resource, await _create(client, clock, manifest)) for manifest in manifests]
    return applied, notes


async def _create_namespace(client: Client, name: str) -> None:
    try:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    except StatusError as error:
        if not is_already_exists(error):
            raise UserError(f"namespace {name!r}: {error.message}") from error


async def _create(client: Client, clock: Clock, manifest: Manifest) -> Object:
    resource, obj = manifest.resource, manifest.obj
    deadline = clock.monotonic_ns() + int(ACCOUNT_SECONDS * 1e9)
    while True:
        try:
            return await client.create(resource, obj, namespace_of(obj) if resource.namespaced else "")
        except StatusError as error:
            if is_already_exists(error) and resource == NAMESPACES:
                return await client.get(NAMESPACES, name_of(obj))
            # The namespace's ServiceAccount is made by a controller, a moment after the namespace.
            if not (_lacks_account(error) and clock.monotonic_ns() < deadline):
                raise _refused(manifest, error) from error
        await clock.sleep(_RETRY_SECONDS)


def _lacks_account(error: StatusError) -> bool:
    return error.code == 403 and "serviceaccount" in error.message and "not found" in error.message


def _refused(manifest: Manifest, error: StatusError) -> UserError | WorldError:
    """One line for each cause that the Status names, with its place; the message where it names none."""
    what = f"{manifest.resource.kind} {name_of(manifest.obj)}".strip()
    if error.code >= 500 or error.code == 429:
        return WorldError(f"{manifest.place.at()}: {what}: the API server cannot create it: {error.message}")
    causes = (error.status.get("details") or {}).get("causes") or []
    if not causes or error.reason == "Forbidden":
        return UserError(f"{manifest.place.at()}: {what}: {error.message}")
    lines = [
        f"{manifest.place.at(cause.get('field', ''))}: {what}: {cause.get('field')}: {cause.get('message')}"
        for cause in causes
    ]
    return UserError("\n".join(lines))
