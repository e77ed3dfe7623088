"""A client of one repository of a registry, for one pull (OCI distribution spec, Docker Registry v2).

A registry is hostile: every answer has a size limit, redirects go to https only and without our credentials, and plain
http is spoken with loopback registries alone. Error texts are containerd's, because they end up in Events.
"""

# check: allow asyncio.to_thread because reading the machine's certificates takes 20 ms

import asyncio
import email.utils
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

from yarl import URL

from lastcall._version import __version__
from lastcall.kube.api.field import go_quote
from lastcall.kube.cri.api import AuthConfig
from lastcall.kube.cri.sandbox.images.layout import MAX_DOCUMENT
from lastcall.kube.cri.sandbox.images.reference import DEFAULT_DOMAIN, Reference
from lastcall.kube.cri.sandbox.images.registry_auth import Challenge, basic, parse_challenges, read_token
from lastcall.kube.cri.sandbox.images.way_out import DialError, WayOut
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.aiohttp_inside.connector import DialledConnector
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

MANIFEST_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
STALL_SECONDS = 60.0
"""A registry that sends nothing for so long is given up (kubelet's image pull progress deadline)."""
RETRIES = 3
MAX_RETRY_AFTER = 30.0
_MAX_REDIRECTS = 5
_MAX_TOKEN = 256 * 1024
_CHUNK = 256 * 1024
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)
_CERTIFICATES = Path("/etc/docker/certs.d")


