"""Read the agent's requests, one JSON object a line. Pure.

`{"hello": 1, "after": 17}`   begin, or go on after the line with this number
`{"ping": 5}`                 answered with the agent's clocks, for the offset between them and the client's
`{"watch": "<uid>"}`         begin to look at this Pod
`{"ending": "<uid>"}`         it is being deleted: look often; with `"addresses": ["10.0.0.7"]` also who sends to it
`{"forget": "<uid>"}`         it is gone
`{"end": true}`               the client has no more questions

It is hostile input, as is all that comes from elsewhere: what is not understood is answered with an `error`.
"""

# check: pure

from __future__ import annotations

import json
import re
from ipaddress import ip_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 1 << 16
MOST_PODS = 2000
"""Pods of one node at most: some times what a kubelet takes."""
MOST_ADDRESSES = 4
"""Of one Pod: it has one of each family."""

_UID = re.compile(r"[0-9a-zA-Z][0-9a-zA-Z.-]{0,127}")


class BadRequest(ValueError):
    """A line that is not a request; the text says why."""


class Request:
    """One line. `verb` is the name of its first field, `number` what hello and ping carry, `uid` the Pod,
    `addresses` where Services send to it."""

    def __init__(self, verb: str, *, uid: str = "", number: int = 0, addresses: tuple[str, ...] = ()) -> None:
        self.verb, self.uid, self.number, self.addresses = verb, uid, number, addresses


def parse_request(line: bytes) -> Request:
    """Parse a request. Raises BadRequest."""
    if len(line) > MOST_BYTES:
        raise BadRequest(f"a line of more than {MOST_BYTES} bytes")
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadRequest("not JSON") from error
    if not isinstance(value, dict):
        raise BadRequest("not a JSON object")
    for verb in ("hello", "ping"):
        if verb in value:
            return Request(verb, number=_number(value, "after" if verb == "hello" else verb))
    for verb in ("watch", "ending", "forget"):
        if verb in value:
            uid = value[verb]
            if not isinstance(uid, str) or not _UID.fullmatch(uid):
                raise BadRequest(f"{verb}: not the uid of a Pod")
            return Request(verb, uid=uid, addresses=_addresses(value) if verb == "ending" else ())
    if value.get("end") is True:
        return Request("end")
    raise BadRequest("none of hello, ping, watch, ending, forget, end")


def _addresses(value: dict[str, Any]) -> tuple[str, ...]:
    found = value.get("addresses", [])
    if not isinstance(found, list) or len(found) > MOST_ADDRESSES:
        raise BadRequest(f"addresses: not a list of at most {MOST_ADDRESSES}")
    for each in found:
        try:
            is_one = isinstance(each, str) and "%" not in each and bool(ip_address(each))
        except ValueError:
            is_one = False
        if not is_one:
            raise BadRequest("addresses: not an IP address")
    return tuple(found)


def _number(value: dict[str, Any], name: str) -> int:
    number = value.get(name, 0)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 1 << 63:
        raise BadRequest(f"{name}: not a number")
    return number
