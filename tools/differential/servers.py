"""The two servers: a real etcd and kube-apiserver on loopback ports, and lastcall's API server, with no controllers."""

import base64
import http.client
import json
import re
import secrets
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

import yaml
from engines.api_server import real_api_server

from differential.request import JSON, Request, settled

AGENT = "differential/1"
COMPARED = "1.36"
"""The version of lastcall's server: that of the real one."""
QUIET_SECONDS = 0.15
"""A watch has said what it says at once when nothing came for so long."""
BOOKMARK, INITIAL_EVENTS_END = b'{"type":"BOOKMARK"', b"k8s.io/initial-events-end"
ASKING = "kubernetes-admin"
"""Who sends the requests, by a token on both servers: objects and reviews tell the name, and what a certificate adds."""


CHOSEN = re.compile(r"\bkube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}\b|\b10\.(?:125|96|200)\.\d+\.\d+\b")
"""Names and addresses that a server chooses, in a body that was made of what the real one has."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`headers` has lower-case names; those that come several times are joined with a newline."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """Return the JSON of the body, None for anything else."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


@dataclass(slots=True)
class Server:
    """One of the two. `held` is the newest state of every object that it answered with, by path."""

    url: str
    trust: ssl.SSLContext
    token: str = ""
    held: dict[str, Any] = field(default_factory=dict)
    own_names: dict[str, str] = field(default_factory=dict)
    """What the real server has chosen (volumes of tokens, addresses of Services) → what this one has in its place."""
    _connection: http.client.HTTPSConnection | None = None

    def ask(self, request: Request, quiet: float = QUIET_SECONDS) -> Answer:
        """Send one request on a connection that is kept; a broken one is tried once more.

        Without an answer the status is 0. A watch has said all when nothing came for `quiet` seconds. Raises OSError.
        """
        query = urlencode([(key, settled(value, self.held)) for key, value in request.query])
        body = request.body
        if body is not None and not isinstance(body, bytes):
            text = json.dumps(settled(body, self.held), ensure_ascii=False, separators=(",", ":"))
            text = CHOSEN.sub(lambda found: self.own_names.get(found[0], found[0]), text)
            body = text.encode(errors="surrogatepass")
        headers = {"User-Agent": AGENT, "Accept": JSON, **request.headers}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        path = quote(request.path, safe="/:%@!$&'()*+,;=~") + (f"?{query}" if query else "")
        for _ in range(2):
            try:
                return self._ask(request.method, path, body, headers, quiet if request.verb == "watch" else 0)
            except http.client.RemoteDisconnected:
                self.close()
            except TimeoutError:
                self.close()
                return Answer(0, {}, b"no answer in time")
        return Answer(0, {}, b"connection closed without an answer")

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str], quiet: float) -> Answer:
        if self._connection is None:
            parts = urlsplit(self.url)
            assert parts.hostname is not None
            self._connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=60, context=self.trust)
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        found: dict[str, str] = {}
        for key, value in answer.getheaders():
            found[key.lower()] = f"{found[key.lower()]}\n{value}" if key.lower() in found else value
        if quiet and answer.status == 200:
            return Answer(answer.status, found, self._until_quiet(answer, quiet))
        return Answer(answer.status, found, answer.read())

    def _until_quiet(self, answer: http.client.HTTPResponse, quiet: float) -> bytes:
        """The events that come at once, as a list, without the bookmarks of every minute: on a busy machine one comes
        before the watch is quiet. The connection is then of no use."""
        assert self._connection is not None
        self._connection.sock.settimeout(quiet)
        lines: list[bytes] = []
        try:
            while line := answer.readline():
                if INITIAL_EVENTS_END in line or not line.startswith(BOOKMARK):
                    lines.append(line.strip())
        except TimeoutError:
            pass
        finally:
            self.close()
        return b"[" + b",".join(lines) + b"]"

    def get(self, path: str, accept: str = JSON) -> Any:
        """Return the JSON there. Raises LookupError."""
        answer = self.ask(Request("GET", path, "", "get", headers={"Accept": accept}))
        if answer.status != 200:
            raise LookupError(f"{path}: {answer.status} {answer.body[:200]!r}")
        return answer.document

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _process(argv: list[str], log: Path, **more: Any) -> Iterator["subprocess.Popen[bytes]"]:
    with log.open("wb") as out:
        process = subprocess.Popen(argv, stdout=more.pop("stdout", out), stderr=out, **more)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def real_server(scratch: Path, more: tuple[str, ...] = ()) -> Iterator[Server]:
    """Start a new etcd and kube-apiserver; `more` are flags of the latter.

    Raises LookupError when it does not start.
    """
    token, tokens = secrets.token_hex(16), scratch / "tokens.csv"
    tokens.touch(mode=0o600)
    tokens.write_text(f'{token},{ASKING},,"system:masters"\n')
    with real_api_server(scratch, (f"--token-auth-file={tokens}", *more)) as real:
        trust = ssl.create_default_context(cadata=real.ca.certificate_pem.decode())
        with Server(real.url, trust, token) as server:
            yield server


@contextmanager
def our_server(scratch: Path) -> Iterator[Server]:
    """Start lastcall's API server, in a process of its own. Raises LookupError when it does not start."""
    kubeconfig = scratch / "lastcall.kubeconfig"
    script = Path(__file__).resolve().parents[2] / "tests" / "support" / "api_server.py"
    argv = [sys.executable, str(script), "--kubeconfig", str(kubeconfig), "--kubernetes-version", COMPARED]
    with _process(argv, scratch / "lastcall.log", stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        if not url:
            raise LookupError(f"lastcall's API server did not start:\n{(scratch / 'lastcall.log').read_text()[-2000:]}")
        config = yaml.safe_load(kubeconfig.read_text())
        pem = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        token = config["users"][0]["user"]["token"]
        with Server(url, ssl.create_default_context(cadata=pem), token) as server:
            yield server
