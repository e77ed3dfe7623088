"""What the API server has for a Pod's volumes: ConfigMaps, Secrets, ServiceAccount tokens.

Sources: pkg/volume/{configmap,secret,downwardapi,projected}, pkg/kubelet/token/token_manager.go.
"""

from __future__ import annotations

import base64
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.kube.api.resources import CONFIGMAPS, SECRETS, SERVICEACCOUNTS, Resource
from lastcall.kube.api.text.go_notation import go_list, go_quote
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.node.interfaces import VolumeError
from lastcall.kube.node.volumes.atomic_writer import FileProjection
from lastcall.kube.node.volumes.downward import field_value, resource_value
from lastcall.world.clock import Clock
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.volumes import (
        ConfigMapProjection,
        ConfigMapVolumeSource,
        DownwardAPIProjection,
        DownwardAPIVolumeFile,
        DownwardAPIVolumeSource,
        KeyToPath,
        ProjectedVolumeSource,
        SecretProjection,
        SecretVolumeSource,
        ServiceAccountTokenProjection,
        Volume,
    )

DEFAULT_MODE = 0o644
ROOT_CA_CONFIGMAP = "kube-root-ca.crt"
ROOT_CA_TTL = 60.0
"""Seconds for which a namespace's root CA is not read again: it stays the same as long as the cluster."""
TOKEN_MAX_AGE = 24 * 3600.0
TOKEN_EXPIRATION = 3600
Files = dict[str, FileProjection]


@dataclass(slots=True)
class _Token:
    text: str
    issued: float
    expires: float


@dataclass(slots=True)
class PodTokens:
    """Tokens of one Pod, by audience and lifetime."""

    known: dict[tuple[str, int], _Token] = field(default_factory=dict)


