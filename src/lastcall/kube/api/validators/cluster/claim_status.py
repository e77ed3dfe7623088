"""The status of ResourceClaims. Source: pkg/apis/resource/validation/validation.go."""

import ipaddress
import re
from collections.abc import Sequence
from typing import Any

import orjson

from lastcall.kube.api.field import (
    FieldError,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
    too_many,
)
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_qualified_name
from lastcall.kube.api.protobuf.internal import as_internal
from lastcall.kube.api.validators.cluster.device_parts import MOST, label, list_of, pool_name, repeated
from lastcall.kube.api.validators.cluster.devices import (
    LONGEST_PARAMETERS,
    configuration,
    reference,
    references,
    request_names,
    update_claim,
    update_template,
    validate_claim,
    validate_class,
    validate_template,
)
from lastcall.kube.api.validators.common import conditions, driver_name
from lastcall.kube.api.validators.kind_rules import KindRules, nothing
from lastcall.kube.api.validators.node_selectors import node_selector

IMMUTABLE = "field is immutable"
MOST_RESERVED = 256
MOST_CONDITIONS = 4
MOST_ADDRESSES = 16
LENGTH_OF_UUID = 36
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SOURCES = ("FromClaim", "FromClass")
_NO_ADDRESS = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"


def is_interface(text: str) -> bool:
    """Return whether a text is an address with the length of its network's prefix."""
    if "/" not in text:
        return False
    try:
        ipaddress.ip_interface(text)
    except ValueError:
        return False
    return True


def update_claim_status(new: Object, old: Object) -> list[FieldError]:
    status, stored = new.get("status") or {}, old.get("status") or {}
    path = "status.reservedFor"
    reserved = status.get("reservedFor") or []

    def consumer(value: Object, at: str) -> list[FieldError]:
        return [required(f"{at}.{key}") for key in ("resource", "name", "uid") if not value.get(key)]

    errors = list_of(reserved, path, consumer, MOST_RESERVED)
    errors += repeated((each_one.get("uid") for each_one in reserved), path)
    allocation, requests = (
        status.get("allocation"),
        ((new.get("spec") or {}).get("devices") or {}).get("requests") or [],
    )
    errors += _devices(status.get("devices") or [], allocation)
    if reserved and allocation is None:
        why = "may not be specified when `allocated` is not set"
        errors.append(forbidden(path, why))
    if allocation is not None and stored.get("allocation") is None:
        errors += _allocation(allocation, "status.allocation", request_names(requests))
    if allocation is not None and stored.get("allocation") is not None and allocation != stored["allocation"]:
        errors.append(invalid("status.allocation", as_internal("resource.v1.AllocationResult", allocation), IMMUTABLE))
    return errors


def _uuid(value: str, path: str) -> list[FieldError]:
    """Google's `uuid.Validate`, of the form that the API has."""
    if len(value) != LENGTH_OF_UUID:
        return [invalid(path, value, f"error validating uid: invalid UUID length: {len(value.encode())}")]
    return [] if _UUID.fullmatch(value) else [invalid(path, value, "error validating uid: invalid UUID format")]


def _condition_names(values: Sequence[str] | None, path: str) -> list[FieldError]:
    return list_of(values, path, lambda value, at: each(at, value, is_qualified_name(value)), MOST_CONDITIONS)


def _both_kinds_of_conditions(result: Object, path: str) -> list[FieldError]:
    kinds = ("bindingConditions", "bindingFailureConditions")
    return [
        invalid(f"{path}.{key}", None, f"{key} are required to use {other}")
        for key, other in (kinds, kinds[::-1])
        if result.get(other) and not result.get(key)
    ]


