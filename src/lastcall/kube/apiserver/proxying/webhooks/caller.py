"""The call of an admission webhook: HTTPS, with the CA and the name that the configuration says.

A connection is used again, by those that trust the same authorities. A Service is reached through its ready endpoints:
the control plane has no service proxy. Sources: apiserver pkg/util/webhook/client.go, webhook.go; client-go
transport/cache.go, net/http Transport.
"""

import asyncio
import base64
import binascii
import ssl
from functools import lru_cache
from socket import socket

from yarl import URL

from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import ENDPOINTSLICES, SERVICES
from lastcall.kube.apiserver.admission.reader import Reader
from lastcall.kube.apiserver.proxying.aggregation.availability import endpoints_of, port_name
from lastcall.kube.apiserver.proxying.upstream import tls_words
from lastcall.kube.apiserver.proxying.webhooks.review import CallFailed, body_of
from lastcall.kube.streaming.dialing import Dial, DialError
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.aiohttp_inside.connector import KeptConnections
from lastcall.world.world import World

LONGEST_ANSWER = 16 << 20
"""Bytes: a patch may be as big as an object, and base64 makes it bigger."""
IDLE_SECONDS = 90.0
"""How long an idle connection is kept. (`http.DefaultTransport`)"""
_HEADERS = {
    "User-Agent": "kube-apiserver-admission",
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
}


class Caller:
    """`reader` finds Services and their endpoints; `dial` reaches addresses."""

    def __init__(self, world: World, reader: Reader, dial: Dial) -> None:
        self._world, self._reader, self._dial = world, reader, dial
        self._connector: _Connector | None = None
        self._session: aiohttp.ClientSession | None = None

    async def call(self, spec: Object, body: bytes) -> bytes:
        """Return what the webhook of this `clientConfig` and `timeoutSeconds` answers. Raises CallFailed."""
        client = spec.get("clientConfig") or {}
        seconds = spec.get("timeoutSeconds") or 10
        where = _url(client, seconds)
        context = _context(client.get("caBundle") or "", _host(client.get("service")))
        try:
            async with asyncio.timeout(seconds):
                status, content_type, found = await self._post(client, where, context, body)
        except TimeoutError:
            raise CallFailed(f"Post {go_quote(where)}: context deadline exceeded") from None
        except aiohttp.ServerDisconnectedError:
            raise CallFailed(f"Post {go_quote(where)}: EOF") from None
        except (DialError, aiohttp.ClientError, OSError, ValueError) as error:
            raise CallFailed(f"Post {go_quote(where)}: {error or type(error).__name__}") from None
        return body_of(status, content_type, found)

    async def close(self) -> None:
        """End the connections that are kept."""
        session, self._session, self._connector = self._session, None, None
        if session is not None:
            await session.close()

    async def _post(self, client: Object, where: str, context: ssl.SSLContext, body: bytes) -> tuple[int, str, bytes]:
        """(status, content type, body) of the answer. Raises CallFailed, DialError, aiohttp.ClientError, OSError."""
        service = client.get("service")
        url, headers, name = URL(where, encoded=True), _HEADERS, None
        if service is not None:
            # A connection is kept for an endpoint, and used for as long as that is ready.
            name, headers = url.host, {**_HEADERS, "Host": where.split("/", 3)[2]}
            address, port = await self._endpoint(service)
            url = url.with_host(address).with_port(port)
        if self._session is None or self._connector is None:
            self._connector = _Connector(self._dial)
            self._session = aiohttp.ClientSession(
                connector=self._connector,
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        while True:
            try:
                async with self._session.post(
                    url, data=body, headers=headers, allow_redirects=False, ssl=context, server_hostname=name
                ) as answer:
                    found = await answer.content.read(LONGEST_ANSWER)
                    while len(found) <= LONGEST_ANSWER and (more := await answer.content.read(LONGEST_ANSWER)):
                        found += more
                    if len(found) > LONGEST_ANSWER:
                        raise CallFailed(f"the answer is longer than {LONGEST_ANSWER} bytes")
                    return answer.status, answer.headers.get("Content-Type", ""), found
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not self._connector.reused:
                    raise
                # It was kept for longer than its other end keeps one: the next is another one.

    async def _endpoint(self, service: Object) -> tuple[str, int]:
        """A ready one of the Service. Raises DialError."""
        namespace, name, port = service.get("namespace") or "", service.get("name") or "", service.get("port") or 443
        found = await self._reader.get(SERVICES, namespace, name)
        if found is None:
            raise DialError(f"service {go_quote(name)} not found")
        asked = port_name(found, port)
        if asked is None:
            raise DialError(f"no service port {port} found for service {go_quote(name)}")
        slices = [
            each
            for each in await self._reader.list(ENDPOINTSLICES, namespace)
            if (each["metadata"].get("labels") or {}).get("kubernetes.io/service-name") == name
        ]
        ready = endpoints_of(slices, asked)
        if not ready:
            address = (found.get("spec") or {}).get("clusterIP") or ""
            raise DialError(f"dial tcp {address}:{port}: connect: connection refused")
        return ready[self._world.random.randrange(len(ready))]


class _Connector(KeptConnections):
    def __init__(self, dial: Dial) -> None:
        super().__init__(IDLE_SECONDS)
        self._dial = dial

    async def dial(self, url: URL) -> tuple[socket, ssl.SSLContext | None]:
        return await self._dial(url.host or "", url.port or 443), None

    def tls_failed(self, error: ssl.SSLError) -> Exception:
        return DialError(_words(error))


def _words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = "certificate signed by unknown authority"
        if "mismatch" in error.verify_message or "expired" in error.verify_message:
            why = error.verify_message
        return f"tls: failed to verify certificate: x509: {why}"
    return tls_words(error)


def _host(service: Object | None) -> str:
    """By which name a Service's certificate is verified; "" without one."""
    return "" if service is None else f"{service.get('name')}.{service.get('namespace')}.svc"


def _url(client: Object, seconds: int) -> str:
    if (service := client.get("service")) is not None:
        where = f"https://{_host(service)}:{service.get('port') or 443}{service.get('path') or '/'}"
    else:
        where = client.get("url") or ""
    return f"{where}?timeout={seconds}s"


@lru_cache(maxsize=64)
def _context(bundle: str, name: str) -> ssl.SSLContext:
    """That trusts the authorities of a caBundle, without one the machine's. Raises CallFailed.

    Connections are kept by it: so each Service, `name`, has its own, and no connection that was verified for another.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not bundle:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=base64.b64decode(bundle).decode())
    except (ValueError, binascii.Error, ssl.SSLError):
        raise CallFailed("unable to load root certificates: unable to parse bytes as PEM block") from None
    return context
