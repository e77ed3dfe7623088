"""`/metrics` of the API server. Controllers and scheduler run in its process, so theirs are in its
answer, as in other Kubernetes that is one process.

Source: apiserver pkg/server/routes/metrics.go.
"""

from collections.abc import Mapping
from itertools import chain

from lastcall.kube.api.features.releases import RELEASES
from lastcall.kube.api.metrics.build import build_families
from lastcall.kube.api.metrics.text import CONTENT_TYPE, exposition
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.paths.metrics.families import request_families, storage_families
from lastcall.kube.apiserver.paths.metrics.requests import RequestCounts
from lastcall.kube.apiserver.registry.generic import GenericStore
from lastcall.world.aiohttp_inside import server as web
from lastcall.world.process_numbers import process_families, start_time
from lastcall.world.world import World


async def metrics(
    world: World, counts: RequestCounts, kinds: Mapping[Resource, GenericStore], version: str
) -> web.Response:
    """Answer with everything that this process counts."""
    objects = []
    for resource, kind in kinds.items():
        entries, _, more = await kind.shared.store.list(kind.prefix, limit=1)
        objects.append((resource, len(entries) + more))
    families = chain(
        request_families(counts),
        storage_families(objects),
        build_families(RELEASES[version]),
        process_families(world.clock),
        world.counted.families(),
    )
    headers = {
        "Content-Type": CONTENT_TYPE,
        "Cache-Control": "no-cache, private",
        "Process-Start-Time-Unix": str(int(start_time(world.clock))),
    }
    return web.Response(body=exposition(families).encode(), headers=headers)