def _allocation(allocation: Object, path: str, names: set[str]) -> list[FieldError]:
    devices = allocation.get("devices") or {}

    def result(value: Object, at: str) -> list[FieldError]:
        errors = reference(value.get("request") or "", f"{at}.request", names)
        errors += driver_name(value.get("driver") or "", f"{at}.driver")
        errors += pool_name(value.get("pool") or "", f"{at}.pool")
        errors += label(value.get("device") or "", f"{at}.device")
        errors += _both_kinds_of_conditions(value, at)
        for key in ("bindingConditions", "bindingFailureConditions"):
            errors += _condition_names(value.get(key), f"{at}.{key}")
        return errors if value.get("shareID") is None else errors + _uuid(value["shareID"], f"{at}.shareID")

    def config(value: Object, at: str) -> list[FieldError]:
        source = value.get("source") or ""
        errors = [] if source else [required(f"{at}.source")]
        if source and source not in _SOURCES:
            errors.append(not_supported(f"{at}.source", source, _SOURCES))
        return errors + references(value.get("requests"), f"{at}.requests", names) + configuration(value, at)

    errors = list_of(devices.get("results"), f"{path}.devices.results", result)
    errors += list_of(devices.get("config"), f"{path}.devices.config", config, 2 * MOST)
    selector = allocation.get("nodeSelector")
    return errors if selector is None else errors + node_selector(selector, f"{path}.nodeSelector")


def _shown(device: Object) -> dict[str, str]:
    """A device's key as the internal type prints it."""
    return {key[0].upper() + key[1:]: device.get(key) or "" for key in ("driver", "pool", "device", "shareID")}


def _devices(devices: Sequence[Object], allocation: Object | None) -> list[FieldError]:
    """What drivers report about devices that the claim was given. (`validateDeviceStatus`)"""
    results = ((allocation or {}).get("devices") or {}).get("results") or ()
    given = [_shown(result) for result in results]
    errors: list[FieldError] = []
    keys = [_shown(device) for device in devices]
    for index, (device, key) in enumerate(zip(devices, keys, strict=True)):
        path = f"status.devices[{index}]"
        errors += driver_name(device.get("driver") or "", f"{path}.driver")
        errors += pool_name(device.get("pool") or "", f"{path}.pool")
        errors += label(device.get("device") or "", f"{path}.device")
        if device.get("shareID") is not None:
            errors += _uuid(device["shareID"], f"{path}.shareID")
        if key not in given:
            errors.append(invalid(path, key, "must be an allocated device in the claim"))
        errors += conditions(device.get("conditions") or (), f"{path}.conditions")
        if device.get("data") is not None:
            errors += _raw_object(device["data"], f"{path}.data")
        errors += _network(device.get("networkData") or {}, f"{path}.networkData")
    return errors + _repeated(keys, "status.devices")


def _repeated(values: Sequence[Any], path: str) -> list[FieldError]:
    """A set's items are looked at one by one first. (`validateSet`)"""
    return [duplicate(f"{path}[{at}]", value) for at, value in enumerate(values) if value in values[:at]]


def _raw_object(data: Any, path: str) -> list[FieldError]:
    if len(orjson.dumps(data)) > LONGEST_PARAMETERS:
        return [too_long(path, LONGEST_PARAMETERS)]
    return [] if isinstance(data, dict) else [invalid(path, "<value omitted>", "must be a valid JSON object")]


def _network(data: Object, path: str) -> list[FieldError]:
    """(`validateNetworkDeviceData`)"""
    errors: list[FieldError] = []
    for key, longest in (("interfaceName", 256), ("hardwareAddress", 128)):
        if len((data.get(key) or "").encode()) > longest:
            errors.append(too_long(f"{path}.{key}", longest))
    addresses = data.get("ips") or []
    if len(addresses) > MOST_ADDRESSES:
        errors.append(too_many(f"{path}.ips", len(addresses), MOST_ADDRESSES))
    for index, address in enumerate(addresses):
        at = f"{path}.ips[{index}]"
        if not is_interface(address):
            errors.append(invalid(at, address, _NO_ADDRESS))
    return errors + _repeated(addresses, f"{path}.ips")


RULES = {
    "resourceclaims": KindRules(
        create=nothing,
        created=validate_claim,
        update=update_claim,
        subresources=(("status", update_claim_status),),
    ),
    "resourceclaimtemplates": KindRules(expressions=validate_template, then=update_template),
    "deviceclasses": KindRules(expressions=validate_class, change_first=True),
}
"""By plural: claims, their templates and classes."""
