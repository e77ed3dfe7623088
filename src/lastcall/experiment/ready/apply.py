"""Server-side apply of a list of objects, and the wait until all of it is ready."""

import asyncio
from collections.abc import Sequence

from lastcall.errors import NotReady
from lastcall.experiment.ready import wait as ready
from lastcall.experiment.ready.condition import parse_condition
from lastcall.experiment.ready.objects import ObjectList, Objects
from lastcall.experiment.ready.readiness import is_waited_for
from lastcall.kube.api import Object, name_of
from lastcall.manifests.applying import Named, Reference

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


async def wait_for(objects: Objects, named: Named, words: str, timeout: float) -> None:
    """Return when an object is as the words of kubectl wait say. Raises UserError, NotReady."""
    missing_of = parse_condition(words)
    try:
        async with asyncio.timeout(timeout):
            await objects.wait(named, lambda obj: not missing_of(obj))
    except TimeoutError:
        if not (missing := missing_of(await objects.get(named))):
            return
        head = f"timed out after {timeout:g} s (timeout) waiting for {named}, {words}: {missing}"
        raise NotReady("\n".join([head, *await ready.story_lines(objects, named)])) from None
