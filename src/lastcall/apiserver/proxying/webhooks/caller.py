"""The call of an admission webhook: HTTPS, with the CA and the name that the configuration says.

Each call has a connection of its own. A Service is reached through its ready endpoints: the control plane has no
service proxy. Sources: apiserver pkg/util/webhook/client.go, webhook.go.
"""

import asyncio
import base64
import binascii
import ssl
from collections.abc import Awaitable, Callable
from socket import socket

from yarl import URL

from lastcall.api.field import go_quote
from lastcall.api.meta import Object
from lastcall.api.resources import ENDPOINTSLICES, SERVICES
from lastcall.apiserver.admission.reader import Reader
from lastcall.apiserver.proxying.aggregation.availability import endpoints_of, port_name
from lastcall.apiserver.proxying.upstream import Dial, DialError, tls_words
from lastcall.apiserver.proxying.webhooks.matching import Webhook
from lastcall.apiserver.proxying.webhooks.review import CallFailed, body_of
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.aiohttp_inside.connector import DialledConnector
from lastcall.world.world import World

LONGEST_ANSWER = 16 << 20
"""Bytes: a patch may be as big as an object, and base64 makes it bigger."""
_HEADERS = {
    "User-Agent": "kube-apiserver-admission",
    "Accept": "application/json, */*",
    "Content-Type": "application/json",
}


class Caller:
    """`reader` finds Services and their endpoints; `dial` reaches addresses."""

    def __init__(self, world: World, reader: Reader, dial: Dial) -> None:
        self._world, self._reader, self._dial = world, reader, dial

    async def call(self, webhook: Webhook, body: bytes) -> bytes:
        """The answer's body. Raises CallFailed."""
        client = webhook.spec.get("clientConfig") or {}
        seconds = webhook.spec.get("timeoutSeconds") or 10
        where = _url(client, seconds)
        url = URL(where, encoded=True)
        try:
            async with (
                asyncio.timeout(seconds),
                aiohttp.ClientSession(
                    connector=_Connector(self._dialler(client), _context(client)),
                    timeout=aiohttp.ClientTimeout(total=None),
                    cookie_jar=aiohttp.DummyCookieJar(),
                ) as session,
                session.post(url, data=body, headers=_HEADERS, allow_redirects=False) as answer,
            ):
                found = await answer.content.read(LONGEST_ANSWER)
                while len(found) <= LONGEST_ANSWER and (more := await answer.content.read(LONGEST_ANSWER)):
                    found += more
                if len(found) > LONGEST_ANSWER:
                    raise CallFailed(f"the answer is longer than {LONGEST_ANSWER} bytes")
                status, content_type = answer.status, answer.headers.get("Content-Type", "")
        except TimeoutError:
            raise CallFailed(f"Post {go_quote(where)}: context deadline exceeded") from None
        except aiohttp.ServerDisconnectedError:
            raise CallFailed(f"Post {go_quote(where)}: EOF") from None
        except (DialError, aiohttp.ClientError, OSError, ValueError) as error:
            raise CallFailed(f"Post {go_quote(where)}: {error or type(error).__name__}") from None
        return body_of(status, content_type, found)

    def _dialler(self, client: Object) -> "Callable[[URL], Awaitable[socket]]":
        if (service := client.get("service")) is not None:
            return lambda url: self._to_endpoint(service)
        return lambda url: self._dial(url.host or "", url.port or 443)

    async def _to_endpoint(self, service: Object) -> socket:
        """Raises DialError."""
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
        address, number = ready[self._world.random.randrange(len(ready))]
        return await self._dial(address, number)


class _Connector(DialledConnector):
    def __init__(self, dial: "Callable[[URL], Awaitable[socket]]", context: ssl.SSLContext) -> None:
        super().__init__(force_close=True, limit=0)
        self._dial, self._context = dial, context

    async def dial(self, url: URL) -> tuple[socket, ssl.SSLContext | None]:
        return await self._dial(url), self._context

    def tls_failed(self, error: ssl.SSLError) -> Exception:
        return DialError(_words(error))


def _words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        told = "certificate signed by unknown authority"
        if "mismatch" in error.verify_message or "expired" in error.verify_message:
            told = error.verify_message
        return f"tls: failed to verify certificate: x509: {told}"
    return tls_words(error)


def _url(client: Object, seconds: int) -> str:
    if (service := client.get("service")) is not None:
        host = f"{service.get('name')}.{service.get('namespace')}.svc"
        where = f"https://{host}:{service.get('port') or 443}{service.get('path') or '/'}"
    else:
        where = client.get("url") or ""
    return f"{where}?timeout={seconds}s"


def _context(client: Object) -> ssl.SSLContext:
    """Raises CallFailed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bundle = client.get("caBundle")
    if not bundle:
        context.load_default_certs()
        return context
    try:
        context.load_verify_locations(cadata=base64.b64decode(bundle).decode())
    except (ValueError, binascii.Error, ssl.SSLError):
        raise CallFailed("unable to load root certificates: unable to parse bytes as PEM block") from None
    return context
