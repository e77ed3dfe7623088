"""Options of requests, decoded and validated: list, watch, delete, and the query of writes.

Sources: apimachinery pkg/apis/meta/internalversion/validation/validation.go, pkg/apis/meta/v1/validation/validation.go,
apiserver pkg/endpoints/handlers/delete.go.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import orjson

from lastcall.kube.api.errors import StatusError, bad_request, plain_failure
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.field import FieldError, forbidden, go_quote, invalid, not_supported, required, too_long
from lastcall.kube.api.meta import Object
from lastcall.kube.api.selectors import field_terms, parse_label_selector
from lastcall.kube.api.text.numbers import NumberError, is_int64, parse_int, parse_uint
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.requestinfo import is_true
from lastcall.world.dataclass import dataclass

Match = Literal["", "Exact", "NotOlderThan"]


@dataclass(frozen=True, slots=True)
class ListOptions:
    """`metav1.ListOptions`. `resource_version` is the client's text; `timeout_seconds` 0 leaves it to the server;
    `watch_seconds` is what a watch makes of it."""

    label_selector: str = ""
    field_selector: str = ""
    watch: bool = False
    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    send_initial_events: bool | None = None
    allow_watch_bookmarks: bool = False
    timeout_seconds: int = 0

    @property
    def watch_seconds(self) -> float:
        """Return the timeout as 64 bits of nanoseconds: a huge one may be negative, which ends a watch at once."""
        return ((self.timeout_seconds * 1_000_000_000 + (1 << 63)) % (1 << 64) - (1 << 63)) / 1e9


def parse_list_options(query: Mapping[str, str], *, watch: bool) -> ListOptions:
    """Parse the query. Raises the 400 StatusError of an invalid number, the 422 of options that exclude each other."""
    options = ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        watch=watch,
        limit=max(0, _integer(query, "limit") or 0),
        continue_=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
        send_initial_events=is_true(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        allow_watch_bookmarks=is_true(query, "allowWatchBookmarks"),
        timeout_seconds=_integer(query, "timeoutSeconds") or 0,
    )
    errors = validate_watch_options(options) if watch else validate_list_options(options)
    if errors:
        # What cannot be read is reported first.
        if options.label_selector:
            parse_label_selector(options.label_selector)
        if options.field_selector:
            field_terms(options.field_selector)
        raise invalid_options("ListOptions", errors)
    return options


def invalid_options(kind: str, errors: Sequence[FieldError]) -> StatusError:
    """Return the 422 for options: `ListOptions.meta.k8s.io "" is invalid: …`."""
    return invalid_object(kind, "", errors, group="meta.k8s.io")


def _integer(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    try:
        return parse_int(text)
    except NumberError as error:
        raise bad_request(str(error)) from None


def validate_list_options(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    match = options.resource_version_match
    if match:
        if not options.resource_version:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            errors.append(forbidden("resourceVersionMatch", why))
        if options.continue_:
            why = "resourceVersionMatch is forbidden when continue is provided"
            errors.append(forbidden("resourceVersionMatch", why))
        if match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported("resourceVersionMatch", match, ["Exact", "NotOlderThan", ""]))
        if match == "Exact" and options.resource_version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            errors.append(forbidden("resourceVersionMatch", why))
    if options.send_initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def validate_watch_options(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    match = options.resource_version_match
    if options.send_initial_events is not None:
        if match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            errors.append(forbidden("resourceVersionMatch", why))
    elif match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        errors.append(forbidden("resourceVersionMatch", why))
    if match and match != "NotOlderThan":
        errors.append(not_supported("resourceVersionMatch", match, ["NotOlderThan"]))
    if options.continue_:
        why = "resourceVersionMatch is forbidden when continue is provided"
        errors.append(forbidden("resourceVersionMatch", why))
    return errors


def encode_continue(revision: int, key: str) -> str:
    """Return the token that continues after `key` (relative to the listed prefix, without slash) at `revision`."""
    token = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": f"/{key}\0"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(token.encode()).rstrip(b"=").decode()


def _go_character(text: bytes) -> str:
    """The first byte as Go quotes it."""
    first = text[:1].decode("latin-1") or "\0"
    return {"'": "\\'", '"': '"'}.get(first) or go_quote(first)[1:-1]


def _from_base64(token: str) -> bytes:
    """As Go decodes base64 for URLs without padding. Raises ValueError."""
    text = token.replace("\n", "").replace("\r", "")
    good = len(_BASE64_OF_URLS.match(text)[0])  # type: ignore[index]  # it matches "", too
    if good < len(text) or len(text) % 4 == 1:
        raise ValueError(f"illegal base64 data at input byte {good if good < len(text) else len(text) - 1}")
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


_BASE64_OF_URLS = re.compile(r"[A-Za-z0-9_-]*")


def decode_continue(token: str) -> tuple[int, str]:
    """Return (revision, key) of a token; revision -1 means "whatever is now". Raises the 400 StatusError."""
    try:
        text = _from_base64(token)
        if text[:1] != b"{":
            raise ValueError(f"invalid character '{_go_character(text)}' looking for beginning of value")
        decoded: Any = orjson.loads(text)
        if (version := decoded.get("v") or "") != "meta.k8s.io/v1":
            raise ValueError(f"server does not recognize this encoded version {version}")
        revision, start = decoded["rv"], decoded["start"]
        if not isinstance(revision, int) or not isinstance(start, str):
            raise ValueError("unrecognized content")
    except (ValueError, KeyError, TypeError, binascii.Error, UnicodeDecodeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from None
    if ".." in start.split("/"):
        raise bad_request("invalid continue token: continue key is not valid")
    return revision, start.removeprefix("/").removesuffix("\0")


def parse_delete_options(body: Any, query: Mapping[str, str], dry_run_values: Sequence[str]) -> DeleteOptions:
    """Read the options from the body if there is one, else from the query; never from both.

    `body` is the decoded JSON or None, `dry_run_values` the query's `dryRun` values. Raises 400 and 422 StatusErrors.
    """
    if body is None:
        raw: Object = {}
        if (grace := _integer(query, "gracePeriodSeconds")) is not None:
            raw["gracePeriodSeconds"] = grace
        if "propagationPolicy" in query:
            raw["propagationPolicy"] = query["propagationPolicy"]
        if "orphanDependents" in query:
            raw["orphanDependents"] = is_true(query, "orphanDependents")
        if dry_run_values:
            raw["dryRun"] = list(dry_run_values)
        body = raw
    _check_delete_options_body(body)
    errors: list[FieldError] = []
    policy, orphan = body.get("propagationPolicy"), body.get("orphanDependents")
    if policy is not None and orphan is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", policy, why))
    if policy is not None and policy not in ("Foreground", "Background", "Orphan"):
        supported = ["Foreground", "Background", "Orphan", "nil"]
        errors.append(not_supported("propagationPolicy", policy, supported))
    errors += validate_dry_run(body.get("dryRun") or [])
    if errors:
        raise invalid_options("DeleteOptions", errors)
    preconditions = body.get("preconditions") or {}
    return DeleteOptions(
        grace_period_seconds=body.get("gracePeriodSeconds"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        propagation_policy=policy,
        orphan_dependents=orphan,
        dry_run=bool(body.get("dryRun")),
    )


META_SCHEME = "pkg/apis/meta/internalversion/scheme/register.go:27"
TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
"""As what Go reads a body first."""

_DELETE_OPTIONS_TYPES: dict[str, tuple[type, str, str]] = {
    "gracePeriodSeconds": (int, "int64", "DeleteOptions"),
    "propagationPolicy": (str, "v1.DeletionPropagation", "DeleteOptions"),
    "orphanDependents": (bool, "bool", "DeleteOptions"),
    "dryRun": (list, "[]string", "DeleteOptions"),
    "preconditions": (dict, "v1.Preconditions", "DeleteOptions"),
}


def _check_delete_options_body(body: Any) -> None:
    if not isinstance(body, dict):
        why = f"json: cannot unmarshal {json_type(body)} into Go value of type {TYPE_META}"
        raise bad_request(f"couldn't get version/kind; json parse error: {why}")
    kind = body.get("kind") or "DeleteOptions"
    if kind != "DeleteOptions":
        version = body.get("apiVersion") or "meta.k8s.io/v1"
        raise bad_request(f'no kind "{kind}" is registered for version "{version}" in scheme "{META_SCHEME}"')
    for name, (type_, go_type, struct) in _DELETE_OPTIONS_TYPES.items():
        value = body.get(name)
        if value is None:
            continue
        number = type_ is int and isinstance(value, int | float) and not isinstance(value, bool)
        if (isinstance(value, type_) and type_ is not int) or (number and is_int64(value)):
            continue
        shown = f"number {value}" if number else json_type(value)
        raise bad_request(f"json: cannot unmarshal {shown} into Go struct field {struct}.{name} of type {go_type}")


def json_type(value: Any) -> str:
    """Return what Go's JSON decoder calls the type of a value."""
    names: dict[type, str] = {
        bool: "bool",
        int: "number",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names.get(type(value), "null")


def validate_dry_run(values: Sequence[str]) -> list[FieldError]:
    if all(value == "All" for value in values):
        return []
    return [not_supported("dryRun", list(values), ["All"])]


MAX_FIELD_MANAGER_BYTES = 128
FIELD_VALIDATIONS = ("", "Ignore", "Strict", "Warn")


def validate_field_manager(name: str) -> list[FieldError]:
    """Check a field manager. (apimachinery meta/v1/validation.ValidateFieldManager)"""
    errors: list[FieldError] = []
    if len(name.encode()) > MAX_FIELD_MANAGER_BYTES:
        errors.append(too_long("fieldManager", MAX_FIELD_MANAGER_BYTES))
    for position, character in enumerate(name):
        if not character.isprintable():
            why = f"invalid character U+{ord(character):04X} (at position {position})"
            errors.append(invalid("fieldManager", name, why))
            break
    return errors


def parse_dry_run(kind: str, query: Mapping[str, str], values: Sequence[str], *, apply: bool = False) -> bool:
    """Return whether a write is a dry run: `values` are those of `dryRun`; the other options are checked, too.

    `kind` is the options' kind (CreateOptions, …), `apply` says that a patch is an apply. Raises the 422 StatusError.
    """
    errors: list[FieldError] = []
    if apply and not query.get("fieldManager"):
        errors.append(required("fieldManager", "is required for apply patch"))
    if kind == "PatchOptions" and not apply and is_true(query, "force"):
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    errors += validate_field_manager(query.get("fieldManager", ""))
    errors += validate_dry_run(values)
    validation = query.get("fieldValidation", "")
    if validation not in FIELD_VALIDATIONS:
        errors.append(not_supported("fieldValidation", validation, FIELD_VALIDATIONS))
    if errors:
        raise invalid_options(kind, errors)
    return bool(values)


def parse_resource_version(text: str, *, for_list: bool) -> int:
    """Return the version, 0 for "". Raises: a list answers 400, everything else a (reason-less) 500."""
    if not text:
        return 0
    try:
        return parse_uint(text)
    except NumberError as error:
        why = f"resourceVersion: Invalid value: {go_quote(text)}: {error}"
    if for_list:
        raise bad_request(f"invalid resource version: {why}")
    raise plain_failure(why)
