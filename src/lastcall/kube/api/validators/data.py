"""ConfigMaps and Secrets. Source: pkg/apis/core/validation/validation.go (ValidateConfigMap, ValidateSecret)."""

import binascii

import orjson

from lastcall.kube.api.field import FieldError, each, forbidden, invalid, required, too_long
from lastcall.kube.api.meta import Object, annotations_of
from lastcall.kube.api.names import is_config_map_key

MAX_SIZE = 1024 * 1024
"""Bytes of all values (Secret) or keys and values (ConfigMap)."""

_IMMUTABLE = "field is immutable when `immutable` is set"
_SERVICE_ACCOUNT = "kubernetes.io/service-account.name"


def _decoded(value: str) -> bytes:
    try:
        return binascii.a2b_base64(value)
    except binascii.Error:
        return b""


def validate_config_map(config_map: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    data, binary = config_map.get("data") or {}, config_map.get("binaryData") or {}
    size = 0
    for key in sorted(data):
        errors += each(f"data[{key}]", key, is_config_map_key(key))
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        size += len(data[key].encode())
    for key in sorted(binary):
        errors += each(f"binaryData[{key}]", key, is_config_map_key(key))
        size += len(_decoded(binary[key]))
    if size > MAX_SIZE:
        errors.append(too_long("[]", MAX_SIZE))  # Kubernetes prints the empty path so
    return errors


def _immutable(new: Object, old: Object, *keys: str) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [forbidden("immutable", _IMMUTABLE)]
    return errors + [forbidden(key, _IMMUTABLE) for key in keys if new.get(key) != (old.get(key) or None)]


def update_config_map(new: Object, old: Object) -> list[FieldError]:
    return _immutable(new, old, "data", "binaryData")


def validate_secret(secret: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    data = secret.get("data") or {}
    size = 0
    for key in sorted(data):
        errors += each(f"data[{key}]", key, is_config_map_key(key))
        size += len(_decoded(data[key]))
    if size > MAX_SIZE:
        errors.append(too_long("data", MAX_SIZE))
    kind = secret.get("type")
    if kind == "kubernetes.io/service-account-token":
        if not annotations_of(secret).get(_SERVICE_ACCOUNT):
            errors.append(required(f"metadata.annotations[{_SERVICE_ACCOUNT}]"))
    elif kind in _DOCKER_KEYS:
        errors += _docker(data, _DOCKER_KEYS[kind])
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            errors += [required("data[username]"), required("data[password]")]
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            errors.append(required("data[ssh-privatekey]"))
    elif kind == "kubernetes.io/tls":
        errors += [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return errors


_DOCKER_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}


def _docker(data: Object, key: str) -> list[FieldError]:
    if key not in data:
        return [required(f"data[{key}]")]
    try:
        orjson.loads(_decoded(data[key]))
    except orjson.JSONDecodeError as error:
        return [invalid(f"data[{key}]", "<secret contents redacted>", str(error))]
    return []


def update_secret(new: Object, old: Object) -> list[FieldError]:
    kind = new.get("type") or old.get("type")
    errors = [] if kind == old.get("type") else [invalid("type", kind, "field is immutable")]
    return errors + _immutable(new, old, "data")
