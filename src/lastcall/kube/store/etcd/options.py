"""Which etcd, and who we are there: kube-apiserver's --etcd-* flags."""

import os
from dataclasses import field
from urllib.parse import urlsplit

from lastcall.kube.store.api import StoreError
from lastcall.kube.store.etcd.layout import DEFAULT_PREFIX, prefix_of
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class EtcdOptions:
    """`servers` are URLs of members. `ca`, `certificate` and `key` are PEM; `user` and `password` etcd's own."""

    servers: tuple[str, ...]
    prefix: str = DEFAULT_PREFIX
    ca: bytes = b""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    user: str = ""
    password: str = field(default="", repr=False)
    targets: tuple[str, ...] = ()
    """Where each server is reached, as gRPC names it, if not at its own address."""

    @property
    def tls(self) -> bool:
        return self.servers[0].startswith("https:")

    def target(self, number: int) -> str:
        """Return gRPC's name of a member's address."""
        return self.targets[number] if self.targets else urlsplit(self.servers[number]).netloc

    def host(self, number: int) -> str:
        """Return the name that a member's certificate must have."""
        return urlsplit(self.servers[number]).hostname or ""


def etcd_options(
    servers: str,
    *,
    prefix: str = DEFAULT_PREFIX,
    ca_file: str = "",
    certificate_file: str = "",
    key_file: str = "",
    user: str = "",
) -> EtcdOptions:
    """Return the options of the flags: `servers` is a list with commas, `user` is NAME:PASSWORD. Raises ValueError,
    which names the flag and the fix."""
    urls = tuple(url.strip().rstrip("/") for url in servers.split(",") if url.strip())
    if not urls:
        raise ValueError("--etcd-servers: names no server; fix: --etcd-servers http://127.0.0.1:2379")
    for url in urls:
        _check_url(url)
    schemes = {urlsplit(url).scheme for url in urls}
    if len(schemes) > 1:
        raise ValueError("--etcd-servers: some are http and some are https; fix: give all members the same scheme")
    tls = schemes == {"https"}
    for flag, value in (("cafile", ca_file), ("certfile", certificate_file), ("keyfile", key_file)):
        if value and not tls:
            raise ValueError(f"--etcd-{flag}: is for https, and --etcd-servers says http; fix: write https://")
    if bool(certificate_file) != bool(key_file):
        missing = "keyfile" if certificate_file else "certfile"
        raise ValueError(f"--etcd-{missing}: is missing; fix: give both --etcd-certfile and --etcd-keyfile")
    name, colon, password = user.partition(":")
    if user and not (name and colon and password):
        raise ValueError("--etcd-user: is not NAME:PASSWORD; fix: write both, with a colon between")
    try:
        checked_prefix = prefix_of(prefix)
    except StoreError as error:
        raise ValueError(str(error)) from None
    return EtcdOptions(
        urls,
        checked_prefix,
        _read("cafile", ca_file),
        _read("certfile", certificate_file),
        _read("keyfile", key_file),
        name,
        password,
    )


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ValueError(f"--etcd-servers {url}: {error}; fix: write https://HOST:2379") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"--etcd-servers {url}: is not the URL of a server; fix: write https://HOST:2379")
    if port is None or parts.path or parts.query or parts.username:
        raise ValueError(f"--etcd-servers {url}: has to be scheme, host and port; fix: write https://HOST:2379")


def _read(flag: str, path: str) -> bytes:
    return read_pem(f"etcd-{flag}", path) if path else b""


def read_pem(flag: str, path: str) -> bytes:
    """Return the PEM file that a flag names. Raises ValueError."""
    try:
        with open(path, "rb") as file:
            content = file.read(1 << 20)
    except OSError as error:
        raise ValueError(f"--{flag} {path}: {os.strerror(error.errno or 0)}; fix: name a PEM file") from None
    if b"-----BEGIN " not in content:
        raise ValueError(f"--{flag} {path}: is not a PEM file; fix: name one that begins with -----BEGIN")
    return content
