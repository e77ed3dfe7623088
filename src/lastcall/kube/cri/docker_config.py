"""Registry credentials as Docker keeps them: `config.json`, and the Secrets that hold one. Pure.

Sources: docker/cli config file, kubelet pkg/credentialprovider/{config,keyring}.go.
"""

# check: pure

import base64
import binascii
import fnmatch
import json
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, cast

from lastcall.kube.cri.api import AuthConfig
from lastcall.world.dataclass import dataclass

_DOCKER_HUB = ("docker.io", "index.docker.io", "registry-1.docker.io")
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class DockerConfigError(ValueError):
    """Not a docker config; the text says what is wrong in it, never a secret."""


@dataclass(frozen=True, slots=True)
class DockerConfig:
    """`auths`: registry (or registry/path, or a glob) → credentials. Helpers are names of `docker-credential-*`."""

    auths: Mapping[str, AuthConfig] = field(default_factory=dict)
    creds_store: str = ""
    cred_helpers: Mapping[str, str] = field(default_factory=dict)

    def helper_for(self, registry: str) -> tuple[str, str]:
        """Return (helper, the key to ask it for); ("", "") for a registry without one."""
        for key, helper in self.cred_helpers.items():
            host = _split(key)[0]
            if host == registry or (host in _DOCKER_HUB and registry in _DOCKER_HUB):
                return helper, key
        if not self.creds_store:
            return "", ""
        return self.creds_store, "https://index.docker.io/v1/" if registry in _DOCKER_HUB else registry


def parse_docker_config(data: bytes) -> DockerConfig:
    """Parse a `config.json`, or the `.dockerconfigjson` of a Secret. Raises DockerConfigError."""
    value = _object(data)
    store = value.get("credsStore") or ""
    helpers = value.get("credHelpers") or {}
    if not isinstance(helpers, dict):
        raise DockerConfigError("credHelpers is not an object")
    for helper in [*([store] if store else []), *helpers.values()]:
        if not isinstance(helper, str) or not _HELPER.fullmatch(helper):
            raise DockerConfigError(f"{helper!r} is not the name of a credential helper")
    return DockerConfig(_auths(value.get("auths") or {}), store, cast(dict[str, str], helpers))


def parse_dockercfg(data: bytes) -> DockerConfig:
    """Parse the older `.dockercfg`: what `auths` holds, without a name around it. Raises DockerConfigError."""
    return DockerConfig(_auths(_object(data)))


def parse_pull_secret(secret: Mapping[str, Any]) -> DockerConfig:
    """Parse a Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg; others have no credentials.

    Raises DockerConfigError. Source: pkg/credentialprovider/secrets/secrets.go:MakeDockerKeyring.
    """
    data = secret.get("data") or {}
    for key, parse in ((".dockerconfigjson", parse_docker_config), (".dockercfg", parse_dockercfg)):
        if data.get(key):
            try:
                text = base64.b64decode(data[key], validate=True)
            except (binascii.Error, ValueError, TypeError) as error:
                raise DockerConfigError(f"{key} is not base64") from error
            return parse(text)
    return DockerConfig()


def credentials_for(repository: str, configs: list[DockerConfig]) -> list[AuthConfig]:
    """Return what the configs have for `registry[:port]/path`, the most specific key first, each once.

    A key's host may have a `*` in any of its labels, its port must be the image's, its path a beginning of the image's.
    Source: pkg/credentialprovider/keyring.go:Lookup.
    """
    host, path = _split(repository)
    keyed: list[tuple[str, str, AuthConfig]] = []
    for config in configs:
        keyed += [(*_split(key), auth) for key, auth in config.auths.items()]
    keyed.sort(key=lambda each: each[:2], reverse=True)
    found = [auth for key_host, key_path, auth in keyed if _matches(key_host, key_path, host, path)]
    return list(dict.fromkeys(found))


def _matches(key_host: str, key_path: str, host: str, path: str) -> bool:
    if host in _DOCKER_HUB:
        return key_host in _DOCKER_HUB
    key_name, _, key_port = key_host.partition(":")
    name, _, port = host.partition(":")
    labels, wanted = key_name.split("."), name.split(".")
    return (
        key_port == port
        and len(labels) == len(wanted)
        and path.startswith(key_path)
        and all(fnmatch.fnmatchcase(label, pattern) for pattern, label in zip(labels, wanted, strict=True))
    )


def _split(key: str) -> tuple[str, str]:
    """Host with port, and path, of a key such as `https://index.docker.io/v1/` or `r.example/team`."""
    host, _, path = re.sub(r"^https?://", "", key.strip()).partition("/")
    path = re.sub(r"^v[12](/|$)", "", path)
    return host.lower(), path.rstrip("/")


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DockerConfigError("it is not JSON") from error
    if not isinstance(value, dict):
        raise DockerConfigError("it is not a JSON object")
    return value


def _auths(value: Any) -> dict[str, AuthConfig]:
    if not isinstance(value, dict):
        raise DockerConfigError("auths is not an object")
    found = {}
    for registry, entry in value.items():
        if not isinstance(entry, dict):
            raise DockerConfigError(f"auths[{registry!r}] is not an object")
        auth = _auth(registry, entry)
        if auth is not None:
            found[str(registry)] = auth
    return found


def _auth(registry: str, entry: dict[str, Any]) -> AuthConfig | None:
    """None for an entry without anything, which `docker login` leaves when a credentials store has the secret."""
    texts = {key: entry.get(key) or "" for key in ("username", "password", "auth", "identitytoken", "registrytoken")}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise DockerConfigError(f"auths[{registry!r}].{key} is not a text")
    user, password = texts["username"], texts["password"]
    if texts["auth"]:
        try:
            pair = base64.b64decode(texts["auth"], validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise DockerConfigError(f"auths[{registry!r}].auth is not base64 of user:password") from error
        if ":" not in pair:
            raise DockerConfigError(f"auths[{registry!r}].auth is not base64 of user:password")
        user, _, password = pair.rstrip("\0").partition(":")
    if not (user or texts["identitytoken"] or texts["registrytoken"]):
        return None
    return AuthConfig(user, password, texts["identitytoken"], texts["registrytoken"])
