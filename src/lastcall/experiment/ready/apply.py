"""Server-side apply of a list of objects, and the wait until all of it is ready."""

from collections.abc import Sequence

from lastcall.experiment.ready import wait as ready
from lastcall.experiment.ready.objects import ObjectList, Objects
from lastcall.experiment.ready.readiness import is_waited_for
from lastcall.kube.api import Object, name_of
from lastcall.manifests.applying import Reference

__tracebackhide__ = True  # pytest shows the caller's line


async def apply(objects: Objects, found: Sequence[Object], namespace: str, timeout: float) -> ObjectList:
    """Return what the server answered. Create namespaces that are used and not defined, and wait for definitions.

    Raises InvalidManifest for what the server refuses, NotReady for a definition that is not served after `timeout`
    seconds, UserError for what may not be changed in an existing cluster.
    """
    applied: ObjectList = []
    await objects.check_apply(found, namespace)
    defined = {name_of(obj) for obj in found if obj["kind"] == "Namespace"}
    used = {(obj.get("metadata") or {}).get("namespace") or namespace for obj in found}
    for name in sorted(used - defined):
        await objects.ensure_namespace(name)
    for obj in found:
        applied.append(await objects.apply(obj, namespace))
        if obj["kind"] == "CustomResourceDefinition":
            await ready.wait_ready(objects, [await objects.find(applied[-1], namespace)], timeout)
    return applied


async def wait_ready(objects: Objects, applied: Sequence[Reference], namespace: str, timeout: float) -> None:
    """Return when all of them are ready, of those that become so. Raises NotReady."""
    named = [await objects.find(each, namespace) for each in applied]
    several = len(named) > 1
    await ready.wait_ready(objects, [n for n in named if not several or is_waited_for(n.resource)], timeout)