class RegistryError(Exception):
    """The registry cannot be reached, refuses, or answers nonsense. `status` is the HTTP status, 0 for none.

    `transient`: the same may work a little later.
    """

    def __init__(self, message: str, status: int = 0, *, transient: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.transient = transient


@dataclass(frozen=True, slots=True)
class Resolved:
    """A manifest the registry has. `digest` is "" when only a GET has it."""

    digest: str
    media_type: str


class Registry:
    """`async with Registry(...) as registry`."""

    def __init__(
        self,
        reference: Reference,
        way_out: WayOut,
        clock: Clock,
        auth: AuthConfig | None = None,
        *,
        stall_seconds: float = STALL_SECONDS,
    ) -> None:
        self._reference = reference
        self._way_out = way_out
        self._clock = clock
        self._auth = auth
        self._authorization = ""
        if auth is not None and auth.registry_token:
            self._authorization = f"Bearer {auth.registry_token}"
        self._base = base_url(reference.domain)
        self._loopback = is_loopback(self._base)
        self._authorising = asyncio.Lock()
        self._timeout = aiohttp.ClientTimeout(total=None, sock_read=stall_seconds)

    async def __aenter__(self) -> "Registry":
        context: ssl.SSLContext | None = None
        if self._base.scheme == "https":
            context = await asyncio.to_thread(_tls_context, self._reference.domain)
        self._session = aiohttp.ClientSession(
            connector=_Connector(self._way_out, context),
            timeout=self._timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": f"lastcall/{__version__}", "Accept-Encoding": "identity"},
            max_line_size=32 * 1024,
            max_field_size=32 * 1024,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    # -- what a pull asks --------------------------------------------------------------------------------------------

    async def resolve(self) -> Resolved:
        """Return what the reference's tag or digest names now. Raises RegistryError."""
        url = self._url(f"manifests/{self._reference.digest or self._reference.tag}")
        response = await self._answer("HEAD", url, {"Accept": ", ".join(MANIFEST_TYPES)})
        with _closing(response):
            if response.status == 404:
                raise RegistryError(f"{self._reference}: not found", 404)
            if response.status in (400, 405, 501):
                return Resolved("", "")  # some registries know no HEAD
            self._expect(response, 200)
            return Resolved(response.headers.get("Docker-Content-Digest", ""), response.content_type)

    async def manifest(self, name: str) -> tuple[bytes, str]:
        """Fetch a manifest (`name` is a tag or digest): its bytes, not verified, and its media type.

        Raises RegistryError.
        """
        response = await self._answer("GET", self._url(f"manifests/{name}"), {"Accept": ", ".join(MANIFEST_TYPES)})
        with _closing(response):
            if response.status == 404:
                raise RegistryError(f"{self._reference}: not found", 404)
            self._expect(response, 200)
            return await _read(response, MAX_DOCUMENT, f"manifest {name}"), response.content_type

    @asynccontextmanager
    async def blob(self, digest: str, offset: int) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Fetch a blob from `offset` on: (where it really begins, the bytes). Raises RegistryError, also midway."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        response = await self._answer("GET", self._url(f"blobs/{digest}"), headers)
        if response.status == 416 and offset:
            response.close()
            offset = 0
            response = await self._answer("GET", self._url(f"blobs/{digest}"), {})
        try:
            if response.status == 206 and offset:
                said = response.headers.get("Content-Range", "")
                if not said.startswith(f"bytes {offset}-"):
                    raise RegistryError(f"blob {digest}: asked for bytes from {offset}, got Content-Range {said!r}")
                yield offset, self._chunks(response, digest)
            else:
                self._expect(response, 200)
                yield 0, self._chunks(response, digest)
        finally:
            response.close()

    async def _chunks(self, response: aiohttp.ClientResponse, digest: str) -> AsyncIterator[bytes]:
        try:
            async for chunk in response.content.iter_chunked(_CHUNK):
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            why = "i/o timeout" if isinstance(error, TimeoutError) else "unexpected EOF"
            raise RegistryError(f"blob {digest}: {why}", transient=True) from error

    # -- requests ----------------------------------------------------------------------------------------------------

    def _url(self, path: str) -> URL:
        return self._base.with_path(f"/v2/{self._reference.path}/{path}")

    def _expect(self, response: aiohttp.ClientResponse, status: int) -> None:
        if response.status != status:
            raise self._unexpected(response)

    @staticmethod
    def _unexpected(response: aiohttp.ClientResponse) -> RegistryError:
        return RegistryError(
            f"unexpected status from {response.method} request to {_shown(response.url)}: {_status(response.status)}",
            response.status,
            transient=response.status in _TRANSIENT,
        )

    async def _answer(self, method: str, url: URL, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """The answer, whatever its status, after redirects, authorisation and retries. Raises RegistryError."""
        attempt = 0
        while True:
            wait = 0.5 * 2**attempt
            try:
                response = await self._authorised(method, url, headers)
                if response.status not in _TRANSIENT:
                    return response
                error = self._unexpected(response)
                wait = max(wait, _retry_after(response, self._clock))
                response.close()
            except RegistryError as caught:
                error = caught
            if not error.transient or attempt >= RETRIES:
                raise error
            attempt += 1
            await self._clock.sleep(wait)

    async def _authorised(self, method: str, url: URL, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Send it; when the registry wants to know who we are, tell it and send it again, once."""
        refused = False
        while True:
            used = self._authorization
            response = await self._redirected(method, url, headers)
            if response.status != 401 or response.url.origin() != url.origin():
                return response
            challenges = parse_challenges(response.headers.getall("WWW-Authenticate", []))
            if refused:
                said = next((c.parameters["error"] for c in challenges if c.parameters.get("error")), "")
                why = f"server message: {said}: authorization failed" if said else _status(401)
                response.close()
                text = f"pull access denied, repository does not exist or may require authorization: {why}"
                raise RegistryError(text, 401)
            unexpected = self._unexpected(response)
            response.close()
            async with self._authorising:
                if self._authorization == used:  # nobody else got a token meanwhile
                    self._authorization = await self._authorise(challenges, unexpected)
            refused = True

    async def _redirected(self, method: str, url: URL, headers: dict[str, str]) -> aiohttp.ClientResponse:
        target = url
        for _ in range(_MAX_REDIRECTS + 1):
            own = dict(headers)
            if self._authorization and target.origin() == url.origin():
                own["Authorization"] = self._authorization
            response = await self._once(method, target, own)
            location = response.headers.get("Location")
            if response.status not in (301, 302, 303, 307, 308) or not location:
                return response
            response.close()
            try:
                # As the registry wrote it: these addresses are often signed.
                target = target.join(URL(location, encoded=True)).with_user(None)
                scheme, host = target.scheme, target.host
            except ValueError as error:
                raise RegistryError(f"redirect from {_shown(url)} to {location[:200]!r}: not a URL") from error
            self._allow(target, f"redirect from {_shown(url)} to {scheme}://{host}")
        raise RegistryError(f"{method} {_shown(url)}: stopped after {_MAX_REDIRECTS} redirects")

    def _allow(self, target: URL, what: str) -> None:
        """https to anywhere; a registry on loopback may name loopback too, and nobody else may."""
        if not target.host or target.scheme not in ("http", "https"):
            raise RegistryError(f"{what}: not an http address")
        if is_loopback(target):
            if not self._loopback:
                raise RegistryError(f"{what}: a registry elsewhere must not name this machine's own addresses")
        elif target.scheme != "https":
            raise RegistryError(f"{what}: plain http is spoken with loopback addresses only")

    async def _once(self, method: str, url: URL, headers: dict[str, str], data: Any = None) -> aiohttp.ClientResponse:
        try:
            return await self._session.request(method, url, headers=headers, data=data, allow_redirects=False)
        except DialError as error:
            text = str(error)
        except aiohttp.ServerDisconnectedError:
            raise self._failed(method, url, "EOF", transient=True) from None
        except TimeoutError:
            raise self._failed(method, url, "i/o timeout", transient=False) from None
        except aiohttp.ClientResponseError as error:
            text = f"malformed HTTP response: {error.message}"
        except OSError as error:
            raise self._failed(method, url, (error.strerror or str(error)).lower(), transient=True) from None
        except (aiohttp.ClientError, ValueError) as error:
            text = str(error) or type(error).__name__
        raise self._failed(method, url, text, transient=False)

    @staticmethod
    def _failed(method: str, url: URL, why: str, *, transient: bool) -> RegistryError:
        request = f"{method.capitalize()} {go_quote(_shown(url))}"
        return RegistryError(f"failed to do request: {request}: {why}", transient=transient)

    # -- authorisation -----------------------------------------------------------------------------------------------

    async def _authorise(self, challenges: list[Challenge], unexpected: RegistryError) -> str:
        """The Authorization that answers a 401. Raises RegistryError."""
        auth = self._auth
        bearer = next((c for c in challenges if c.scheme == "bearer" and c.parameters.get("realm")), None)
        if bearer is not None:
            return f"Bearer {await self._token(bearer)}"
        if any(c.scheme == "basic" for c in challenges):
            if auth is None or not auth.username:
                text = "pull access denied, repository does not exist or may require authorization: "
                raise RegistryError(f"{text}authorization failed: no basic auth credentials", 401)
            return basic(auth)
        raise unexpected

    async def _token(self, challenge: Challenge) -> str:
        """Source: distribution spec/auth/token.md, oauth.md."""
        auth = self._auth
        try:
            realm = URL(challenge.parameters["realm"])
        except ValueError as error:
            raise RegistryError("failed to authorize: the registry's token realm is not a URL") from error
        self._allow(realm, f"failed to authorize: token realm {_shown(realm)}")
        scope = challenge.parameters.get("scope") or f"repository:{self._reference.path}:pull"
        fields = {"scope": scope}
        if service := challenge.parameters.get("service"):
            fields["service"] = service
        identity = auth.identity_token if auth is not None else ""
        kind = "oauth token" if auth is not None else "anonymous token"
        try:
            if identity:
                form = {**fields, "grant_type": "refresh_token", "client_id": "lastcall", "refresh_token": identity}
                response = await self._once("POST", realm, {}, form)
            else:
                headers = {"Authorization": basic(auth)} if auth is not None and auth.username else {}
                response = await self._once("GET", realm.update_query(fields), headers)
            with _closing(response):
                self._expect(response, 200)
                return read_token(await _read(response, _MAX_TOKEN, "token"))
        except (RegistryError, ValueError) as error:
            status = error.status if isinstance(error, RegistryError) else 0
            transient = isinstance(error, RegistryError) and error.transient
            text = f"failed to authorize: failed to fetch {kind}: {error}"
            raise RegistryError(text, status, transient=transient) from error


class _Connector(DialledConnector):
    """Connections that the way out dials."""

    def __init__(self, way_out: WayOut, context: ssl.SSLContext | None) -> None:
        super().__init__(limit=8)
        self._way_out = way_out
        self._context = context

    async def dial(self, url: URL) -> tuple[socket.socket, ssl.SSLContext | None]:
        secure = url.scheme == "https"
        if secure and self._context is None:
            self._context = await asyncio.to_thread(_tls_context, url.authority)
        sock = await self._way_out.dial(url.host or "", url.port or 0, tls=secure)  # aiohttp takes no URL without them
        return sock, self._context if secure else None

    def tls_failed(self, error: ssl.SSLError) -> Exception:
        if isinstance(error, ssl.SSLCertVerificationError):
            return DialError(f"tls: failed to verify certificate: {error.verify_message}")
        return DialError(f"tls: {error.reason or error}")


def base_url(domain: str) -> URL:
    """Return where a registry answers: plain http on loopback (except port 443), https anywhere else."""
    if domain == DEFAULT_DOMAIN:
        return URL("https://registry-1.docker.io")
    url = URL(f"https://{domain}")
    return URL(f"http://{domain}") if is_loopback(url) and url.port != 443 else url


def is_loopback(url: URL) -> bool:
    """Return whether a URL's host is this machine by its name alone."""
    host = url.host or ""
    try:
        return ipaddress.ip_address(host).is_loopback or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return host.lower().rstrip(".") == "localhost" or host.lower().rstrip(".").endswith(".localhost")


def _tls_context(domain: str) -> ssl.SSLContext:
    """Return the machine's authorities, and those that docker has for this registry (/etc/docker/certs.d)."""
    context = ssl.create_default_context()
    with suppress(OSError):
        for path in sorted((_CERTIFICATES / domain).glob("*.crt")):
            with suppress(OSError, ssl.SSLError):
                context.load_verify_locations(path)
    return context


async def _read(response: aiohttp.ClientResponse, limit: int, what: str) -> bytes:
    data = bytearray()
    try:
        async for chunk in response.content.iter_chunked(_CHUNK):
            data += chunk
            if len(data) > limit:
                raise RegistryError(f"{what} from {_shown(response.url)} has more than {limit} bytes")
    except (aiohttp.ClientError, OSError) as error:
        raise RegistryError(f"{what} from {_shown(response.url)}: unexpected EOF", transient=True) from error
    return bytes(data)


def _retry_after(response: aiohttp.ClientResponse, clock: Clock) -> float:
    """Seconds the registry asks to wait, at most `MAX_RETRY_AFTER`."""
    text = response.headers.get("Retry-After", "").strip()
    if text.isdigit():
        return min(float(text[:6]), MAX_RETRY_AFTER)
    with suppress(TypeError, ValueError):
        seconds = email.utils.parsedate_to_datetime(text).timestamp() - clock.wall_ns() / 1e9
        return max(0.0, min(seconds, MAX_RETRY_AFTER))
    return 0.0


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _shown(url: URL) -> str:
    """Without a query, which may be a signature, and without a user."""
    with suppress(ValueError):
        return str(url.with_user(None).with_query(None).with_fragment(None))
    return f"{url.scheme}://{url.host}"


class _closing:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, *_: object) -> None:
        # A response that was read to its end gives its connection back.
        if kind is None:
            self._response.release()
        else:
            self._response.close()
