"""Answer an external load balancer whether this node has endpoints of a Service (healthCheckNodePort).

Source: pkg/proxy/healthcheck/service_health.go. Ready endpoints count, terminating ones do not, though they may still
get traffic: so the balancer leaves a node before the last of its connections has ended.
"""

import json
import logging
from collections.abc import Mapping
from typing import Protocol

from lastcall.kube.proxy.services import ServiceKey
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass

MOST_CONNECTIONS = 100
"""Of a Service; above that a new one takes the place of a silent or an idle one."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServiceHealth:
    """`port` is healthCheckNodePort; `endpoints` how many ready ones are on this node."""

    port: int
    endpoints: int


def answer(service: ServiceKey, endpoints: int, proxy_is_healthy: bool = True) -> tuple[int, dict[str, str], str]:
    """Return status code, headers and body, whatever path is asked for."""
    namespace, name = service
    body = {
        "service": {"namespace": namespace, "name": name},
        "localEndpoints": endpoints,
        "serviceProxyHealthy": proxy_is_healthy,
    }
    headers = {
        "Content-Type": "application/json",
        "X-Content-Type-Options": "nosniff",
        "X-Load-Balancing-Endpoint-Weight": str(endpoints),
    }
    return 200 if endpoints and proxy_is_healthy else 503, headers, json.dumps(body, indent=1)


class HealthServers(Protocol):
    async def update(self, services: Mapping[ServiceKey, ServiceHealth]) -> None:
        """Serve health checks for these Services, and no others."""
        ...


class HTTPHealthServers:
    """One listening port for each Service that asks for it, on the node's addresses."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self._addresses = addresses
        self._wanted: dict[ServiceKey, ServiceHealth] = {}
        self._running: dict[ServiceKey, tuple[int, object]] = {}

    async def update(self, services: Mapping[ServiceKey, ServiceHealth]) -> None:
        self._wanted = dict(services)
        for key, (port, runner) in list(self._running.items()):
            if key not in services or services[key].port != port:
                del self._running[key]
                await runner.cleanup()  # type: ignore[attr-defined]
        for key, health in services.items():
            if key not in self._running:
                with crash_guard.Turn("service proxy health", "/".join(key)):
                    await self._start(key, health.port)

    async def _start(self, key: ServiceKey, port: int) -> None:
        # late: 32 ms of a node's start
        from aiohttp import web

        from lastcall.world.aiohttp_inside.bounded import BoundedServer

        async def handle(request: web.BaseRequest) -> web.Response:
            health = self._wanted.get(key)
            status, headers, body = answer(key, health.endpoints if health else 0)
            return web.Response(status=status, headers=headers, text=body)

        runner = web.ServerRunner(BoundedServer(handle, most=MOST_CONNECTIONS, access_log=None))
        await runner.setup()
        try:
            for address in self._addresses:
                await web.TCPSite(runner, address, port).start()
        except OSError as error:
            # As kube-proxy, which sends an Event and goes on: a later sync tries again.
            _log.warning("healthCheckNodePort %d of %s/%s: %s", port, *key, error)
            await runner.cleanup()
            return
        self._running[key] = (port, runner)

    async def close(self) -> None:
        await self.update({})