@dataclass(slots=True)
class VolumeSources:
    """Reads sources for volumes. `allocatable` is the node's, for downward API limits that are not set."""

    client: Client
    clock: Clock
    allocatable: dict[str, str] = field(default_factory=dict)
    _root_ca: dict[str, tuple[float, Object]] = field(default_factory=dict)

    async def files(self, pod: Pod, volume: Volume, tokens: PodTokens) -> Files:
        """Return all files of a configMap, secret, downwardAPI or projected volume. Raises VolumeError."""
        if "configMap" in volume:
            return await self._config_map(pod, volume["configMap"], volume["configMap"].get("defaultMode"))
        if "secret" in volume:
            source = volume["secret"]
            return await self._secret(pod, source.get("secretName", ""), source, source.get("defaultMode"))
        if "downwardAPI" in volume:
            return self._downward(pod, volume["downwardAPI"], volume["downwardAPI"].get("defaultMode"))
        return await self._projected(pod, volume["projected"], tokens)

    async def _projected(self, pod: Pod, projected: ProjectedVolumeSource, tokens: PodTokens) -> Files:
        files: Files = {}
        errors: list[str] = []
        mode = projected.get("defaultMode")
        for source in projected.get("sources") or []:
            try:
                if "serviceAccountToken" in source:
                    files |= await self._token(pod, source["serviceAccountToken"], mode, tokens)
                elif "configMap" in source:
                    files |= await self._config_map(pod, source["configMap"], mode)
                elif "secret" in source:
                    files |= await self._secret(pod, source["secret"].get("name", ""), source["secret"], mode)
                elif "downwardAPI" in source:
                    files |= self._downward(pod, source["downwardAPI"], mode)
                else:
                    kind = next(iter(source), "nothing")
                    errors.append(f"projected volume source {kind} is not supported")
            except VolumeError as error:
                errors.append(str(error))
        if errors:
            raise VolumeError(errors[0] if len(errors) == 1 else go_list([", ".join(errors)]))
        return files

    async def _config_map(
        self, pod: Pod, source: ConfigMapVolumeSource | ConfigMapProjection, default_mode: int | None
    ) -> Files:
        name = source.get("name", "")
        obj = await self._get(pod, CONFIGMAPS, "configmap", name, bool(source.get("optional")))
        if obj is None:
            return {}
        data = {key: text.encode() for key, text in (obj.get("data") or {}).items()}
        data |= {key: base64.b64decode(text) for key, text in (obj.get("binaryData") or {}).items()}
        return _select(data, source, default_mode, "config")

    async def _secret(
        self, pod: Pod, name: str, source: SecretVolumeSource | SecretProjection, default_mode: int | None
    ) -> Files:
        obj = await self._get(pod, SECRETS, "secret", name, bool(source.get("optional")))
        if obj is None:
            return {}
        data = {key: base64.b64decode(text) for key, text in (obj.get("data") or {}).items()}
        return _select(data, source, default_mode, "secret")

    async def _get(self, pod: Pod, resource: Resource, kind: str, name: str, optional: bool) -> Object | None:
        namespace = namespace_of(pod)
        now = self.clock.monotonic_ns() / 1e9
        if kind == "configmap" and name == ROOT_CA_CONFIGMAP:
            read, known = self._root_ca.get(namespace, (0.0, {}))
            if known and now - read < ROOT_CA_TTL:
                return known
        try:
            obj = await self.client.get(resource, name, namespace)
        except StatusError as error:
            if not is_not_found(error):
                raise VolumeError(f"failed to get {kind} {namespace}/{name}: {error.message}") from None
            if optional:
                return None
            raise VolumeError(f"{kind} {go_quote(name)} not found") from None
        except ConnectionLost as error:
            raise VolumeError(f"failed to get {kind} {namespace}/{name}: {error}") from None
        if kind == "configmap" and name == ROOT_CA_CONFIGMAP:
            self._root_ca[namespace] = (now, obj)
        return obj

    def _downward(
        self, pod: Pod, source: DownwardAPIVolumeSource | DownwardAPIProjection, default_mode: int | None
    ) -> Files:
        files: Files = {}
        for item in source.get("items") or []:
            try:
                if "fieldRef" in item:
                    text = field_value(pod, item["fieldRef"]["fieldPath"])
                else:
                    text = resource_value(pod, item.get("resourceFieldRef") or {}, self.allocatable)
            except ValueError as error:
                raise VolumeError(str(error)) from None
            files[item["path"]] = FileProjection(text.encode(), _mode(item, default_mode))
        return files

    async def _token(
        self, pod: Pod, source: ServiceAccountTokenProjection, default_mode: int | None, tokens: PodTokens
    ) -> Files:
        audience = str(source.get("audience") or "")
        seconds = int(source.get("expirationSeconds") or TOKEN_EXPIRATION)
        key = (audience, seconds)
        now = self.clock.wall_ns() / 1e9
        token = tokens.known.get(key)
        if token is None or token_requires_refresh(token.issued, token.expires, now):
            try:
                token = tokens.known[key] = await self._request_token(pod, audience, seconds, now)
            except VolumeError:
                if token is None or token.expires <= now:
                    raise
        return {source["path"]: FileProjection(token.text.encode(), _token_mode(pod, default_mode))}

    async def _request_token(self, pod: Pod, audience: str, seconds: int, now: float) -> _Token:
        account = pod["spec"].get("serviceAccountName") or "default"
        request: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {
                "audiences": [audience] if audience else [],
                "expirationSeconds": seconds,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)},
            },
        }
        try:
            answer = await self.client.create(
                SERVICEACCOUNTS, request, namespace_of(pod), name=account, subresource="token"
            )
        except (StatusError, ConnectionLost) as error:
            raise VolumeError(f"failed to fetch token: {error}") from None
        status: Object = answer["status"]
        return _Token(status["token"], now, parse_rfc3339(status["expirationTimestamp"]).timestamp())


def token_requires_refresh(issued: float, expires: float, now: float) -> bool:
    """Return True after 80 % of the lifetime or 24 h. All in wall seconds. Source: token_manager.go:requiresRefresh."""
    return now - issued > TOKEN_MAX_AGE or now > issued + (expires - issued) * 0.8


_Keys: TypeAlias = "ConfigMapVolumeSource | ConfigMapProjection | SecretVolumeSource | SecretProjection"


def _select(data: dict[str, bytes], source: _Keys, default_mode: int | None, kind: str) -> Files:
    """All keys, or those in `items` under their paths."""
    items = source.get("items")
    if not items:
        return {key: FileProjection(value, _mode({}, default_mode)) for key, value in sorted(data.items())}
    files: Files = {}
    for item in items:
        value = data.get(item["key"])
        if value is None:
            if source.get("optional"):
                continue
            raise VolumeError(f"references non-existent {kind} key: {item['key']}")
        files[item["path"]] = FileProjection(value, _mode(item, default_mode))
    return files


def _mode(item: KeyToPath | DownwardAPIVolumeFile, default_mode: int | None) -> int:
    mode = item.get("mode")
    if mode is None:
        mode = DEFAULT_MODE if default_mode is None else default_mode
    return int(mode)


def _token_mode(pod: Pod, default_mode: int | None) -> int:
    """Source: pkg/volume/projected/projected.go: a token is private as soon as its reader is known."""
    if (pod["spec"].get("securityContext") or {}).get("fsGroup") is not None:
        return 0o600
    return DEFAULT_MODE if default_mode is None else int(default_mode)
