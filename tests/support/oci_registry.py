"""An OCI registry on loopback, in a thread: serves images that the test makes, asks who is there, and misbehaves."""

import asyncio
import base64
import gzip
import hashlib
import io
import json
import os
import re
import ssl
import tarfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from lastcall.world import linux

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def tar_of(files: dict[str, bytes], mode: int = 0o755) -> bytes:
    """A tar with these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, 1, mtime=0)


@dataclass
class Fault:
    """What goes wrong with the next `times` requests whose `METHOD path` matches."""

    match: str
    times: int = 1
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    delay: float = 0.0
    truncate_at: int | None = None
    hang_at: int | None = None
    """Bytes after which nothing comes any more."""
    hold: "threading.Event | None" = None
    """Nothing is answered before it is set."""


class Registry:
    """`with Registry() as registry:`. `host` is `127.0.0.1:PORT`.

    `auth` is "", "basic" or "bearer"; then `user` and `password` are asked for. `ranges` False ignores Range headers.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        auth: str = "",
        user: str = "me",
        password: str = "secret",
        tls: ssl.SSLContext | None = None,
        netns: str = "",
    ) -> None:
        """`netns` is the file of the network namespace that it listens in, "" for this process's own."""
        self._netns = netns
        self.auth, self.user, self.password = auth, user, password
        self.ranges = True
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[bytes, str]] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.sent = 0
        self.on_request: Callable[[str], None] = lambda _: None
        self._port = port
        self._tls = tls
        self._tokens = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    # -- images ------------------------------------------------------------------------------------------------------

    def blob(self, data: bytes) -> str:
        self.blobs[digest_of(data)] = data
        return digest_of(data)

    def descriptor(self, data: bytes, media_type: str, **more: Any) -> dict[str, Any]:
        return {"mediaType": media_type, "digest": self.blob(data), "size": len(data), **more}

    def manifest(
        self,
        layers: list[bytes],
        config: dict[str, Any] | None = None,
        *,
        platform: tuple[str, str] = ("", ""),
        compress: Callable[[bytes], bytes] = gzipped,
        media_type: str = MANIFEST,
    ) -> bytes:
        """The manifest of an image of these plain tars; its blobs are there then."""
        diff_ids = [digest_of(layer) for layer in layers]
        document: dict[str, Any] = {"os": "linux", "config": config or {}, "rootfs": {"type": "layers"}}
        document["rootfs"]["diff_ids"] = diff_ids
        document["created"] = "2024-05-06T07:08:09Z"
        if platform[0]:
            document |= {"architecture": platform[0], "variant": platform[1]}
        described = [self.descriptor(compress(layer), LAYER) for layer in layers]
        value = {
            "schemaVersion": 2,
            "mediaType": media_type,
            "config": self.descriptor(json.dumps(document).encode(), CONFIG),
            "layers": described,
        }
        return json.dumps(value).encode()

    def put(self, name: str, manifest: bytes, media_type: str = MANIFEST) -> str:
        """Serve a manifest as `repository:tag` (or just by its digest, for `repository`); answers its digest."""
        repository, _, tag = name.partition(":")
        for key in filter(None, (tag, digest_of(manifest))):
            self.manifests[repository, key] = (manifest, media_type)
        return digest_of(manifest)

    def add(self, name: str, files: dict[str, bytes], config: dict[str, Any] | None = None, **more: Any) -> str:
        """An image of one layer; answers its manifest's digest."""
        return self.put(name, self.manifest([tar_of(files)], config, **more))

    def index(self, name: str, manifests: dict[tuple[str, str], bytes], media_type: str = INDEX) -> str:
        """An index of (architecture, variant) → manifest."""
        repository = name.partition(":")[0]
        entries = []
        for (architecture, variant), manifest in manifests.items():
            platform = {"os": "linux", "architecture": architecture, **({"variant": variant} if variant else {})}
            digest = self.put(repository, manifest)
            entries.append({"mediaType": MANIFEST, "digest": digest, "size": len(manifest), "platform": platform})
        value = {"schemaVersion": 2, "mediaType": media_type, "manifests": entries}
        return self.put(name, json.dumps(value).encode(), media_type)

    # -- what happened -----------------------------------------------------------------------------------------------

    def asked(self, pattern: str) -> list[tuple[str, str, dict[str, str]]]:
        """The requests whose `METHOD path` matches."""
        return [each for each in list(self.requests) if re.search(pattern, f"{each[0]} {each[1]}")]

    # -- the server --------------------------------------------------------------------------------------------------

    def __enter__(self) -> "Registry":
        self._thread.start()
        assert self._ready.wait(10), "the registry does not start"
        return self

    def __exit__(self, *_: object) -> None:
        for fault in self.faults:
            if fault.hold is not None:
                fault.hold.set()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _run(self) -> None:
        if self._netns:
            fd = os.open(self._netns, os.O_RDONLY | os.O_CLOEXEC)
            linux.setns(fd, linux.CLONE_NEWNET)  # of this thread alone
            os.close(fd)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._port, reuse_address=True, ssl_context=self._tls)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        line = f"{request.method} {request.path}"
        self.requests.append((request.method, request.path_qs, dict(request.headers)))
        self.on_request(line)
        fault = next((each for each in self.faults if each.times and re.search(each.match, line)), None)
        if fault is not None:
            fault.times -= 1
            if fault.hold is not None:
                await asyncio.to_thread(fault.hold.wait, 30)
            await asyncio.sleep(fault.delay)  # a slow registry
            if fault.status:
                return web.Response(status=fault.status, headers=fault.headers, body=fault.body)
        if request.path == "/token":
            return self._token(request)
        refusal = self._refuse(request)
        if refusal is not None:
            return refusal
        if match := re.fullmatch(r"/v2/(.+)/manifests/([^/]+)", request.path):
            found = self.manifests.get((match[1], match[2]))
            if found is None:
                return web.json_response({"errors": [{"code": "MANIFEST_UNKNOWN"}]}, status=404)
            data, media_type = found
            data = fault.body if fault is not None and fault.body is not None else data
            headers = {"Content-Type": media_type, "Docker-Content-Digest": digest_of(found[0])}
            return web.Response(body=data, headers=headers)
        if match := re.fullmatch(r"/v2/.+/blobs/(sha256:[0-9a-f]+)", request.path):
            return await self._blob(request, match[1], fault)
        return web.json_response({})

    def _refuse(self, request: web.Request) -> web.Response | None:
        said = request.headers.get("Authorization", "")
        pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if self.auth == "basic" and said != f"Basic {pair}":
            return web.Response(status=401, headers={"WWW-Authenticate": 'Basic realm="registry"'})
        if self.auth == "bearer" and said != f"Bearer token-{self._tokens}":
            repository = re.sub(r"^/v2/|/(manifests|blobs)/.*", "", request.path)
            challenge = f'Bearer realm="http://{self.host}/token",service="tests",scope="repository:{repository}:pull"'
            if said:
                challenge += ',error="invalid_token"'
            return web.Response(status=401, headers={"WWW-Authenticate": challenge})
        return None

    def _token(self, request: web.Request) -> web.Response:
        pair = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if request.headers.get("Authorization") != f"Basic {pair}":
            return web.json_response({"errors": []}, status=401)
        self._tokens += 1
        return web.json_response({"token": f"token-{self._tokens}"})

    async def _blob(self, request: web.Request, digest: str, fault: Fault | None) -> web.StreamResponse:
        data = self.blobs.get(digest)
        if data is None:
            return web.json_response({"errors": [{"code": "BLOB_UNKNOWN"}]}, status=404)
        if fault is not None and fault.body is not None:
            data = fault.body
        status, headers, start = 200, {}, 0
        asked = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        if asked and self.ranges:
            start = int(asked[1])
            if start >= len(data):
                return web.Response(status=416)
            status, headers = 206, {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        part = data[start:]
        response = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(part))})
        await response.prepare(request)
        cut = fault.truncate_at if fault is not None else None
        hang = fault.hang_at if fault is not None else None
        part = part[: min(each for each in (cut, hang, len(part)) if each is not None)]
        for position in range(0, len(part), 65536):
            await response.write(part[position : position + 65536])
            self.sent += len(part[position : position + 65536])
        if hang is not None:
            await asyncio.sleep(60)  # a registry that hangs
        if cut is not None:
            assert request.transport is not None
            request.transport.close()
        return response
